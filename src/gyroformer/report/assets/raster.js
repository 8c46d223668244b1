// The renderer of a machine without a graphics card: nodes and edges pixel by pixel into the picture's own memory.
// It is many times faster there than WebGL2 in software, and needs nothing but a canvas.

const QUARTER = 4; // radii of nodes are kept in quarters of a pixel

export class Raster {
  constructor() {
    this.name = "canvas";
    this.sprites = new Map();
    this.fades = new WeakMap();
  }

  // draws over what the pen has drawn
  draw(scene, pen) {
    const { width, height } = scene, image = pen.getImageData(0, 0, width, height);
    const pixels = new Uint32Array(image.data.buffer);
    if (scene.edges > 0) this.drawEdges(scene, pixels);
    this.drawPoints(scene, pixels);
    pen.putImageData(image, 0, 0);
  }

  drawPoints(scene, pixels) {
    const { now, style, width, height, scale, head, ground } = scene, { colours, sizes } = style;
    const sphere = head.kind === "spherical", rim = ground[0] | (ground[1] << 8) | (ground[2] << 16);
    for (let i = 0; i < sizes.length; i++) {
      const x = Math.round(width / 2 + now[3 * i] * scale), y = Math.round(height / 2 - now[3 * i + 1] * scale);
      const sprite = this.sprite(Math.max(1, scene.pointSize * sizes[i]));
      if (x < -sprite.reach || y < -sprite.reach || x >= width + sprite.reach || y >= height + sprite.reach) continue;
      const colour = colours[4 * i] | (colours[4 * i + 1] << 8) | (colours[4 * i + 2] << 16);
      const alpha = (colours[4 * i + 3] * (sphere && now[3 * i + 2] < 0 ? 0.22 : 1) * 257) >> 8;
      const inside = x >= sprite.reach && y >= sprite.reach && x < width - sprite.reach && y < height - sprite.reach;
      const { dx, dy, cover, edge } = sprite;
      for (let p = 0; p < cover.length; p++) {
        const px = x + dx[p], py = y + dy[p];
        if (!inside && (px < 0 || py < 0 || px >= width || py >= height)) continue;
        const at = py * width + px;
        pixels[at] = mix(pixels[at], edge[p] ? mix(colour, rim, edge[p]) : colour, (alpha * cover[p]) >> 8);
      }
    }
  }

  // the pixels of a disc, with how much of each it covers, and how much of that is its rim
  sprite(radius) {
    const key = Math.round(radius * QUARTER);
    let found = this.sprites.get(key);
    if (found) return found;
    const size = key / QUARTER, reach = Math.ceil(size), list = [];
    for (let dy = -reach; dy <= reach; dy++) for (let dx = -reach; dx <= reach; dx++) {
      const far = Math.hypot(dx, dy), cover = Math.min(1, Math.max(0, size + 0.5 - far));
      if (cover > 0) list.push([dx, dy, Math.round(256 * cover), size > 2.5 ? Math.round(192 * Math.min(1, Math.max(0, far - size + 1))) : 0]);
    }
    const [dx, dy, cover, edge] = [0, 1, 2, 3].map((part) => Int16Array.from(list, (one) => one[part]));
    found = { dx, dy, cover, edge, reach };
    this.sprites.set(key, found);
    return found;
  }

  // how much of an edge's colour is left by its length, which no motion changes
  fade(scene) {
    let found = this.fades.get(scene.head);
    if (!found) {
      const { head, typical, run } = scene, { source, target } = run.graph, { space, points } = head;
      const unit = head.kind === "flat" ? 1 / space.unit : space.root;
      found = Uint8Array.from(source, (_, e) => {
        const [a, b] = [3 * source[e], 3 * target[e]];
        const far = (space.distance(points.subarray(a, a + 3), points.subarray(b, b + 3)) * unit) / typical;
        return Math.max(6, 255 / (1 + 0.55 * far * far));
      });
      this.fades.set(head, found);
    }
    return found;
  }

