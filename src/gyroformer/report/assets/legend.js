// What the colours mean. A click on a category shows it alone.
import { el, shortNumber } from "./dom.js";
import { categoryColour, scaleGradient, spread } from "./colours.js";

const ENTRIES = 24;

export function legend(explorer, run) {
  const column = run.column(explorer.colourBy);
  if (!column) return el("div", { class: "legend" });
  const title = el("h3", { title: column.note }, column.name);
  const note = column.note ? el("p", { class: "note" }, column.note) : null;
  return el("div", { class: "legend" }, title, column.categories ? categories(explorer, column) : scale(column), note);
}

function scale(column) {
  const { low, high, log } = spread(column.values);
  const bar = el("div", { class: "bar" });
  bar.style.background = scaleGradient();
  return el("div", { class: "scale" }, bar, el("span", {}, shortNumber(low, 3)), el("span", {}, log ? "(logarithmic)" : ""), el("span", {}, shortNumber(high, 3)));
}

function categories(explorer, column) {
  const counts = new Map();
  for (const value of column.values) counts.set(value, (counts.get(value) || 0) + 1);
  const order = [...counts.keys()].sort((a, b) => (column.categories.length > ENTRIES ? counts.get(b) - counts.get(a) : (a < 0) - (b < 0) || a - b));
  const entry = (value) => {
    const dot = el("i", { class: "dot" });
    dot.style.background = categoryColour(column, value);
    const name = value < 0 ? "none" : column.categories[value];
    return el(
      "button", { type: "button", "aria-pressed": String(explorer.alone === value), onclick: () => explorer.showAlone(value) },
      dot, el("span", { class: "name" }, name), el("small", {}, shortNumber(counts.get(value))),
    );
  };
  const rest = order.length - ENTRIES;
  return el("div", { class: "entries" }, ...order.slice(0, ENTRIES).map(entry), rest > 0 ? el("small", {}, `and ${shortNumber(rest)} more`) : null);
}
