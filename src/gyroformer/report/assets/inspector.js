// The panel beside the pictures: the node that is selected, its neighbours and nearest nodes, and the way walked so far.
import { el, shortNumber } from "./dom.js";
import { cellText } from "./model.js";

const ROWS = 60;
const TRAIL = 8;

export class Inspector {
  constructor(explorer) {
    this.explorer = explorer;
    this.trail = [];
    this.list = "nearest";
    this.element = el("div", { class: "inspector", "aria-live": "polite" });
  }

  show(run, focus) {
    if (!focus) return this.element.replaceChildren(...this.hint(run));
    const id = run.graph.ids[focus.node];
    if (this.trail[this.trail.length - 1] !== id) this.trail = [...this.trail, id].slice(-TRAIL);
    this.element.replaceChildren(
      this.way(run),
      el("h3", { class: "node" }, this.explorer.dot(run, focus.node), el("span", { class: "name" }, id)),
      this.facts(run, focus.node),
      this.tabs(run, focus),
      this.table(run, focus),
    );
  }

  hint(run) {
    const edges = run.graph.known ? `, ${shortNumber(run.graph.source.length)} edges` : "";
    return [
      el("p", { class: "lead" }, `${shortNumber(run.graph.size)} nodes${edges}. Click a node, or search for one, to see who is near it.`),
      el(
        "dl", { class: "keys" },
        el("dt", {}, "drag"), el("dd", {}, "moves the space by an isometry: no distance changes"),
        el("dt", {}, "double click"), el("dd", {}, "brings a node to the middle"),
        el("dt", {}, "wheel, + −"), el("dd", {}, "zoom, once the picture was clicked"),
        el("dt", {}, "box, lasso"), el("dd", {}, "pick nodes and download them as CSV"),
        el("dt", {}, "/"), el("dd", {}, "search"),
      ),
    ];
  }

  way(run) {
    const step = (id) => el("button", { type: "button", onclick: () => this.walk(run, id) }, id);
    const back = el("button", { type: "button", class: "back", disabled: this.trail.length < 2, onclick: () => this.back(run) }, "← Back");
    const clear = el("button", { type: "button", class: "clear", "aria-label": "Select nothing", onclick: () => this.explorer.clear() }, "×");
    return el("nav", { class: "way", "aria-label": "The way walked" }, back, el("span", { class: "steps" }, ...this.trail.slice(0, -1).slice(-3).map(step)), clear);
  }

  back(run) {
    this.trail.pop();
    this.walk(run, this.trail[this.trail.length - 1]);
  }

  walk(run, id) {
    const node = run.graph.places.get(id);
    if (node == null) return;
    this.explorer.select(run, node);
    this.explorer.centre(run, node);
  }

  facts(run, node) {
    const rows = run.columns.flatMap((column) => {
      const text = cellText(column, node, shortNumber);
      const dot = column.categories && column.categories.length <= 64 ? this.explorer.dot(run, node, column) : null;
      return [el("dt", { title: column.note }, column.name), el("dd", {}, dot, text)];
    });
    return el("dl", { class: "facts" }, ...rows);
  }

  tabs(run, focus) {
    const tab = (name, title, count) => el(
      "button",
      { type: "button", role: "tab", "aria-selected": String(this.list === name), onclick: () => { this.list = name; this.show(run, focus); } },
      `${title} `, el("small", {}, shortNumber(count)),
    );
    const known = run.graph.known ? [tab("neighbours", "Neighbours", focus.neighbours.length)] : [];
    return el("div", { class: "tabs", role: "tablist" }, tab("nearest", "Nearest", focus.nearest.length), ...known);
  }

  table(run, focus) {
    const rows = focus[this.list], class_ = run.column("predicted class") || run.column("class");
    const chance = run.column("probability");
    const heads = ["node", "distance", this.list === "nearest" && run.graph.known ? "edge" : null, class_ ? "class" : null,
      chance ? "P" : null, run.decoder ? "P(edge)" : null].filter(Boolean);
    const notes = { P: "Probability of the predicted class", "P(edge)": "Probability of an edge by the decoder", distance: "In the product of all heads" };
    const cells = (one) => ({
      node: () => el("td", {}, el("button", { type: "button", class: "go", onclick: () => this.walk(run, run.graph.ids[one.node]) },
        this.explorer.dot(run, one.node), el("span", { class: "name" }, run.graph.ids[one.node]))),
      distance: () => el("td", { class: "number" }, shortNumber(one.distance)),
      edge: () => el("td", { class: one.edge ? "yes" : "no" }, one.edge ? "edge" : "–"),
      class: () => el("td", {}, cellText(class_, one.node, shortNumber)),
      P: () => el("td", { class: "number" }, chance.values[one.node].toFixed(2)),
      "P(edge)": () => el("td", { class: "number" }, shortNumber(run.edgeProbability(one.distance), 3)),
    });
    const body = rows.slice(0, ROWS).map((one) => el("tr", {}, ...heads.map((name) => cells(one)[name]())));
    const more = rows.length > ROWS ? el("p", { class: "note" }, `The ${ROWS} nearest of ${shortNumber(rows.length)}.`) : null;
    const table = el("table", { class: "nodes" },
      el("thead", {}, el("tr", {}, ...heads.map((name) => el("th", { scope: "col", title: notes[name] }, name)))), el("tbody", {}, ...body));
    return el("div", { class: "scroll" }, rows.length ? table : el("p", { class: "note" }, "None."), more);
  }
}