  drawEdges(scene, pixels) {
    const { now, head, edges, run, edgeColour } = scene, { source, target } = run.graph, fade = this.fade(scene);
    const pen = {
      pixels, width: scene.width, height: scene.height, scale: scene.scale, kind: head.kind,
      colour: edgeColour[0] | (edgeColour[1] << 8) | (edgeColour[2] << 16), alpha: 0,
    };
    // evenly over all edges, if not all are to be drawn
    const stride = source.length / edges;
    for (let i = 0; i < edges; i++) {
      const e = Math.floor(i * stride), a = 3 * source[e], b = 3 * target[e];
      pen.alpha = Math.max(1, Math.round(scene.edgeAlpha * fade[e]));
      arc(pen, now[a], now[a + 1], now[a + 2], now[b], now[b + 1], now[b + 2], 4);
    }
  }
}

function mix(under, over, alpha) {
  const rest = 256 - alpha;
  const redBlue = (((under & 0xff00ff) * rest + (over & 0xff00ff) * alpha) >>> 8) & 0xff00ff;
  const green = (((under & 0xff00) * rest + (over & 0xff00) * alpha) >>> 8) & 0xff00;
  return 0xff000000 | redBlue | green;
}

// a shortest path, halved until its parts are short enough to be straight
function arc(pen, ax, ay, az, bx, by, bz, depth) {
  const wide = (Math.abs(ax - bx) + Math.abs(ay - by)) * pen.scale;
  if (pen.kind === "flat" || depth === 0 || wide < 9) return line(pen, ax, ay, bx, by, az + bz < 0);
  let mx = (ax + bx) / 2, my = (ay + by) / 2, mz = 0;
  if (pen.kind === "spherical") {
    const size = Math.hypot(mx, my, (az + bz) / 2) || 1;
    mz = (az + bz) / 2 / size;
    mx /= size;
    my /= size;
  } else {
    // the circle through both that meets the disc's own at right angles: its middle is c, and c·p = (1 + |p|²)/2
    const turn = ax * by - ay * bx;
    if (Math.abs(turn) < 1e-5) return line(pen, ax, ay, bx, by, false);
    const u = (1 + ax * ax + ay * ay) / 2, v = (1 + bx * bx + by * by) / 2;
    const cx = (u * by - v * ay) / turn, cy = (ax * v - bx * u) / turn;
    const grow = Math.sqrt(Math.max(0, cx * cx + cy * cy - 1)) / (Math.hypot(mx - cx, my - cy) || 1);
    mx = cx + (mx - cx) * grow;
    my = cy + (my - cy) * grow;
  }
  arc(pen, ax, ay, az, mx, my, mz, depth - 1);
  arc(pen, mx, my, mz, bx, by, bz, depth - 1);
}

function line(pen, ax, ay, bx, by, behind) {
  const { pixels, width, height, scale, colour } = pen, alpha = behind ? pen.alpha >> 2 : pen.alpha;
  let x = width / 2 + ax * scale, y = height / 2 - ay * scale;
  const dx = (bx - ax) * scale, dy = (ay - by) * scale;
  const steps = Math.max(1, Math.ceil(Math.max(Math.abs(dx), Math.abs(dy))));
  if ((x < 0 && x + dx < 0) || (y < 0 && y + dy < 0) || (x >= width && x + dx >= width) || (y >= height && y + dy >= height)) return;
  if (steps > 6 * (width + height)) return; // far outside at a great zoom
  const sx = dx / steps, sy = dy / steps, high = Math.abs(sx) >= Math.abs(sy);
  for (let i = 0; i < steps; i++, x += sx, y += sy) {
    if (x < 0 || y < 0 || x >= width - 1 || y >= height - 1) continue;
    // shared by the two pixels that it passes between
    const px = x | 0, py = y | 0, at = py * width + px, part = high ? y - py : x - px, next = high ? at + width : at + 1;
    const second = (alpha * part) | 0;
    pixels[at] = mix(pixels[at], colour, alpha - second);
    if (second > 2) pixels[next] = mix(pixels[next], colour, second);
  }
}
