// One head on the page: its picture, where it has been moved to, and what lies under the pointer.
import { el, download } from "./dom.js";
import { drawGround, drawNames, drawOutline, drawSelection } from "./overlay.js";
import { listen } from "./gestures.js";

const REST = 140; // milliseconds without motion after which the whole picture is drawn again
const SLOW = 34, FAST = 20; // milliseconds a frame: fewer edges are drawn in motion above, more below
const STILL_STEPS = 14, MOVING_STEPS = 6;

export class View {
  constructor(explorer, run, head, index) {
    Object.assign(this, { explorer, run, head, index });
    this.isometry = head.space.identity();
    this.zoom = head.space.fit;
    this.now = head.points.slice();
    this.version = 0;
    this.budget = 30_000;
    this.typical = typicalLength(run.graph, head);
    this.build();
    listen(this);
  }

  build() {
    const { head, run, explorer } = this;
    const name = explorer.runs.length > 1 ? `${run.name} · ${head.title}` : head.title;
    const button = (label, sign, act) => el("button", { type: "button", class: "tool", title: label, "aria-label": label, onclick: act }, sign);
    this.canvas = el("canvas", {
      tabindex: 0, role: "img",
      "aria-label": `${name}, curvature ${head.curvature}, ${head.kind}. Arrow keys move, plus and minus zoom, 0 goes back, Enter selects the node in the middle.`,
    });
    this.pen = this.canvas.getContext("2d", { willReadFrequently: explorer.renderer.name === "canvas" });
    this.tip = el("div", { class: "tip", hidden: true });
    this.element = el(
      "figure", { class: "view" },
      el(
        "header", {},
        el("h3", {}, name),
        el("span", { class: `chip ${head.kind}` }, `k = ${head.curvature}`),
        explorer.runs.length > 1 ? null : el("span", { class: "kind" }, head.kind),
        el("span", { class: "fill" }),
        button("Zoom in", "+", () => this.zoomBy(1.35)),
        button("Zoom out", "−", () => this.zoomBy(1 / 1.35)),
        button("Back to the first view", "⟲", () => this.reset()),
        button("Save this picture (PNG)", "⤓", () => this.save()),
      ),
      el("div", { class: "stage" }, this.canvas, this.tip),
      el("figcaption", {}, head.caption),
    );
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }

  get theme() { return this.explorer.theme; }
  get scale() { return 0.47 * Math.min(this.width, this.height) * this.zoom; }

  resize() {
    const box = this.canvas.getBoundingClientRect();
    if (!box.width) return;
    this.ratio = this.explorer.renderer.name === "canvas" ? 1 : Math.min(2, window.devicePixelRatio || 1);
    this.width = this.canvas.width = Math.round(box.width * this.ratio);
    this.height = this.canvas.height = Math.round(box.height * this.ratio);
    this.draw();
  }

  toPixels(x, y) { return [this.width / 2 + x * this.scale, this.height / 2 - y * this.scale]; }
  toMap(px, py) { return [(px - this.width / 2) / this.scale, (this.height / 2 - py) / this.scale]; }
  radius(node) { return Math.max(1, this.pointSize * this.explorer.styleOf(this.run).sizes[node]); }

  // radius of a usual node in device pixels: many are small, and none as large as its distance to the next
  get pointSize() {
    const count = this.run.graph.size, room = Math.min(this.width, this.height);
    return Math.max(1.1 * this.ratio, Math.min(6.5 * this.ratio, (0.34 * room) / Math.sqrt(count + 9))) * this.zoomSize;
  }
  get zoomSize() { return Math.min(2.2, Math.max(0.8, Math.sqrt(this.zoom / this.head.space.fit))); }

  moveTo(isometry) {
    this.isometry = isometry;
    this.head.space.apply(isometry, this.head.points, this.now);
    this.version++;
    this.inMotion();
  }

  drag(from, to) { this.moveTo(this.head.space.drag(this.isometry, this.toMap(...from), this.toMap(...to))); }

  zoomBy(factor, at = null) {
    const before = at && this.head.kind === "flat" ? this.toMap(...at) : null;
    this.zoom = Math.min(400, Math.max(0.3, this.zoom * factor));
    if (before) this.moveTo(this.head.space.drag(this.isometry, before, this.toMap(...at)));
    else this.inMotion();
  }

  reset() {
    this.zoom = this.head.space.fit;
    this.moveTo(this.head.space.identity());
  }

  // brings a node to the middle, along the shortest path
  centre(node) {
    const from = this.isometry, target = Array.from(this.now.subarray(3 * node, 3 * node + 3));
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    const start = performance.now(), time = still ? 1 : 380;
    const turn = {};
    this.turn = turn;
    const step = (t) => {
      if (this.turn !== turn) return;
      const part = Math.min(1, Math.max(0, (t - start) / time));
      this.moveTo(this.head.space.centred(from, target, 1 - (1 - part) ** 3));
      if (part < 1) requestAnimationFrame(step);
    };
    if (still) step(start + 1); else requestAnimationFrame(step);
  }

