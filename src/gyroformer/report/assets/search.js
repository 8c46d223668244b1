// Finding nodes by id, or by what is written in a column of words, with completion.
import { el } from "./dom.js";

const SHOWN = 12;

// nodes whose text begins with the words first, then those that hold them; exact ones before all
export function find(run, words, most = SHOWN) {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return [];
  const ranked = [[], [], [], []], { ids } = run.graph;
  const columns = run.columns.filter((column) => column.categories);
  const hits = columns.map((column) => new Set(column.categories.flatMap((name, i) => (name.toLowerCase().includes(wanted) ? [i] : []))));
  for (let node = 0; node < ids.length; node++) {
    const id = ids[node].toLowerCase();
    if (id === wanted) ranked[0].push({ node });
    else if (ranked[1].length < most && id.startsWith(wanted)) ranked[1].push({ node });
    else if (ranked[2].length < most && id.includes(wanted)) ranked[2].push({ node });
    else if (ranked[3].length < most) {
      const at = hits.findIndex((set, i) => set.has(columns[i].values[node]));
      if (at >= 0) ranked[3].push({ node, why: `${columns[at].name}: ${columns[at].categories[columns[at].values[node]]}` });
    }
  }
  return ranked.flat().slice(0, most);
}

export function searchBox(explorer) {
  const list = el("ul", { role: "listbox", id: "found", class: "found", hidden: true, "aria-label": "Nodes found" });
  const input = el("input", {
    type: "search", id: "search", placeholder: "Find a node by id or label", autocomplete: "off", spellcheck: "false",
    role: "combobox", "aria-expanded": "false", "aria-controls": "found", "aria-label": "Find a node by id or label",
  });
  let found = [], at = -1;
  const close = () => { list.hidden = true; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); };
  const choose = (one) => {
    close();
    input.value = explorer.active.graph.ids[one.node];
    explorer.select(explorer.active, one.node);
    explorer.centre(explorer.active, one.node);
  };
  const mark = (next) => {
    at = next;
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", i === at));
    if (at >= 0) input.setAttribute("aria-activedescendant", `found-${at}`);
  };
  const show = () => {
    found = find(explorer.active, input.value);
    const { ids } = explorer.active.graph;
    list.replaceChildren(...found.map((one, i) => el(
      "li", { role: "option", id: `found-${i}`, onmousedown: (event) => { event.preventDefault(); choose(one); } },
      explorer.dot(explorer.active, one.node), el("span", { class: "name" }, ids[one.node]), el("small", {}, one.why || ""),
    )));
    if (!found.length && input.value.trim()) list.replaceChildren(el("li", { class: "none" }, "No node has this in its id or label."));
    list.hidden = !input.value.trim();
    input.setAttribute("aria-expanded", String(!list.hidden));
    mark(found.length ? 0 : -1);
  };
  input.addEventListener("input", show);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (found.length) mark((at + (event.key === "ArrowDown" ? 1 : -1) + found.length) % found.length);
    } else if (event.key === "Enter" && found[at]) choose(found[at]);
    else if (event.key === "Escape") { close(); explorer.clear(); } else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) { event.preventDefault(); input.focus(); }
  });
  return el("div", { class: "search" }, input, list);
}
