// The page starts here.
import { drawCharts } from "./charts.js";
import { el } from "./dom.js";
import { Explorer } from "./explorer.js";
import { Graph, Run } from "./model.js";
import { themeButton } from "./theme.js";
import { unpack } from "./unpack.js";

async function start() {
  const place = document.getElementById("explorer"), data = document.getElementById("data");
  let explorer = null;
  const button = document.getElementById("theme");
  if (button) themeButton(button, () => explorer?.newTheme());
  drawCharts();
  if (!place || !data) return;
  try {
    const { about, arrays } = await unpack(data.textContent);
    const graphs = about.graphs.map((graph) => new Graph(graph, arrays));
    explorer = new Explorer(place, about.runs.map((run) => new Run(run, graphs[run.graph], arrays)));
    window.explorer = explorer; // for the console: explorer.runs[0].nearest(0)
  } catch (error) {
    place.replaceChildren(el("p", { class: "failed" }, `The explorer could not start: ${error.message}.`));
    throw error;
  }
}

start();
