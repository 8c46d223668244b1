"""Fit spaces to graphs drawn from known ones, and see how often the interval covers the truth.

python scripts/measure_curvature_fit.py --csv results/curvature_fit.csv [--draws 40] [--spaces torus,sphere]

One row is one draw. ``truth`` is the curvature in hops. Draws that are in the file already are not made again.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np
import torch
from result_file import write_rows

import gyroformer as gf
from gyroformer.graphs.analysis.space_fit import SpaceFit, fit_space
from gyroformer.testing.spaces import Drawn, lattice, random_geometric

NODES, DEGREE = 800, 12.0
SPACES = ("torus", "sphere", "hyperbolic disc, radius 3")
#: lattices of 20 × 20, 24 × 24 ... places
LATTICE_SIZES = 3
LATTICES = ("square", "triangular", "honeycomb")
GRAPHS = ("web-edu", "power", "facebook", "bio-worm")


def row(
    kind: str, name: str, draw: int, found: SpaceFit, truth: float | None, seconds: float
) -> dict[str, object]:
    inside = truth is not None and (found.low is None or found.low <= truth)
    inside = inside and (found.high is None or (truth is not None and truth <= found.high))
    return {
        "kind": kind,
        "graph": name,
        "draw": draw,
        "nodes": found.nodes,
        "truth": "" if truth is None else f"{truth:.4f}",
        "curvature": f"{found.curvature:.4f}",
        "low": "" if found.low is None else f"{found.low:.4f}",
        "high": "" if found.high is None else f"{found.high:.4f}",
        "p_flat": f"{found.p_flat:.2g}",
        "verdict": found.verdict,
        "covered": "" if truth is None else int(inside),
        "error_flat": f"{found.error_flat:.3f}",
        "error_best": f"{found.error_best:.3f}",
        "processor_seconds": f"{seconds:.1f}",
    }


def drawn(kind: str, name: str, draw: int) -> Drawn:
    """Return a graph of known curvature; lattices of growing size."""
    if kind == "lattice":
        return lattice(name, 20 + 4 * draw)
    return random_geometric(name, NODES, DEGREE, np.random.default_rng(draw))


def measured(kind: str, name: str, draw: int) -> dict[str, object]:
    """Return the row of a draw, or of a data set."""
    if kind == "data":
        data = gf.load(name)
        edges, nodes = data.edge_index, int(data.num_nodes)
    else:
        graph = drawn(kind, name, draw)
        edges, nodes = graph.edges, graph.num_nodes
    began = time.process_time()
    found = fit_space(edges, nodes, seed=draw)
    seconds = time.process_time() - began
    truth = None if kind == "data" else graph.in_hops(2 * found.radius)
    return row(kind, name, draw, found, truth, seconds)


def main() -> None:
    """Measure what is missing and write it."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--csv", type=Path, required=True)
    words.add_argument("--draws", type=int, default=40)
    words.add_argument("--spaces", default=";".join(SPACES), help="names, between semicolons")
    given = words.parse_args()
    torch.set_num_threads(1)
    cases = [("lattice", name, draw) for draw in range(LATTICE_SIZES) for name in LATTICES]
    cases += [("data", name, 0) for name in GRAPHS]
    cases += [("space", name, draw) for draw in range(given.draws) for name in given.spaces.split(";")]
    rows: list[dict[str, object]] = []
    if given.csv.exists():
        rows = list(csv.DictReader(given.csv.open(encoding="utf-8")))  # type: ignore[arg-type]
    done = {(one["kind"], one["graph"], str(one["draw"])) for one in rows}
    for kind, name, draw in cases:
        if (kind, name, str(draw)) not in done:
            rows.append(measured(kind, name, draw))
            print(rows[-1], flush=True)
            write_rows(given.csv, rows)


if __name__ == "__main__":
    main()
