// What is drawn with a pen below and above the nodes: the space's own marks, what is selected, and names.
import { rgb } from "./colours.js";

const NAMES_AT_MOST = 40;
const LINKS_AT_MOST = 400;
const NEAR_AT_MOST = 6; // nearest nodes without an edge that get a line; the list has them all

export function drawGround(pen, view) {
  const { head, theme, width, height } = view, [cx, cy] = [width / 2, height / 2];
  pen.fillStyle = theme.ground;
  pen.fillRect(0, 0, width, height);
  if (head.kind !== "flat") {
    pen.beginPath();
    pen.arc(cx, cy, view.scale, 0, 7);
    pen.fillStyle = theme.disc;
    pen.fill();
    pen.strokeStyle = theme.rim;
    pen.lineWidth = view.ratio * 1.25;
    pen.stroke();
  }
  drawRings(pen, view, cx, cy);
}

// circles around the middle, each with its distance from it
function drawRings(pen, view, cx, cy) {
  const { head, theme, ratio } = view;
  pen.strokeStyle = theme.ring;
  pen.fillStyle = theme.faint;
  pen.lineWidth = ratio;
  pen.font = `${10 * ratio}px ${theme.font}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  let last = 0;
  for (const distance of ringDistances(view)) {
    const radius = head.space.ring(distance);
    if (radius == null || radius * view.scale - last < 22 * ratio) continue;
    last = radius * view.scale;
    pen.beginPath();
    pen.arc(cx, cy, last, 0, 7);
    pen.stroke();
    const [x, y] = [cx + last * Math.SQRT1_2, cy + last * Math.SQRT1_2];
    const text = String(+distance.toPrecision(3)), wide = pen.measureText(text).width + 6 * ratio;
    pen.save();
    pen.fillStyle = head.kind === "flat" ? theme.ground : theme.discSolid;
    pen.fillRect(x - wide / 2, y - 6 * ratio, wide, 12 * ratio);
    pen.restore();
    pen.fillText(text, x, y);
  }
}

function ringDistances({ head, zoom }) {
  const space = head.space;
  const most = head.kind === "spherical" ? Math.min(head.reach, Math.PI / 2 / space.root) : head.reach;
  const rough = (most * (head.kind === "flat" ? 1.4 : 1)) / 4 / Math.max(1, zoom / space.fit);
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) || power;
  return Array.from({ length: 12 }, (_, i) => (i + 1) * step).filter((d) => d < most * 1.6);
}

// the selected node with its neighbours (full lines) and its nearest nodes that are none (dashed)
export function drawSelection(pen, view, focus) {
  if (!focus) return;
  const { theme, ratio, now, head } = view;
  const at = (i) => now.subarray(3 * i, 3 * i + 3);
  const stroke = (others, colour, dash) => {
    pen.strokeStyle = colour;
    // many lines are thin, so that what lies below them is seen
    pen.lineWidth = (others.length > 30 ? 0.8 : 1.5) * ratio;
    pen.setLineDash(dash);
    pen.beginPath();
    for (const { node } of others.slice(0, LINKS_AT_MOST)) {
      head.space.path(at(focus.node), at(node), 24).forEach(([x, y], i) => {
        const [px, py] = view.toPixels(x, y);
        if (i) pen.lineTo(px, py); else pen.moveTo(px, py);
      });
    }
    pen.stroke();
    pen.setLineDash([]);
  };
  const apart = focus.nearest.filter((one) => !one.edge).slice(0, NEAR_AT_MOST);
  stroke(apart, theme.near, [3 * ratio, 4 * ratio]);
  stroke(focus.neighbours, theme.accent, []);
  for (const { node } of apart) ring(pen, view, node, theme.near, 1.6);
  for (const { node } of focus.neighbours.slice(0, LINKS_AT_MOST)) ring(pen, view, node, theme.accent, 1.6);
  ring(pen, view, focus.node, theme.ink, 3);
}

function ring(pen, view, node, colour, thick) {
  const [x, y] = view.toPixels(view.now[3 * node], view.now[3 * node + 1]);
  const size = view.radius(node);
  pen.beginPath();
  pen.arc(x, y, size + (thick > 2 ? 3 : 1.5) * view.ratio, 0, 7);
  pen.strokeStyle = colour;
  pen.lineWidth = thick * view.ratio * 0.8;
  pen.stroke();
}

// names of nodes where there is room: the important ones first
export function drawNames(pen, view, order, always) {
  const { theme, ratio, run, now, head } = view, taken = [];
  pen.font = `${11 * ratio}px ${theme.font}`;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  let drawn = 0;
  for (const node of [...always, ...order]) {
    const must = always.includes(node);
    if (!must && drawn >= NAMES_AT_MOST) break;
    if (head.kind === "spherical" && now[3 * node + 2] < 0 && !must) continue;
    const [x, y] = view.toPixels(now[3 * node], now[3 * node + 1]);
    if (x < 0 || y < 0 || x > view.width || y > view.height) continue;
    const id = run.graph.ids[node], text = id.length > 28 ? `${id.slice(0, 27)}…` : id;
    const wide = pen.measureText(text).width, gap = view.radius(node) + 4 * ratio;
    const left = x + gap + wide > view.width - 2 ? x - gap - wide : x + gap;
    const box = [left - 2, y - 8 * ratio, left + wide + 2, y + 8 * ratio];
    if (!must && taken.some((b) => box[0] < b[2] && box[2] > b[0] && box[1] < b[3] && box[3] > b[1])) continue;
    taken.push(box);
    drawn++;
    pen.lineWidth = 3 * ratio;
    pen.strokeStyle = theme.halo;
    pen.strokeText(text, left, y);
    pen.fillStyle = must ? theme.ink : theme.muted;
    pen.fillText(text, left, y);
  }
}

export function drawOutline(pen, view, outline) {
  if (!outline || outline.length < 2) return;
  const [r, g, b] = rgb(view.theme.accent);
  pen.beginPath();
  outline.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.closePath();
  pen.fillStyle = `rgba(${r}, ${g}, ${b}, 0.12)`;
  pen.fill();
  pen.strokeStyle = view.theme.accent;
  pen.lineWidth = 1.25 * view.ratio;
  pen.setLineDash([5 * view.ratio, 4 * view.ratio]);
  pen.stroke();
  pen.setLineDash([]);
}
