// Elements from data. Text only ever becomes text: nothing here reads markup.

export function el(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class") made.className = value;
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, props = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(props)) if (value != null) made.setAttribute(key, value);
  made.append(...children.filter((child) => child != null));
  return made;
}

// numbers as people read them: a true minus, four significant digits, no needless zeros
export function shortNumber(value, digits = 4) {
  if (value == null || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en-US").replace("-", "−");
  const size = Math.abs(value);
  const text = size >= 1e5 || size < 1e-4 ? value.toExponential(digits - 2) : String(+value.toPrecision(digits));
  return text.replace(/-/g, "−");
}

export function download(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const address = URL.createObjectURL(blob);
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
