// The three spaces of two dimensions: where points lie, the isometries that move them, and shortest paths.
//
// A point is where the map shows it, (x, y) in units of the map, y upwards; a point of the sphere has its depth z too.
// Every motion of a view is an isometry: the picture changes, no distance does. All in double precision.

// ---- hyperbolic: the Poincaré disc; z ↦ (αz + β)/(β̄z + ᾱ) with |α|² − |β|² = 1, kept as [α, β]

class Hyperbolic {
  constructor(head) {
    this.root = Math.sqrt(-head.k);
    // the whole disc, or its middle part if the nodes take no more room
    this.fit = Math.min(3.2, Math.max(1, 0.82 / Math.tanh((this.root * head.reach) / 2)));
  }

  place(x, y) {
    const far = Math.hypot(x, y);
    const size = far ? Math.tanh((this.root * far) / 2) / far : 0;
    return [x * size, y * size, 0];
  }

  identity() {
    return [1, 0, 0, 0];
  }

  apply([ar, ai, br, bi], points, out) {
    for (let i = 0; i < points.length; i += 3) {
      const x = points[i], y = points[i + 1];
      const nr = ar * x - ai * y + br, ni = ar * y + ai * x + bi;
      const dr = br * x + bi * y + ar, di = br * y - bi * x - ai;
      const size = dr * dr + di * di;
      out[i] = (nr * dr + ni * di) / size;
      out[i + 1] = (ni * dr - nr * di) / size;
    }
  }

  // the translation that takes the middle to (x, y), then what was there before it
  moved([ar, ai, br, bi], x, y) {
    const grow = 1 / Math.sqrt(Math.max(1e-15, 1 - x * x - y * y));
    const a = [grow * (ar + x * br + y * bi), grow * (ai + y * br - x * bi)];
    const b = [grow * (br + x * ar + y * ai), grow * (bi + y * ar - x * ai)];
    const norm = Math.sqrt(a[0] * a[0] + a[1] * a[1] - b[0] * b[0] - b[1] * b[1]);
    return [a[0] / norm, a[1] / norm, b[0] / norm, b[1] / norm];
  }

  drag(isometry, from, to) {
    const [a, b] = [inside(from), inside(to)];
    return this.moved(this.moved(isometry, -a[0], -a[1]), b[0], b[1]);
  }

  centred(isometry, [x, y], part) {
    const size = Math.hypot(x, y);
    if (!size) return isometry;
    const step = Math.tanh(part * Math.atanh(Math.min(size, 1 - 1e-12))) / size;
    return this.moved(isometry, -x * step, -y * step);
  }

  distance([px, py], [qx, qy]) {
    const apart = Math.hypot(px - qx, py - qy);
    const room = Math.sqrt(Math.max(0, 1 - px * px - py * py) * Math.max(0, 1 - qx * qx - qy * qy));
    return (2 * Math.asinh(apart / room)) / this.root;
  }

  path([px, py], [qx, qy], steps) {
    // w = −p ⊕ q, then p ⊕ (t ⊗ w)
    const dr = 1 - px * qx - py * qy, di = py * qx - px * qy;
    const size = dr * dr + di * di;
    const wr = ((qx - px) * dr + (qy - py) * di) / size, wi = ((qy - py) * dr - (qx - px) * di) / size;
    const far = Math.min(Math.hypot(wr, wi), 1 - 1e-12);
    const way = [];
    for (let i = 0; i <= steps; i++) {
      const grow = far ? Math.tanh((i / steps) * Math.atanh(far)) / far : 0;
      const tr = wr * grow, ti = wi * grow;
      const er = 1 + px * tr + py * ti, ei = px * ti - py * tr;
      const all = er * er + ei * ei;
      way.push([((tr + px) * er + (ti + py) * ei) / all, ((ti + py) * er - (tr + px) * ei) / all, 0]);
    }
    return way;
  }

  ring(distance) {
    return Math.tanh((this.root * distance) / 2);
  }
}

function inside([x, y]) {
  const size = Math.hypot(x, y);
  return size < 0.97 ? [x, y] : [(x / size) * 0.97, (y / size) * 0.97];
}

// ---- spherical: the globe seen from far away; isometries are rotations, kept as a matrix row by row

class Spherical {
  constructor(head) {
    this.root = Math.sqrt(head.k);
    const angle = this.root * head.reach;
    this.fit = angle < Math.PI / 2 ? Math.min(8, Math.max(1, 0.9 / Math.sin(angle))) : 1;
  }

