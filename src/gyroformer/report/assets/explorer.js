// The explorer: all views of all runs shown, linked by what is selected, coloured and picked.
import { el, shortNumber } from "./dom.js";
import { categoryColour, onScale, rgb, spread } from "./colours.js";
import { cellText } from "./model.js";
import { Inspector } from "./inspector.js";
import { legend } from "./legend.js";
import { pickedPanel } from "./picked.js";
import { Raster } from "./raster.js";
import { searchBox } from "./search.js";
import { readTheme } from "./theme.js";
import { View } from "./view.js";
import { WebGL } from "./webgl.js";

const ALL_EDGES = 60_000; // edges up to which all are shown at first
const FEW_NAMES = 150; // nodes up to which names are shown at first
const FADED = 46, PLAIN_COLOUR = "#5b7fa6"; // alpha of what is not meant, of 255

// the graphics card, if there is one; in software its programs are far slower than ours. #webgl and #canvas choose.
function bestRenderer() {
  if (location.hash === "#canvas") return new Raster();
  const card = WebGL.open();
  return card && (card.fast || location.hash === "#webgl") ? card : new Raster();
}

export class Explorer {
  constructor(place, runs) {
    Object.assign(this, { place, runs });
    this.renderer = bestRenderer();
    this.theme = readTheme();
    this.active = runs[0];
    this.shown = new Set(runs.slice(0, 2));
    this.tool = "move";
    this.colourBy = runs[0].firstColour;
    this.sizeBy = runs[0].task === "classify" ? "" : "degree";
    this.edgeMode = runs[0].graph.source.length <= ALL_EDGES ? "all" : "selection";
    this.names = runs[0].graph.size <= FEW_NAMES;
    this.selected = null;
    this.focus = new Map();
    this.alone = null;
    this.picked = new Set();
    this.styles = new Map();
    this.frames = 0;
    this.views = runs.flatMap((run) => run.heads.map((head, i) => new View(this, run, head, i)));
    this.inspector = new Inspector(this);
    this.build();
    this.restyle();
  }

  build() {
    this.side = el("aside", { "aria-label": "Details" });
    this.stages = el("div", { class: "views" });
    this.place.replaceChildren(
      this.toolbar(), ...(this.runs.length > 1 ? [this.runChips()] : []),
      el("div", { class: "bench" }, this.stages, this.side),
    );
    this.arrange();
  }

  toolbar() {
    const names = [...new Set(this.runs.flatMap((run) => run.columns.map((column) => column.name)))];
    const numbers = names.filter((name) => this.runs.some((run) => run.column(name) && !run.column(name).categories));
    const choice = (label, options, value, act) => {
      const select = el("select", { onchange: (event) => act(event.target.value) },
        ...options.map(([key, title]) => el("option", { value: key, selected: key === value }, title)));
      return el("label", { class: "choice" }, el("span", {}, label), select);
    };
    const group = (label, options, value, act) => {
      const press = (event) => {
        for (const other of event.currentTarget.parentElement.children) other.setAttribute("aria-pressed", String(other === event.currentTarget));
        act(event.currentTarget.value);
      };
      return el("div", { class: "choice" }, el("span", {}, label), el("div", { class: "segment", role: "group", "aria-label": label },
        ...options.map(([key, title, hint]) => el("button", { type: "button", value: key, title: hint, "aria-pressed": String(key === value), onclick: press }, title))));
    };
    return el(
      "div", { class: "toolbar" }, searchBox(this),
      choice("Colour", [["", "one colour"], ...names.map((name) => [name, name])], this.colourBy, (name) => { this.colourBy = name; this.alone = null; this.restyle(); }),
      choice("Size", [["", "all the same"], ...numbers.map((name) => [name, name])], this.sizeBy, (name) => { this.sizeBy = name; this.restyle(); }),
      group("Edges", [["none", "None"], ["selection", "Selected"], ["all", "All"]], this.edgeMode, (mode) => { this.edgeMode = mode; this.draw(); }),
      group("Pointer", [["move", "Move", "Drag moves the space"], ["box", "Box", "Drag picks nodes in a box"], ["lasso", "Lasso", "Drag picks nodes in a loop"]],
        this.tool, (tool) => { this.tool = tool; this.place.dataset.tool = tool; }),
      group("Names", [["yes", "On"], ["no", "Off"]], this.names ? "yes" : "no", (on) => { this.names = on === "yes"; this.draw(); }),
    );
  }

  runChips() {
    const chip = (run, i) => {
      const dot = el("i", { class: `dot run-${i % 8}` });
      return el("button", {
        type: "button", "aria-pressed": String(this.shown.has(run)),
        onclick: (event) => {
          if (this.shown.has(run) && this.shown.size > 1) this.shown.delete(run); else this.shown.add(run);
          event.currentTarget.setAttribute("aria-pressed", String(this.shown.has(run)));
          if (!this.shown.has(this.active)) this.active = [...this.shown][0];
          this.arrange();
        },
      }, dot, el("span", { class: "name" }, run.name));
    };
    return el("div", { class: "runs", role: "group", "aria-label": "Runs shown" }, ...this.runs.map(chip));
  }

