"""Fit spaces to graphs drawn from known ones, and see how often the interval covers the truth.

python scripts/measure_curvature_fit.py --csv results/curvature_fit.csv --first-draw 100 [--draws 40]
    [--spaces "torus;sphere"] [--nodes 800] [--degree 12]

One row is one draw; lattices and data sets are measured as well. ``truth`` is the curvature in hops. What is in the
file already is not measured again, so that other sizes and degrees can be added.
"""

import argparse
import csv
import dataclasses as dc
import time
from pathlib import Path

import numpy as np
import torch
from result_file import write_rows

import gyroformer as gf
from gyroformer.graphs.analysis.space_fit import SpaceFit, fit_space
from gyroformer.testing.spaces import Drawn, lattice, random_geometric

SPACES = ("torus", "sphere", "hyperbolic disc, radius 3")
#: lattices of 20 × 20, 24 × 24 ... places
LATTICE_SIZES = 3
LATTICES = ("square", "triangular", "honeycomb")
GRAPHS = ("web-edu", "power", "facebook", "bio-worm")


@dc.dataclass(frozen=True)
class Case:
    """A graph to measure; ``nodes`` and ``degree`` are those asked for of a random one, 0 of others."""

    kind: str
    graph: str
    draw: int
    nodes: int = 0
    degree: int = 0


def row(case: Case, found: SpaceFit, truth: float | None, seconds: float) -> dict[str, object]:
    """Return what is written of a case."""
    inside = truth is not None and (found.low is None or found.low <= truth)
    inside = inside and (found.high is None or (truth is not None and truth <= found.high))
    return {
        **{name: str(value) for name, value in dc.asdict(case).items()},
        "fitted_nodes": found.nodes,
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


def drawn(case: Case) -> Drawn:
    """Return a graph of known curvature; lattices of growing size."""
    if case.kind == "lattice":
        return lattice(case.graph, 20 + 4 * case.draw)
    return random_geometric(case.graph, case.nodes, case.degree, np.random.default_rng(case.draw))


def measured(case: Case) -> dict[str, object]:
    """Return the row of a draw, or of a data set."""
    if case.kind == "data":
        data = gf.load(case.graph)
        edges, nodes = data.edge_index, int(data.num_nodes)
    else:
        graph = drawn(case)
        edges, nodes = graph.edges, graph.num_nodes
    began = time.process_time()
    found = fit_space(edges, nodes, seed=case.draw)
    seconds = time.process_time() - began
    truth = None if case.kind == "data" else graph.in_hops(2 * found.radius)
    return row(case, found, truth, seconds)


def main() -> None:
    """Measure what is missing and write it."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--csv", type=Path, required=True)
    words.add_argument("--draws", type=int, default=40)
    words.add_argument("--first-draw", type=int, default=0, help="seed of the first draw, of graph and fit")
    words.add_argument("--spaces", default=";".join(SPACES), help="names, between semicolons")
    words.add_argument("--nodes", type=int, default=800)
    words.add_argument("--degree", type=int, default=12)
    given = words.parse_args()
    torch.set_num_threads(1)
    draws = range(given.first_draw, given.first_draw + given.draws)
    names = [name for name in given.spaces.split(";") if name]
    cases = [Case("space", name, draw, given.nodes, given.degree) for draw in draws for name in names]
    if set(names) == set(SPACES):
        cases += [Case("lattice", name, draw) for draw in range(LATTICE_SIZES) for name in LATTICES]
        cases += [Case("data", name, 0) for name in GRAPHS]
    rows: list[dict[str, object]] = []
    if given.csv.exists():
        rows = list(csv.DictReader(given.csv.open(encoding="utf-8")))  # type: ignore[arg-type]
    keys = [field.name for field in dc.fields(Case)]
    done = {tuple(str(one[key]) for key in keys) for one in rows}
    for case in cases:
        if tuple(map(str, dc.astuple(case))) not in done:
            rows.append(measured(case))
            print(rows[-1], flush=True)
            write_rows(given.csv, rows)


if __name__ == "__main__":
    main()
