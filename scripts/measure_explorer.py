"""Measure the page of a large graph in a real browser: its size, the time to its first picture, frames a second.

    python scripts/measure_explorer.py --csv results/explorer.csv [--nodes 1000 10000 50000] [--edges-per-node 3]

Makes up runs of the given numbers of nodes (a tree that grows at its well-joined nodes, with chords between cousins,
placed as a hierarchy is, with noise, in a hyperbolic and a spherical head of 8 dimensions), writes their pages, opens
each in headless Chromium without a graphics card, and drags each head with all edges shown. A frame is one that the
browser painted: `requestAnimationFrame` callbacks in which the view drew, over the time of the drag. A file of a page
that was written before (``--keep FOLDER``) is measured again without being made.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from chromium import Chromium, find_chromium

from gyroformer.report.page import page
from gyroformer.report.record import RunGraph, RunRecord

WIDTH = 8
CURVATURES = (-0.8, 0.15)
COLUMNS = [
    *("nodes", "edges", "megabytes", "write_seconds", "first_picture_seconds", "head", "frames_per_second"),
    *("edges_in_motion", "renderer", "browser", "load"),
]
#: drags a circle around a view's middle for some seconds, a step a frame, and counts the frames that were drawn
DRAG = """
(async (index, seconds) => {
  const view = explorer.views[index], box = view.canvas.getBoundingClientRect();
  const fire = (type, x, y) => view.canvas.dispatchEvent(new PointerEvent(type, {
    clientX: x, clientY: y, pointerId: 1, pointerType: "pen", isPrimary: true, bubbles: true, button: 0, buttons: 1 }));
  view.canvas.setPointerCapture = () => {};
  const [cx, cy] = [box.left + box.width / 2, box.top + box.height / 2], r = box.width / 5;
  fire("pointerdown", cx + r, cy);
  let frames = explorer.frames, start = 0, angle = 0;
  await new Promise((done) => {
    const step = (now) => {
      if (!start && angle > 3) { start = now; frames = explorer.frames; }  // the first half turn is for the budget
      if (start && now - start > seconds * 1000) { done(); return; }
      angle += 0.12;
      fire("pointermove", cx + r * Math.cos(angle), cy + r * Math.sin(angle));
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
  const counted = explorer.frames - frames, took = (performance.now() - start) / 1000;
  const shown = Math.min(view.run.graph.source.length, Math.round(view.budget));
  fire("pointerup", cx, cy);
  return { fps: counted / took, edges: explorer.edgeMode === "all" ? shown : 0 };
})
"""


def made_up_run(nodes, per_node):
    draw = np.random.default_rng(0)
    parent = np.zeros(nodes, dtype=np.int64)
    ends = [0]
    for node in range(1, nodes):
        parent[node] = ends[draw.integers(len(ends))] if draw.random() < 0.7 else draw.integers(node)
        ends += [node, parent[node]]
    here = np.zeros((nodes, 2, WIDTH))
    for node in range(1, nodes):
        here[node] = here[parent[node]] + draw.normal(size=(2, WIDTH)) * [[0.25], [0.2]]
    child = np.arange(1, nodes)
    chords = (per_node - 1) * nodes
    first = draw.integers(1, nodes, chords)
    # the parent of the parent, or another node of about the same age
    near = np.where(
        draw.random(chords) < 0.5, parent[parent[first]], draw.integers(0, nodes, chords) % (first + 1)
    )
    edges = np.concatenate([np.stack([child, parent[1:]]), np.stack([first, near])], axis=1)
    edges = np.unique(np.sort(edges[:, edges[0] != edges[1]], axis=0), axis=1)
    ids = [f"node-{number}" for number in range(nodes)]
    results = {"task": "embed", "graph": "made up", "model": "fpst", "map": 50.0, "nodes": nodes, "epochs": 1}
    results |= {"edges": edges.shape[1], "curvatures": [list(CURVATURES)], "seconds": 1.0, "seed": 0}
    degree = np.bincount(edges.ravel(), minlength=nodes)
    return RunRecord(
        name="made-up",
        path=Path("made-up"),
        results={**results, "parameters": 0, "recipe": "default"},
        job={},
        model={},
        manifest={},
        rows=[{"epoch": 1, "loss": 1.0, "curvatures": list(CURVATURES), "metrics": {"map": 50.0}}],
        ids=ids,
        embedding=here,
        curvature=np.array(CURVATURES),
        probability=None,
        graph=RunGraph(edges=edges, degree=degree),
    )


def write_page(path, nodes, per_node):
    """Return the seconds that writing took; None if the page was there."""
    if path.exists():
        return None
    run = made_up_run(nodes, per_node)
    start = time.perf_counter()
    told = lambda done, of: print(f"\r{done:,} of {of:,} nodes", end="", file=sys.stderr)  # noqa: E731
    content = page([run], progress=told)
    seconds = time.perf_counter() - start
    path.write_text(content, encoding="utf-8")
    return seconds


def measure(path, wrote, seconds, webgl):
    with Chromium(webgl=webgl) as browser:
        shown = browser.open(path, fragment="webgl" if webgl else "")
        first = shown.run("explorer.firstPicture") / 1000
        about = shown.run(
            "({ nodes: explorer.runs[0].graph.size, edges: explorer.runs[0].graph.source.length })"
        )
        shown.run("explorer.edgeMode = 'all'; explorer.draw()")
        shown.run("document.querySelector('.views').scrollIntoView()")
        shown.frame()
        for head in range(len(CURVATURES)):
            found = shown.run(f"({DRAG})({head}, {seconds})")
            yield {
                **about,
                "megabytes": round(path.stat().st_size / 1e6, 3),
                "write_seconds": "" if wrote is None else round(wrote, 1),
                "first_picture_seconds": round(first, 3),
                "head": ("hyperbolic", "spherical")[head],
                "frames_per_second": round(found["fps"], 1),
                "edges_in_motion": found["edges"],
                "renderer": shown.run("explorer.renderer.name"),
                "browser": version(),
                "load": round(os.getloadavg()[0], 1),
            }
        complaints = shown.complaints()
        if complaints:
            raise SystemExit(f"the page complains: {complaints}")


def version():
    asked = subprocess.run([find_chromium(), "--version"], capture_output=True, text=True, check=True)
    return " ".join(asked.stdout.split()[:2])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 10_000, 50_000])
    parser.add_argument("--edges-per-node", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each drag")
    parser.add_argument("--webgl", action="store_true", help="WebGL2 in software, not our own renderer")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--keep", type=Path, help="a folder for the pages")
    options = parser.parse_args()
    if find_chromium() is None:
        raise SystemExit("Chromium is not installed: there is no browser to measure in")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for nodes in options.nodes:
            path = (options.keep or Path(folder)) / f"explorer-{nodes}.html"
            wrote = write_page(path, nodes, options.edges_per_node)
            rows += measure(path, wrote, options.seconds, options.webgl)
            print(rows[-2:], file=sys.stderr)
    file = options.csv.open("w", newline="") if options.csv else sys.stdout
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


if __name__ == "__main__":
    main()
