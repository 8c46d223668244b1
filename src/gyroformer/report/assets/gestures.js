// Pointer, wheel and keyboard on a view.

const STILL = 5; // pixels that a click may wander
const STEP = 0.06; // part of the view that an arrow key moves

export function listen(view) {
  const { canvas, explorer } = view, held = new Map();
  let start = null, walked = 0, pinch = 0, dragging = false;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) * view.ratio, (event.clientY - box.top) * view.ratio];
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, place(event));
    start = place(event);
    walked = 0;
    dragging = false;
    view.turn = null;
    if (explorer.tool !== "move" && held.size === 1) view.outline = [start];
  });

  canvas.addEventListener("pointermove", (event) => {
    const to = place(event), from = held.get(event.pointerId);
    if (!from) {
      if (event.pointerType === "mouse") view.hover(view.nodeAt(to), to);
      return;
    }
    walked += Math.hypot(to[0] - from[0], to[1] - from[1]);
    held.set(event.pointerId, to);
    if (held.size === 2) {
      const [a, b] = [...held.values()], apart = Math.hypot(a[0] - b[0], a[1] - b[1]);
      if (pinch) view.zoomBy(apart / pinch, [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2]);
      pinch = apart;
    } else if (view.outline) {
      view.outline = explorer.tool === "box" ? [start, [to[0], start[1]], to, [start[0], to[1]]] : [...view.outline, to];
      view.draw();
    } else if (walked > STILL * view.ratio) {
      view.hover(null, to);
      view.drag(dragging ? from : start, to);
      dragging = true;
    }
  });

  const release = (event) => {
    if (!held.delete(event.pointerId)) return;
    pinch = 0;
    const { outline } = view;
    view.outline = null;
    if (event.type === "pointercancel") return view.draw();
    if (walked <= STILL * view.ratio) {
      const node = view.nodeAt(place(event), event.pointerType === "mouse" ? 9 : 20);
      explorer.select(view.run, node);
    } else if (outline) explorer.pick(view.run, view.nodesIn(outline));
    view.draw();
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", (event) => { if (!held.size) view.hover(null, place(event)); });
  canvas.addEventListener("dblclick", (event) => {
    const node = view.nodeAt(place(event), 14);
    if (node != null) explorer.centre(view.run, node);
  });

  // the wheel scrolls the page until the view has been clicked, or Ctrl is held
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    view.zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), place(event));
  }, { passive: false });

  canvas.addEventListener("keydown", (event) => {
    const step = STEP * Math.min(view.width, view.height), middle = [view.width / 2, view.height / 2];
    const moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    const acts = {
      "+": () => view.zoomBy(1.25), "=": () => view.zoomBy(1.25), "-": () => view.zoomBy(0.8), 0: () => view.reset(),
      Enter: () => explorer.select(view.run, view.nodeAt(middle, 1e5)), Escape: () => explorer.clear(),
    };
    const move = moves[event.key];
    if (move) view.drag(middle, [middle[0] + move[0], middle[1] + move[1]]);
    else if (acts[event.key] && !event.ctrlKey && !event.metaKey) acts[event.key]();
    else return;
    event.preventDefault();
  });
}
