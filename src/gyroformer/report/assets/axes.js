// Scales and ticks of charts.
import { svg, shortNumber } from "./dom.js";

export function ticks(low, high, wanted) {
  const rough = (high - low) / Math.max(1, wanted), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999) || power;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at++) found.push(at * step);
  return found;
}

function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    const many = Math.log10(high / low) < 1.7 ? [1, 2, 5] : [1];
    for (const m of many) found.push(m * 10 ** power);
  }
  return found.filter((value) => value >= low * 0.999 && value <= high * 1.001);
}

// from values to pixels; `room` is [start, end]
export function scaleOf(values, room, { log = false, zero = false, from = null, to = null, wanted = 5 } = {}) {
  let low = Infinity, high = -Infinity;
  for (const value of values) if (Number.isFinite(value)) { low = Math.min(low, value); high = Math.max(high, value); }
  if (zero) { low = Math.min(low, 0); high = Math.max(high, 0); }
  low = from ?? low;
  high = to ?? high;
  if (!Number.isFinite(low)) [low, high] = [0, 1];
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - (Math.abs(low) || 1) * 0.05, high + (Math.abs(high) || 1) * 0.05];
  const bent = log ? Math.log10 : (value) => value;
  const margin = from == null && to == null ? (bent(high) - bent(low)) * 0.04 : 0;
  const start = bent(low) - margin, end = bent(high) + margin;
  const at = (value) => room[0] + ((bent(value) - start) / (end - start)) * (room[1] - room[0]);
  const back = (pixel) => { const value = start + ((pixel - room[0]) / (room[1] - room[0])) * (end - start); return log ? 10 ** value : value; };
  return { at, back, ticks: log ? logTicks(10 ** start, 10 ** end) : ticks(start, end, wanted), low, high };
}

export function yAxis(scale, left, right, title, top) {
  const parts = scale.ticks.map((value) => svg("g", {},
    svg("line", { class: "grid", x1: left, x2: right, y1: scale.at(value), y2: scale.at(value) }),
    svg("text", { class: "tick", x: left - 7, y: scale.at(value), dy: "0.32em", "text-anchor": "end" }, shortNumber(+value.toPrecision(10)))));
  return svg("g", {}, ...parts, svg("text", { class: "axis", x: 0, y: top - 13 }, title));
}

export function xAxis(scale, bottom, title, right) {
  const parts = scale.ticks.map((value) => svg("text", { class: "tick", x: scale.at(value), y: bottom + 17, "text-anchor": "middle" }, shortNumber(+value.toPrecision(10))));
  return svg("g", {}, ...parts, svg("text", { class: "axis", x: right, y: bottom + 34, "text-anchor": "end" }, title));
}
