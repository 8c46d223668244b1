// The colours of the page for those who draw with a pen, from the style sheet; light, dark, or as the system says.
import { rgb } from "./colours.js";

export function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const at = (name) => style.getPropertyValue(`--${name}`).trim();
  const names = ["ink", "muted", "faint", "ground", "disc", "rim", "ring", "accent", "near", "edge", "halo", "font"];
  const theme = Object.fromEntries(names.map((name) => [name, at(name)]));
  return { ...theme, discSolid: at("disc"), groundRgb: rgb(at("ground")), edgeRgb: rgb(at("edge")) };
}

// a button that goes through system, light and dark; `changed` hears of every change
export function themeButton(button, changed) {
  const root = document.documentElement, order = ["system", "light", "dark"];
  const show = (name) => {
    if (name === "system") root.removeAttribute("data-theme"); else root.dataset.theme = name;
    button.textContent = { system: "◐ Auto", light: "☀ Light", dark: "☾ Dark" }[name];
    button.setAttribute("aria-label", `Colours: ${name}. Press for the next.`);
    changed();
  };
  let at = 0;
  button.addEventListener("click", () => show(order[(at = (at + 1) % order.length)]));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  button.hidden = false;
  show("system");
}