  arrange() {
    const views = this.views.filter((view) => this.shown.has(view.run));
    this.stages.dataset.count = Math.min(views.length, 4);
    this.stages.replaceChildren(...views.map((view) => view.element));
    this.note();
  }

  note() {
    const { active, selected } = this;
    const focus = this.focusOf(active);
    this.inspector.show(active, focus);
    const lost = selected != null && !focus ? el("p", { class: "note" }, `${selected} is no node of ${active.name}.`) : null;
    const picked = [...this.picked].map((id) => active.graph.places.get(id)).filter((node) => node != null);
    this.side.replaceChildren(
      ...[pickedPanel(this, active, picked), lost, this.inspector.element, legend(this, active)].filter(Boolean),
      ...(active.note ? [el("p", { class: "note" }, active.note)] : []),
    );
  }

  // ---- what is selected

  select(run, node) {
    this.active = run;
    this.selected = node == null ? null : run.graph.ids[node];
    if (node == null) this.inspector.trail = [];
    this.focus = new Map();
    this.restyle();
  }

  clear() {
    this.picked.clear();
    this.alone = null;
    this.select(this.active, null);
  }

  pick(run, nodes) {
    this.active = run;
    this.picked = new Set(nodes.map((node) => run.graph.ids[node]));
    this.restyle();
  }

  showAlone(value) {
    this.alone = this.alone === value ? null : value;
    this.restyle();
  }

  // brings a node to the middle of every view that has it
  centre(run, node) {
    const id = run.graph.ids[node];
    for (const view of this.views) {
      const here = view.run.graph.places.get(id);
      if (here != null && this.shown.has(view.run)) view.centre(here);
    }
  }

  // the selected node in a run, with the nodes that belong to it; null if the run has none
  focusOf(run) {
    if (this.selected == null) return null;
    if (!this.focus.has(run)) {
      const node = run.graph.places.get(this.selected);
      this.focus.set(run, node == null ? null : { node, nearest: run.nearest(node), neighbours: run.neighbours(node) });
    }
    return this.focus.get(run);
  }

  // ---- how nodes look

  restyle() {
    for (const run of this.runs) this.styles.set(run, this.style(run));
    this.note();
    this.draw();
  }

  styleOf(run) { return this.styles.get(run); }

  style(run) {
    const count = run.graph.size, colours = new Uint8Array(4 * count), sizes = new Float32Array(count).fill(1);
    const column = run.column(this.colourBy), size = run.column(this.sizeBy);
    const part = column && !column.categories ? spread(column.values).part : null;
    const meant = this.meant(run, column);
    const known = new Map();
    for (let node = 0; node < count; node++) {
      const value = column ? column.values[node] : 0;
      let colour = known.get(value);
      if (!colour) {
        colour = !column ? rgb(PLAIN_COLOUR) : part ? (Number.isFinite(value) ? onScale(part(value)) : [154, 164, 174]) : rgb(categoryColour(column, value));
        known.set(value, colour);
      }
      colours.set(colour, 4 * node);
      colours[4 * node + 3] = !meant || meant.has(node) ? 235 : FADED;
    }
    if (size && !size.categories) {
      const share = spread(size.values).part;
      for (let node = 0; node < count; node++) if (Number.isFinite(size.values[node])) sizes[node] = 0.7 + 1.1 * Math.sqrt(share(size.values[node]));
    }
    return { colours, sizes, version: (this.styles.get(run)?.version || 0) + 1 };
  }

  // the nodes that are not faded; null for all
  meant(run, column) {
    const focus = this.focusOf(run);
    if (focus) return new Set([focus.node, ...focus.nearest.map((one) => one.node), ...focus.neighbours.map((one) => one.node)]);
    if (this.picked.size) return new Set([...this.picked].map((id) => run.graph.places.get(id)));
    if (this.alone != null && column?.categories) return new Set(column.values.reduce((all, value, node) => (value === this.alone ? (all.push(node), all) : all), []));
    return null;
  }

  dot(run, node, column = run.column(this.colourBy)) {
    const dot = el("i", { class: "dot" });
    if (column === run.column(this.colourBy)) {
      const [r, g, b] = this.styleOf(run).colours.subarray(4 * node, 4 * node + 3);
      dot.style.background = `rgb(${r}, ${g}, ${b})`;
    } else dot.style.background = categoryColour(column, column.values[node]);
    return dot;
  }

  describe(run, node) {
    const lines = ["class", "predicted class", "degree", this.colourBy].filter((name, i, all) => run.column(name) && all.indexOf(name) === i);
    return [
      el("strong", {}, run.graph.ids[node]),
      ...lines.map((name) => el("span", {}, `${name} ${cellText(run.column(name), node, shortNumber)}`)),
    ];
  }

  importance(run) {
    if (!run.order) {
      const column = run.column("degree") || run.column("distance from the centre");
      run.order = Array.from({ length: run.graph.size }, (_, i) => i).sort((a, b) => column.values[b] - column.values[a]).slice(0, 600);
    }
    return run.order;
  }

  draw() { for (const view of this.views) if (this.shown.has(view.run)) view.draw(); }

  newTheme() {
    this.theme = readTheme();
    this.draw();
  }

  painted() {
    this.frames++;
    if (!this.firstPicture) {
      this.firstPicture = performance.now();
      this.place.dataset.drawn = "yes";
    }
  }
}
