// What the page knows: graphs with their edges, and runs with heads, nearest nodes and columns.
import { readArray } from "./unpack.js";
import { spaceOf } from "./spaces.js";

export class Graph {
  constructor(about, arrays) {
    this.ids = about.ids;
    this.size = about.ids.length;
    this.places = new Map(about.ids.map((id, place) => [id, place]));
    this.known = Boolean(about.counts);
    this.source = new Uint32Array(0);
    this.target = new Uint32Array(0);
    if (this.known) this.readEdges(readArray(arrays, about.counts), readArray(arrays, about.gaps));
    this.join();
  }

  readEdges(counts, gaps) {
    this.source = new Uint32Array(gaps.length);
    this.target = new Uint32Array(gaps.length);
    let edge = 0;
    for (let node = 0; node < this.size; node++) {
      let last = node;
      for (let i = 0; i < counts[node]; i++, edge++) {
        last += gaps[edge];
        this.source[edge] = node;
        this.target[edge] = last;
      }
    }
  }

  // the neighbours of each node, ascending, each with the number of its edge
  join() {
    const { source, target } = this;
    this.start = new Uint32Array(this.size + 1);
    for (let e = 0; e < source.length; e++) { this.start[source[e] + 1]++; this.start[target[e] + 1]++; }
    for (let node = 0; node < this.size; node++) this.start[node + 1] += this.start[node];
    this.other = new Uint32Array(2 * source.length);
    this.edge = new Uint32Array(2 * source.length);
    const next = this.start.slice();
    for (let e = 0; e < source.length; e++) {
      for (const [a, b] of [[source[e], target[e]], [target[e], source[e]]]) {
        this.other[next[a]] = b;
        this.edge[next[a]++] = e;
      }
    }
  }

  degree(node) {
    return this.start[node + 1] - this.start[node];
  }
}

export class Run {
  constructor(about, graph, arrays) {
    Object.assign(this, { name: about.name, task: about.task, model: about.model, note: about.note, graph });
    this.firstColour = about.colour;
    this.decoder = about.decoder;
    this.heads = about.heads.map((head) => new Head(head, arrays));
    this.columns = about.columns.map((column) => readColumn(column, arrays));
    this.columns.push(fromCentre(this.heads));
    this.lengths = about.lengths ? readArray(arrays, about.lengths) : null;
    this.readNear(about.near, arrays);
  }

  // a code below the number of neighbours is the rank of one, and its distance the edge's length; the distance of
  // another one is so many steps more than that of the one before
  readNear({ count, codes, gaps, step }, arrays) {
    const { graph } = this, coded = readArray(arrays, codes), further = readArray(arrays, gaps);
    this.nearCount = count;
    this.near = new Uint32Array(coded.length);
    this.nearDistance = new Float64Array(coded.length);
    let at = 0;
    for (let i = 0; i < coded.length; i++) {
      const node = Math.floor(i / count), degree = graph.degree(node);
      if (coded[i] < degree) {
        const place = graph.start[node] + coded[i];
        this.near[i] = graph.other[place];
        this.nearDistance[i] = this.lengths[graph.edge[place]];
      } else {
        this.near[i] = coded[i] - degree;
        this.nearDistance[i] = (i % count ? this.nearDistance[i - 1] : 0) + further[at++] * step;
      }
    }
  }

  // the nodes nearest to a node, nearest first
  nearest(node) {
    const joined = new Set(this.graph.other.subarray(this.graph.start[node], this.graph.start[node + 1]));
    const found = [];
    for (let i = node * this.nearCount; i < (node + 1) * this.nearCount; i++) {
      found.push({ node: this.near[i], distance: this.nearDistance[i], edge: joined.has(this.near[i]) });
    }
    return found;
  }

  // the neighbours of a node in the graph, nearest first
  neighbours(node) {
    const found = [];
    for (let i = this.graph.start[node]; i < this.graph.start[node + 1]; i++) {
      found.push({ node: this.graph.other[i], distance: this.lengths[this.graph.edge[i]], edge: true });
    }
    return found.sort((a, b) => a.distance - b.distance);
  }

  column(name) {
    return this.columns.find((column) => column.name === name);
  }

  // of an edge between nodes that far apart, by the decoder of a link run
  edgeProbability(distance) {
    if (!this.decoder) return null;
    const far = this.decoder.kind === "distance" ? distance : distance * distance;
    return 1 / (1 + Math.exp((far - this.decoder.radius) / this.decoder.temperature));
  }
}

export class Head {
  constructor(about, arrays) {
    Object.assign(this, about);
    this.space = spaceOf(about);
    const x = readArray(arrays, about.x), y = readArray(arrays, about.y);
    this.far = new Float64Array(x.length);
    this.points = new Float64Array(3 * x.length);
    for (let i = 0; i < x.length; i++) {
      this.far[i] = Math.hypot(x[i], y[i]);
      this.points.set(this.space.place(x[i], y[i]), 3 * i);
    }
    this.x = x;
    this.y = y;
  }
}

function readColumn(about, arrays) {
  const values = readArray(arrays, about.values);
  if (about.absent) for (const place of readArray(arrays, about.absent)) values[place] = NaN;
  return { ...about, values };
}

function fromCentre(heads) {
  const values = new Float64Array(heads[0].far.length);
  for (const head of heads) for (let i = 0; i < values.length; i++) values[i] += head.far[i] ** 2;
  return {
    name: "distance from the centre",
    note: "In the product of the heads, from the midpoint of all nodes.",
    values: values.map(Math.sqrt),
  };
}

// a cell of a column as text
export function cellText(column, node, format) {
  const value = column.values[node];
  if (column.categories) return value < 0 ? "none" : column.categories[value];
  return format(value);
}