  place(x, y) {
    const far = Math.hypot(x, y), angle = this.root * far;
    const size = far ? Math.sin(angle) / far : 0;
    return [x * size, y * size, Math.cos(angle)];
  }

  identity() {
    return [1, 0, 0, 0, 1, 0, 0, 0, 1];
  }

  apply(m, points, out) {
    for (let i = 0; i < points.length; i += 3) {
      const x = points[i], y = points[i + 1], z = points[i + 2];
      out[i] = m[0] * x + m[1] * y + m[2] * z;
      out[i + 1] = m[3] * x + m[4] * y + m[5] * z;
      out[i + 2] = m[6] * x + m[7] * y + m[8] * z;
    }
  }

  // after the isometry, the shortest turn that takes the direction a to b, or a part of it
  turned(m, a, b, part = 1) {
    const cross = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    const sine = Math.hypot(...cross), cosine = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    const axis = sine > 1e-12 ? cross.map((c) => c / sine) : [1, 0, 0];
    const angle = part * Math.atan2(sine, cosine);
    const c = Math.cos(angle), s = Math.sin(angle), [u, v, w] = axis, r = 1 - c;
    const turn = [
      c + u * u * r, u * v * r - w * s, u * w * r + v * s,
      v * u * r + w * s, c + v * v * r, v * w * r - u * s,
      w * u * r - v * s, w * v * r + u * s, c + w * w * r,
    ];
    return orthonormal(product(turn, m));
  }

  drag(m, from, to) {
    return this.turned(m, onGlobe(from), onGlobe(to));
  }

  centred(m, point, part) {
    return this.turned(m, point, [0, 0, 1], part);
  }

  distance(p, q) {
    return (2 * Math.asin(Math.min(1, Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]) / 2))) / this.root;
  }

  path(p, q, steps) {
    const angle = this.distance(p, q) * this.root, sine = Math.sin(angle);
    const way = [];
    for (let i = 0; i <= steps; i++) {
      const t = i / steps;
      const a = sine > 1e-9 ? Math.sin((1 - t) * angle) / sine : 1 - t;
      const b = sine > 1e-9 ? Math.sin(t * angle) / sine : t;
      way.push([a * p[0] + b * q[0], a * p[1] + b * q[1], a * p[2] + b * q[2]]);
    }
    return way;
  }

  ring(distance) {
    const angle = this.root * distance;
    return angle <= Math.PI / 2 ? Math.sin(angle) : null;
  }
}

function onGlobe([x, y]) {
  const size = x * x + y * y;
  if (size < 1) return [x, y, Math.sqrt(1 - size)];
  const root = Math.sqrt(size);
  return [x / root, y / root, 0];
}

function product(a, b) {
  const out = [];
  for (let row = 0; row < 9; row += 3) {
    for (let col = 0; col < 3; col++) out.push(a[row] * b[col] + a[row + 1] * b[3 + col] + a[row + 2] * b[6 + col]);
  }
  return out;
}

// many small turns add up rounding: the rows are made perpendicular again
function orthonormal(m) {
  const unit = (v) => { const size = Math.hypot(...v); return v.map((c) => c / size); };
  const a = unit(m.slice(0, 3));
  const dot = a[0] * m[3] + a[1] * m[4] + a[2] * m[5];
  const b = unit([m[3] - dot * a[0], m[4] - dot * a[1], m[5] - dot * a[2]]);
  return [...a, ...b, a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
}

// ---- flat: the plane, one unit of the map is the farthest node's distance; isometries are shifts

class Flat {
  constructor(head) {
    this.unit = head.reach || 1;
    this.fit = 0.92;
  }

  place(x, y) {
    return [x / this.unit, y / this.unit, 0];
  }

  identity() {
    return [0, 0];
  }

  apply([tx, ty], points, out) {
    for (let i = 0; i < points.length; i += 3) {
      out[i] = points[i] + tx;
      out[i + 1] = points[i + 1] + ty;
    }
  }

  drag([tx, ty], from, to) {
    return [tx + to[0] - from[0], ty + to[1] - from[1]];
  }

  centred([tx, ty], [x, y], part) {
    return [tx - part * x, ty - part * y];
  }

  distance(p, q) {
    return Math.hypot(p[0] - q[0], p[1] - q[1]) * this.unit;
  }

  path(p, q) {
    return [p, q];
  }

  ring(distance) {
    return distance / this.unit;
  }
}

const SPACES = { hyperbolic: Hyperbolic, spherical: Spherical, flat: Flat };

export function spaceOf(head) {
  return new SPACES[head.kind](head);
}
