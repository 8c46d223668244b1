// Nodes picked with a box or a lasso, as a table to take away.
import { el, download, shortNumber } from "./dom.js";

export function csv(run, nodes) {
  const quoted = (value) => (/[",\n\r]/.test(value) ? `"${value.replace(/"/g, '""')}"` : value);
  const places = run.heads.flatMap((head) => [`${head.title} x`, `${head.title} y`]);
  const lines = [["id", ...run.columns.map((column) => column.name), ...places]];
  for (const node of nodes) {
    const cells = run.columns.map((column) => {
      const value = column.values[node];
      if (column.categories) return value < 0 ? "" : column.categories[value];
      return Number.isFinite(value) ? String(+value.toPrecision(9)) : "";
    });
    const points = run.heads.flatMap((head) => [head.x[node], head.y[node]].map((value) => String(+value.toPrecision(9))));
    lines.push([run.graph.ids[node], ...cells, ...points]);
  }
  return `${lines.map((line) => line.map(quoted).join(",")).join("\n")}\n`;
}

export function pickedPanel(explorer, run, nodes) {
  if (!nodes.length) return el("div", { class: "picked", hidden: true });
  const save = () => download(`${run.name}-nodes.csv`.replace(/[^\w.-]+/g, "-"), csv(run, nodes), "text/csv");
  return el(
    "div", { class: "picked" },
    el("strong", {}, `${shortNumber(nodes.length)} ${nodes.length === 1 ? "node" : "nodes"} picked`),
    el("button", { type: "button", class: "primary", onclick: save }, "Download CSV"),
    el("button", { type: "button", onclick: () => explorer.pick(run, []) }, "Clear"),
  );
}
