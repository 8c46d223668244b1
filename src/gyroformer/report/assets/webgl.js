// The renderer: one WebGL2 context for all views, whose picture each view copies. A browser allows few contexts.
import { EDGES, POINTS } from "./shaders.js";

const KINDS = { flat: 0, hyperbolic: 1, spherical: 2 };
const ROW = 1024; // nodes in a row of the texture

export class WebGL {
  static open() {
    const canvas = document.createElement("canvas");
    const gl = canvas.getContext("webgl2", { antialias: false, premultipliedAlpha: true });
    return gl ? new WebGL(canvas, gl) : null;
  }

  constructor(canvas, gl) {
    this.name = "WebGL2";
    this.canvas = canvas;
    this.gl = gl;
    this.points = program(gl, POINTS);
    this.edges = program(gl, EDGES);
    this.heads = new Map();
    this.runs = new Map();
    this.graphs = new Map();
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      const fresh = new WebGL(canvas, gl);
      Object.assign(this, { points: fresh.points, edges: fresh.edges });
      for (const kept of [this.heads, this.runs, this.graphs]) kept.clear();
    });
  }

  // whether there is a real graphics card behind it
  get fast() {
    const about = this.gl.getExtension("WEBGL_debug_renderer_info");
    const name = this.gl.getParameter(about ? about.UNMASKED_RENDERER_WEBGL : this.gl.RENDERER);
    return !/swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
  }

  // the picture of a head as it lies now, in device pixels, over what the pen has drawn
  draw(scene, pen) {
    const { gl, canvas } = this, { width, height } = scene;
    if (canvas.width < width) canvas.width = width;
    if (canvas.height < height) canvas.height = height;
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    this.sendNodes(scene);
    if (scene.edges > 0) this.drawEdges(scene);
    this.drawPoints(scene);
    pen.drawImage(canvas, 0, canvas.height - height, width, height, 0, 0, width, height);
  }

  sendNodes({ head, now, version }) {
    const { gl } = this;
    let kept = this.heads.get(head);
    const rows = Math.ceil(now.length / 3 / ROW);
    if (!kept) {
      kept = { texture: gl.createTexture(), values: new Float32Array(ROW * rows * 4), version: -1 };
      gl.bindTexture(gl.TEXTURE_2D, kept.texture);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, ROW, rows, 0, gl.RGBA, gl.FLOAT, null);
      nearestTexel(gl);
      this.heads.set(head, kept);
    }
    gl.bindTexture(gl.TEXTURE_2D, kept.texture);
    if (kept.version === version) return;
    const { values } = kept;
    for (let i = 0, j = 0; i < now.length; i += 3, j += 4) {
      values[j] = now[i];
      values[j + 1] = now[i + 1];
      values[j + 2] = now[i + 2];
    }
    gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, ROW, rows, gl.RGBA, gl.FLOAT, values);
    kept.version = version;
  }

  use({ gl, at }, scene) {
    this.gl.useProgram(gl);
    this.gl.uniform2f(at("u_scale"), (2 * scene.scale) / scene.width, (2 * scene.scale) / scene.height);
    this.gl.uniform1i(at("u_kind"), KINDS[scene.head.kind]);
  }

  drawPoints(scene) {
    const { gl } = this, { style, run } = scene, count = scene.now.length / 3;
    let kept = this.runs.get(run);
    if (!kept) {
      kept = { array: gl.createVertexArray(), colours: gl.createBuffer(), sizes: gl.createBuffer(), version: -1 };
      this.runs.set(run, kept);
      gl.bindVertexArray(kept.array);
      attribute(gl, kept.colours, 0, 4, gl.UNSIGNED_BYTE, true);
      attribute(gl, kept.sizes, 1, 1, gl.FLOAT, false);
    }
    gl.bindVertexArray(kept.array);
    if (kept.version !== style.version) {
      for (const [buffer, values] of [[kept.colours, style.colours], [kept.sizes, style.sizes]]) {
        gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
        gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
      }
      kept.version = style.version;
    }
    this.use(this.points, scene);
    gl.uniform1f(this.points.at("u_size"), scene.pointSize);
    gl.uniform4f(this.points.at("u_ground"), ...scene.ground.map((value) => value / 255), 1);
    gl.drawArrays(gl.POINTS, 0, count);
  }

  drawEdges(scene) {
    const { gl } = this, { graph } = scene.run;
    let kept = this.graphs.get(graph);
    gl.activeTexture(gl.TEXTURE1);
    if (!kept) {
      kept = { array: gl.createVertexArray(), texture: gl.createTexture() };
      this.graphs.set(graph, kept);
      const rows = Math.ceil(graph.source.length / ROW);
      gl.bindTexture(gl.TEXTURE_2D, kept.texture);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RG32UI, ROW, rows, 0, gl.RG_INTEGER, gl.UNSIGNED_INT, mixedEdges(graph, ROW * rows));
      nearestTexel(gl);
    }
    gl.bindTexture(gl.TEXTURE_2D, kept.texture);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindVertexArray(kept.array);
    this.use(this.edges, scene);
    const steps = scene.head.kind === "flat" ? 1 : scene.steps;
    gl.uniform1i(this.edges.at("u_edges"), 1);
    gl.uniform1i(this.edges.at("u_steps"), steps);
    gl.uniform1f(this.edges.at("u_typical"), scene.typical);
    gl.uniform4f(this.edges.at("u_colour"), ...scene.edgeColour.map((value) => value / 255), scene.edgeAlpha);
    gl.drawArrays(gl.LINES, 0, 2 * steps * scene.edges);
  }
}

// in an order in which every beginning is a fair sample: a view in motion may draw only some
function mixedEdges({ source, target }, room) {
  const order = Uint32Array.from(source, (_, i) => i);
  let seed = 12345;
  for (let i = order.length - 1; i > 0; i--) {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    const j = Math.floor((seed / 4294967296) * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  const ends = new Uint32Array(2 * room);
  order.forEach((edge, i) => { ends[2 * i] = source[edge]; ends[2 * i + 1] = target[edge]; });
  return ends;
}

function nearestTexel(gl) {
  for (const side of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, side, gl.NEAREST);
}

function attribute(gl, buffer, place, size, type, normal) {
  gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
  gl.enableVertexAttribArray(place);
  gl.vertexAttribPointer(place, size, type, normal, 0, 0);
}

function program(gl, { vertex, fragment }) {
  const made = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS) && !gl.isContextLost()) {
    throw new Error(`the graphics program was refused: ${gl.getProgramInfoLog(made)}`);
  }
  const places = {};
  return { gl: made, at: (name) => (places[name] ??= gl.getUniformLocation(made, name)) };
}
