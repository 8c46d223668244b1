"use strict";
// Charts are drawn when they come near the view: a page of many runs opens at once.
(() => {
  const specs = JSON.parse(document.getElementById("plots").textContent);
  const options = { displayModeBar: false, responsive: true };
  // on a screen that is touched, a drag must scroll the page
  const touched = window.matchMedia("(pointer: coarse)").matches;
  const draw = (place) => {
    const spec = specs[place.dataset.plot];
    if (!spec || place.dataset.drawn) return;
    place.dataset.drawn = "yes";
    if (touched) spec.layout.dragmode = false;
    Plotly.newPlot(place, spec.data, spec.layout, options);
  };
  const places = [...document.querySelectorAll("[data-plot]")];
  for (const place of places) place.style.minHeight = `${specs[place.dataset.plot].layout.height}px`;
  if (!("IntersectionObserver" in window)) return places.forEach(draw);
  const watcher = new IntersectionObserver(
    (seen) => seen.forEach((one) => { if (one.isIntersecting) { watcher.unobserve(one.target); draw(one.target); } }),
    { rootMargin: "800px" },
  );
  places.forEach((place) => watcher.observe(place));
  window.addEventListener("beforeprint", () => places.forEach(draw));
})();
