"""A connected graph cut into regions, and the hops between nodes of each."""

import numpy as np
from numpy.typing import NDArray

from gyroformer.graphs.adjacency import Csr, IntArray
from gyroformer.graphs.bfs import WORD, bfs_levels

#: nodes that are looked at for each further centre: the farthest of them from the centres so far is taken, which
#: spreads the centres without putting them all at the ends of a graph's longest arms
CANDIDATES = 8


def cut(adjacency: Csr, count: int, rng: np.random.Generator) -> list[IntArray]:
    """Return a partition of a connected graph's nodes: each with the nearest of ``count`` drawn centres.

    Nodes between two centres go to either, the same one for all nodes.
    """
    nodes = adjacency.shape[0]
    centres = [int(rng.integers(nodes))]
    rows = [hops_from(adjacency, np.array(centres))[0]]
    while len(centres) < count:
        near = np.min(rows, axis=0)
        looked = rng.choice(nodes, size=min(CANDIDATES, nodes), replace=False)
        centres.append(int(looked[near[looked].argmax()]))
        rows.append(hops_from(adjacency, np.array(centres[-1:]))[0])
    owner = np.argmin(np.stack(rows)[rng.permutation(count)], axis=0)
    return [np.flatnonzero(owner == region) for region in range(count)]


def hops_within(adjacency: Csr, nodes: IntArray) -> NDArray[np.float64]:
    """Return the hops between some nodes of a connected graph, through all of it, ``(m, m)``."""
    return hops_from(adjacency, nodes, nodes)


def hops_from(adjacency: Csr, sources: IntArray, to: IntArray | None = None) -> NDArray[np.float64]:
    """Return the hops from distinct sources to all nodes, or to some, ``(S, N)``; infinite where there is no path."""
    targets = np.arange(adjacency.shape[0]) if to is None else to
    found = np.full((targets.size, sources.size), np.inf)
    found[targets[:, None] == sources] = 0
    words = -(-sources.size // WORD)
    for level in bfs_levels(adjacency, sources, np.arange(sources.size), words):
        bits = np.unpackbits(level.bits[targets].view(np.uint8), axis=1, bitorder="little")
        found[bits[:, : sources.size].astype(bool)] = level.depth
    return found.T
