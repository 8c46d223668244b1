"""Measure the Laplacian identifiers on two families of graphs, one thread: processor seconds and residuals.

OMP_NUM_THREADS=1 python scripts/measure_laplacian.py --csv results/laplacian.csv

``pa`` is preferential attachment (shallow, an expander), ``grid`` a square grid with a fifth of its edges
removed (deep, hundreds of components).
"""

import argparse
import time
from pathlib import Path

import numpy as np
from result_file import write_rows

from gyroformer.graphs.spectral.laplacian import laplacian_identifiers


def attachment(nodes: int, links: int) -> np.ndarray:
    """Each new node links to ``links`` ends of earlier edges (repetitions are dropped later)."""
    random = np.random.default_rng(0)
    ends = np.zeros(2 * nodes * links, np.int64)
    ends[: 2 * links] = np.arange(2 * links) % (links + 1)
    filled = 2 * links
    for node in range(links + 1, nodes):
        ends[filled : filled + links] = node
        ends[filled + links : filled + 2 * links] = ends[random.integers(filled, size=links)]
        filled += 2 * links
    blocks = ends[2 * links : filled].reshape(-1, 2, links)
    return np.concatenate(
        [blocks.transpose(1, 0, 2).reshape(2, -1), ends[: 2 * links].reshape(2, -1)], axis=1
    )


def grid(side: int) -> np.ndarray:
    name = np.arange(side * side).reshape(side, side)
    across = np.stack([name[:, :-1].ravel(), name[:, 1:].ravel()])
    down = np.stack([name[:-1].ravel(), name[1:].ravel()])
    edges = np.concatenate([across, down], axis=1)
    return edges[:, np.random.default_rng(0).random(edges.shape[1]) > 0.2]


CASES = {
    "pa20k": lambda: (attachment(20_000, 3), 20_000),
    "grid20k": lambda: (grid(141), 141 * 141),
    "pa170k": lambda: (attachment(170_000, 7), 170_000),
    "grid170k": lambda: (grid(412), 412 * 412),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", type=Path, required=True)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    asked, rows = parser.parse_args(), []
    for name in asked.cases:
        edges, nodes = CASES[name]()
        for scope in ("graph", "component"):
            begun = time.process_time()
            found = laplacian_identifiers(edges, nodes, 16, scope=scope)
            rows.append(
                {
                    "graph": name,
                    "nodes": nodes,
                    "edges": edges.shape[1],
                    "scope": scope,
                    "processor_seconds": f"{time.process_time() - begun:.1f}",
                    "residual": f"{float(found.residuals.nan_to_num().max()):.0e}",
                    "methods": " ".join(sorted(set(found.methods))),
                }
            )
            print(rows[-1], flush=True)
    write_rows(asked.csv, rows)


if __name__ == "__main__":
    main()
