// Charts: curves in panels over one axis, and bars. Pointing at one shows the values there.
import { el, svg, shortNumber } from "./dom.js";
import { scaleOf, xAxis, yAxis } from "./axes.js";

const LEFT = 58, RIGHT = 14, TOP = 30, BOTTOM = 42, GAP = 38;
const DASHES = ["", "7 4", "2 3", "9 3 2 3", "12 4", "12 3 2 3 2 3"];

export function drawCharts() {
  for (const place of document.querySelectorAll("[data-chart]")) {
    const spec = JSON.parse(place.querySelector("script").textContent);
    const chart = el("div", { class: "chart" });
    place.insertBefore(chart, place.querySelector("figcaption"));
    const draw = () => { if (chart.clientWidth) chart.replaceChildren(...(spec.kind === "bars" ? bars : panels)(spec, chart.clientWidth)); };
    let width = 0;
    // in a frame of its own: a chart that changes its height must not be observed while it does
    new ResizeObserver(() => { if (chart.clientWidth !== width) { width = chart.clientWidth; requestAnimationFrame(draw); } }).observe(chart);
  }
}

const colour = (name) => `var(--${name})`;

function paint(shape, { stroke, fill, opacity }) {
  if (stroke) shape.style.stroke = colour(stroke);
  if (fill) shape.style.fill = colour(fill);
  if (opacity) shape.style.opacity = opacity;
  return shape;
}

// ---- curves

function panels(spec, width) {
  const right = width - RIGHT - (spec.labels ? 74 : 0);
  const xs = spec.panels.flatMap((panel) => panel.series.flatMap((one) => one.x));
  const x = scaleOf(xs, [LEFT, right], { from: spec.from ?? Math.min(...xs), to: spec.to ?? Math.max(...xs), wanted: Math.max(3, Math.floor(width / 110)) });
  const parts = [], rows = [];
  let top = TOP;
  for (const panel of spec.panels) {
    const height = panel.height || 170, bottom = top + height;
    const values = panel.series.flatMap((one) => [...one.y, ...(one.low || []), ...(one.high || [])]);
    const y = scaleOf(values, [bottom, top], { log: panel.log, zero: panel.zero, from: panel.from, to: panel.to, wanted: Math.floor(height / 30) });
    rows.push({ panel, y });
    parts.push(yAxis(y, LEFT, right, panel.title, top));
    if (panel.zero) parts.push(...zeroLine(y, right, panel));
    if (panel.diagonal) parts.push(svg("line", { class: "zero", x1: x.at(0), y1: y.at(0), x2: x.at(1), y2: y.at(1), "stroke-dasharray": "4 4" }));
    for (const one of panel.series) parts.push(...curve(one, x, y));
    top = bottom + GAP;
  }
  const bottom = top - GAP;
  parts.push(xAxis(x, bottom, spec.x, right));
  const picture = svg("svg", { width, height: bottom + BOTTOM, role: "img", "aria-label": spec.title }, ...parts);
  return [keys(spec), picture, ...pointing(picture, spec, rows, x, { bottom, right })];
}

function zeroLine(y, right, panel) {
  const at = y.at(0), found = [svg("line", { class: "zero", x1: LEFT, x2: right, y1: at, y2: at })];
  if (panel.signs) {
    found.push(paint(svg("text", { class: "sign", x: right + 6, y: at - 5 }, "spherical ↑"), { fill: "spherical" }));
    found.push(paint(svg("text", { class: "sign", x: right + 6, y: at + 13 }, "hyperbolic ↓"), { fill: "hyperbolic" }));
  }
  return found;
}

function curve(one, x, y) {
  const found = [], line = one.x.map((value, i) => `${x.at(value).toFixed(1)},${y.at(one.y[i]).toFixed(1)}`);
  if (one.low) {
    const area = [...one.x.map((value, i) => `${x.at(value)},${y.at(one.high[i])}`), ...one.x.map((value, i) => `${x.at(value)},${y.at(one.low[i])}`).reverse()];
    found.push(paint(svg("polygon", { points: area.join(" ") }), { fill: one.colour, opacity: one.shade }));
  }
  if (one.line !== false) found.push(paint(svg("polyline", { class: "curve", points: line.join(" "), "stroke-dasharray": DASHES[one.dash || 0] || null }), { stroke: one.colour }));
  if (one.dots) for (let i = 0; i < one.x.length; i++) found.push(paint(svg("circle", { r: 3, cx: x.at(one.x[i]), cy: y.at(one.y[i]) }), { fill: one.colour }));
  if (one.ring) found.push(paint(svg("circle", { class: "ring", r: 6, cx: x.at(one.ring[0]), cy: y.at(one.ring[1]) }), { stroke: one.colour }));
  return found;
}

function keys(spec) {
  const seen = new Map();
  for (const panel of spec.panels) for (const one of panel.series) if (one.name) seen.set(one.name, one);
  if (seen.size < 2 && !spec.keys) return el("div", { class: "keys" });
  return el("div", { class: "keys" }, ...[...seen.values()].map((one) => {
    if (one.line === false) return el("span", {}, svg("svg", { width: 22, height: 10, "aria-hidden": "true" }, paint(svg("rect", { width: 22, height: 10 }), { fill: one.colour, opacity: one.shade })), one.name);
    const line = paint(svg("line", { x1: 0, x2: 22, y1: 5, y2: 5, "stroke-width": 2.25, "stroke-dasharray": DASHES[one.dash || 0] || null }), { stroke: one.colour });
    return el("span", {}, svg("svg", { width: 22, height: 10, "aria-hidden": "true" }, line), one.name);
  }));
}

