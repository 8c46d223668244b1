"""Time the Laplacian identifiers on two families of graphs, one thread.

Usage: OMP_NUM_THREADS=1 python scripts/laplacian_timing.py [pa20k grid20k pa170k grid170k ...]

``pa`` is preferential attachment (shallow, an expander), ``grid`` a square grid with a fifth of its edges
removed (deep, hundreds of components).
"""

import sys
import time

import numpy as np

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
    print(f"{'graph':<10}{'nodes':>9}{'edges':>10}  {'scope':<10}{'s':>7}{'residual':>10}  methods")
    for name in sys.argv[1:] or CASES:
        edges, nodes = CASES[name]()
        for scope in ("graph", "component"):
            start = time.perf_counter()
            found = laplacian_identifiers(edges, nodes, 16, scope=scope)
            seconds = time.perf_counter() - start
            methods = {method: found.methods.count(method) for method in sorted(set(found.methods))}
            worst = float(found.residuals.nan_to_num().max())
            size = f"{name:<10}{nodes:>9}{edges.shape[1]:>10}"
            print(f"{size}  {scope:<10}{seconds:>7.1f}{worst:>10.1e}  {methods}")


if __name__ == "__main__":
    main()