  inMotion() {
    this.moving = true;
    clearTimeout(this.rest);
    this.rest = setTimeout(() => { this.moving = false; this.last = 0; this.draw(); }, REST);
    this.draw();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame((time) => { this.waiting = false; if (this.width) this.paint(time); });
  }

  paint(time) {
    const { explorer, pen, theme, run } = this;
    if (this.moving && this.last) this.adapt(time - this.last);
    this.last = this.moving ? time : 0;
    drawGround(pen, this);
    const all = explorer.edgeMode === "all" ? run.graph.source.length : 0;
    explorer.renderer.draw({
      run, head: this.head, now: this.now, version: this.version, width: this.width, height: this.height, scale: this.scale,
      style: explorer.styleOf(run), pointSize: this.pointSize, ground: theme.groundRgb, typical: this.typical,
      edges: this.moving ? Math.min(all, Math.round(this.budget)) : all, moving: this.moving,
      steps: this.moving ? MOVING_STEPS : STILL_STEPS, edgeColour: theme.edgeRgb,
      edgeAlpha: edgeAlpha(all) * (explorer.focusOf(run) ? 0.45 : 1),
    }, pen);
    const focus = explorer.focusOf(run);
    drawSelection(pen, this, focus);
    const always = focus ? [focus.node] : [];
    if (this.under != null && this.under !== always[0]) always.push(this.under);
    drawNames(pen, this, explorer.names ? explorer.importance(run) : [], always);
    drawOutline(pen, this, this.outline);
    explorer.painted(this);
  }

  adapt(elapsed) {
    if (elapsed > SLOW) this.budget = Math.max(500, this.budget * 0.72);
    else if (elapsed < FAST) this.budget = Math.min(400_000, this.budget * 1.2);
  }

  // the node at a place of the picture, null if none is near
  nodeAt([px, py], reach = 9) {
    const { now } = this, [mx, my] = this.toMap(px, py), sphere = this.head.kind === "spherical";
    let best = null, least = ((reach * this.ratio) / this.scale) ** 2;
    for (let i = 0; i < now.length; i += 3) {
      if (sphere && now[i + 2] < 0) continue;
      const far = (now[i] - mx) ** 2 + (now[i + 1] - my) ** 2;
      if (far < least) { least = far; best = i / 3; }
    }
    return best;
  }

  // the nodes inside a closed line, given in pixels
  nodesIn(outline) {
    const { now } = this, sphere = this.head.kind === "spherical", found = [];
    const line = outline.map(([x, y]) => this.toMap(x, y));
    for (let i = 0; i < now.length; i += 3) {
      if (sphere && now[i + 2] < 0) continue;
      if (encloses(line, now[i], now[i + 1])) found.push(i / 3);
    }
    return found;
  }

  hover(node, [px, py]) {
    if (node !== this.under) { this.under = node; this.draw(); }
    this.tip.hidden = node == null;
    if (node == null) return;
    this.tip.replaceChildren(...this.explorer.describe(this.run, node));
    const wide = this.canvas.clientWidth;
    this.tip.style.left = `${Math.min(px / this.ratio + 14, Math.max(4, wide - 190))}px`;
    this.tip.style.top = `${py / this.ratio + 14}px`;
  }

  save() {
    this.canvas.toBlob((blob) => download(`${this.run.name}-head-${this.index + 1}.png`.replace(/[^\w.-]+/g, "-"), blob));
  }
}

// the more edges, the fainter each
function edgeAlpha(count) {
  return Math.max(0.02, Math.min(0.8, 34 / Math.sqrt(count + 1), 6000 / (count + 1)));
}

function encloses(line, x, y) {
  let within = false;
  for (let i = 0, j = line.length - 1; i < line.length; j = i++) {
    const [xi, yi] = line[i], [xj, yj] = line[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) within = !within;
  }
  return within;
}

// the middle length of some edges, in units of the map's own space
function typicalLength(graph, head) {
  const { source, target } = graph, lengths = [];
  const unit = head.kind === "flat" ? 1 / head.space.unit : head.space.root;
  for (let e = 0; e < source.length; e += Math.max(1, Math.floor(source.length / 2000))) {
    const ends = [source[e], target[e]].map((i) => head.points.subarray(3 * i, 3 * i + 3));
    lengths.push(head.space.distance(...ends) * unit);
  }
  lengths.sort((a, b) => a - b);
  return lengths[lengths.length >> 1] || 1;
}