function pointing(picture, spec, rows, x, { bottom, right }) {
  const tip = el("div", { class: "tip", hidden: true }), line = svg("line", { class: "cross", y1: TOP, y2: bottom });
  line.style.visibility = "hidden";
  picture.append(line);
  picture.addEventListener("pointerleave", () => { tip.hidden = true; line.style.visibility = "hidden"; });
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect(), px = event.clientX - box.left;
    const found = [];
    for (const { panel } of rows) for (const one of panel.series) {
      const i = nearestIndex(one.x, x.back(px));
      if (i >= 0) found.push({ one, i, panel });
    }
    if (!found.length || px < LEFT - 8 || px > right + 8) { tip.hidden = true; return; }
    const at = found.reduce((best, { one, i }) => (Math.abs(one.x[i] - x.back(px)) < Math.abs(best - x.back(px)) ? one.x[i] : best), found[0].one.x[found[0].i]);
    line.setAttribute("x1", x.at(at));
    line.setAttribute("x2", x.at(at));
    line.style.visibility = "visible";
    tip.replaceChildren(el("strong", {}, `${spec.x} ${shortNumber(at)}`), ...found.slice(0, 14).map(({ one, i, panel }) => {
      const dot = el("i", { class: "dot" });
      dot.style.background = colour(one.colour);
      const range = one.low ? ` (${shortNumber(one.low[i], 3)} to ${shortNumber(one.high[i], 3)})` : "";
      return el("span", {}, dot, `${one.name || panel.title} ${shortNumber(one.y[i], 5)}${range}`);
    }));
    tip.hidden = false;
    tip.style.left = `${Math.min(px + 14, box.width - 200)}px`;
    tip.style.top = `${event.clientY - box.top + 14}px`;
  });
  return [tip];
}

function nearestIndex(xs, value) {
  let best = -1, least = Infinity;
  for (let i = 0; i < xs.length; i++) { const far = Math.abs(xs[i] - value); if (far < least) { least = far; best = i; } }
  return best;
}

// ---- bars

// the row of each mark's text, so that none lies on another
function markRows(marks, x) {
  const ends = [], rows = new Array(marks.length);
  const order = marks.map((_, i) => i).sort((a, b) => marks[a].x - marks[b].x);
  for (const i of order) {
    const half = 4 + 3.6 * marks[i].text.length, left = x.at(marks[i].x) - half;
    let row = ends.findIndex((end) => end < left);
    if (row < 0) row = ends.length;
    ends[row] = x.at(marks[i].x) + half;
    rows[i] = row;
  }
  return rows;
}

function bars(spec, width) {
  const right = width - RIGHT, height = spec.height || 200, marks = spec.marks || [];
  const x = scaleOf([...spec.edges, ...marks.map((mark) => mark.x)], [LEFT, right], { wanted: Math.max(3, Math.floor(width / 110)) });
  const rows = markRows(marks, x), top = TOP + 6 + 15 * (1 + Math.max(0, ...rows)), bottom = top + height;
  const y = scaleOf(spec.values, [bottom, top], { from: 0, to: Math.max(...spec.values) * 1.05, wanted: 4 });
  const tip = el("div", { class: "tip", hidden: true });
  const shapes = spec.values.map((value, i) => {
    const [a, b] = [x.at(spec.edges[i]), x.at(spec.edges[i + 1])];
    const low = spec.edges[i] < -1e-12;
    const bar = paint(svg("rect", { x: a + 0.5, width: Math.max(0.6, b - a - 1), y: y.at(value), height: Math.max(0, bottom - y.at(value)) }), { fill: low ? "hyperbolic" : "spherical" });
    const over = svg("rect", { class: "over", x: a, width: Math.max(1, b - a), y: top, height: bottom - top });
    over.addEventListener("pointerenter", () => {
      tip.replaceChildren(el("strong", {}, `${shortNumber(+spec.edges[i].toPrecision(6))} to ${shortNumber(+spec.edges[i + 1].toPrecision(6))}`),
        el("span", {}, `${shortNumber(spec.counts[i])} ${spec.unit}, ${shortNumber(value, 3)} %`));
      tip.hidden = false;
      tip.style.left = `${Math.min(b + 8, width - 190)}px`;
      tip.style.top = `${top + 8}px`;
    });
    over.addEventListener("pointerleave", () => { tip.hidden = true; });
    return svg("g", {}, bar, over);
  });
  const lines = marks.map((mark, i) => svg("g", {},
    paint(svg("line", { class: "mark", x1: x.at(mark.x), x2: x.at(mark.x), y1: top - 4 - 15 * rows[i], y2: bottom, "stroke-dasharray": mark.dash ? "4 4" : null }), { stroke: mark.colour }),
    paint(svg("text", { class: "sign", x: x.at(mark.x), y: top - 8 - 15 * rows[i], "text-anchor": x.at(mark.x) > right - 60 ? "end" : x.at(mark.x) < LEFT + 60 ? "start" : "middle" }, mark.text), { fill: mark.colour })));
  const picture = svg("svg", { width, height: bottom + BOTTOM, role: "img", "aria-label": spec.title },
    yAxis(y, LEFT, right, spec.y, TOP), ...shapes, ...lines, xAxis(x, bottom, spec.x, right));
  return [picture, tip];
}
