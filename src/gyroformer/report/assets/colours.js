// Colours of nodes: categories from a list, numbers on a scale; both are read on a light and on a dark ground.

export const CATEGORIES = [
  "#3577c2", "#e2803a", "#3f9e63", "#a05fc0", "#d64f5e", "#1fa3ab", "#c59a17", "#cf6ba4",
  "#7a8896", "#8aa63a", "#6f8df5", "#b4735b", "#57b8d9", "#8f7cd8", "#d98f8a", "#5f9e8f",
];
export const ABSENT = "#9aa4ae";
const SCALE = ["#4a5fb0", "#3390b5", "#3fb08a", "#b9b83f", "#e98b3a", "#d9534f"];
const FIXED = { right: "#3f9e63", wrong: "#d64f5e" };

export function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

const STOPS = SCALE.map(rgb);

export function onScale(part) {
  const at = Math.min(1, Math.max(0, part)) * (STOPS.length - 1);
  const low = Math.min(STOPS.length - 2, Math.floor(at)), rest = at - low;
  return STOPS[low].map((value, i) => Math.round(value + rest * (STOPS[low + 1][i] - value)));
}

export function scaleGradient() {
  return `linear-gradient(90deg, ${SCALE.join(", ")})`;
}

export function categoryColour(column, value) {
  if (value < 0) return ABSENT;
  return FIXED[column.categories[value]] || CATEGORIES[value % CATEGORIES.length];
}

// how numbers are spread over the scale: by their logarithm where a few are far larger than most
export function spread(values) {
  const seen = values.filter(Number.isFinite).sort();
  if (!seen.length) return { part: () => 0, low: 0, high: 0, log: false };
  const low = seen[0], high = seen[seen.length - 1], middle = seen[seen.length >> 1];
  const log = low >= 0 && high > 20 && high > 8 * Math.max(middle, 1e-9);
  const bent = log ? (value) => Math.log1p(value) : (value) => value;
  const from = bent(low), range = bent(high) - from || 1;
  return { part: (value) => (bent(value) - from) / range, low, high, log };
}
