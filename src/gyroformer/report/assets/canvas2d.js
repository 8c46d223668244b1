// The renderer of a browser without WebGL2: the same picture, more slowly; edges in motion are left out.

export class Canvas2D {
  constructor() {
    this.name = "canvas";
    this.canvas = document.createElement("canvas");
    this.pen = this.canvas.getContext("2d");
  }

  draw(scene) {
    const { canvas, pen } = this, { width, height, now, style, head, scale } = scene;
    canvas.width = width;
    canvas.height = height;
    pen.clearRect(0, 0, width, height);
    const place = (x, y) => [width / 2 + x * scale, height / 2 - y * scale];
    if (scene.edges > 0) this.drawEdges(scene, place);
    for (let i = 0; i < now.length / 3; i++) {
      const [r, g, b, a] = style.colours.subarray(4 * i, 4 * i + 4);
      const behind = head.kind === "spherical" && now[3 * i + 2] < 0 ? 0.22 : 1;
      pen.fillStyle = `rgba(${r}, ${g}, ${b}, ${(a / 255) * behind})`;
      const [x, y] = place(now[3 * i], now[3 * i + 1]), size = Math.max(1, scene.pointSize * style.sizes[i]);
      if (size < 2) pen.fillRect(x - size, y - size, 2 * size, 2 * size);
      else { pen.beginPath(); pen.arc(x, y, size, 0, 7); pen.fill(); }
    }
    return { image: canvas, top: 0 };
  }

  drawEdges({ run, now, head, edges, moving, edgeColour, edgeAlpha, steps, width }, place) {
    const { source, target } = run.graph, { pen } = this;
    if (moving && edges > 4000) return;
    const every = Math.max(1, Math.floor(source.length / Math.min(edges, 20_000)));
    pen.strokeStyle = `rgba(${edgeColour.join(", ")}, ${edgeAlpha})`;
    pen.lineWidth = Math.max(1, width / 900);
    pen.beginPath();
    for (let e = 0; e < source.length; e += every) {
      const ends = [source[e], target[e]].map((i) => now.subarray(3 * i, 3 * i + 3));
      const way = head.space.path(...ends, Math.min(steps, 6));
      way.forEach(([x, y], i) => (i ? pen.lineTo(...place(x, y)) : pen.moveTo(...place(x, y))));
    }
    pen.stroke();
  }
}
