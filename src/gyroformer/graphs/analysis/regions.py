"""Balls in a connected graph, and the hops between nodes of each."""

import numpy as np
from numpy.typing import NDArray

from gyroformer.graphs.adjacency import Csr, IntArray
from gyroformer.graphs.bfs import WORD, bfs_levels

Array = NDArray[np.float64]

#: nodes that are looked at for each further centre: the farthest of them from the centres so far is taken, which
#: spreads the centres without putting them all at the ends of a graph's longest arms
CANDIDATES = 8
#: hops around a ball that its paths may take
MARGIN = 1


def hops_in_balls(adjacency: Csr, count: int, size: int, drawn: int, rng: np.random.Generator) -> list[Array]:
    """Return the hops within balls of about ``size`` nodes around spread centres, between nodes drawn from each.

    Paths stay in the ball, or :data:`MARGIN` hops around it. A ball of a round space is convex, so nothing is lost
    there; and a ball of a torus does not see that it could be left on one side and entered on the other.
    """
    return [
        _hops_in_ball(adjacency, row, size, drawn, rng) for row in _hops_from_centres(adjacency, count, rng)
    ]


def _hops_from_centres(adjacency: Csr, count: int, rng: np.random.Generator) -> Array:
    nodes = adjacency.shape[0]
    drawn = rng.choice(nodes, size=min(CANDIDATES * count, nodes), replace=False)
    rows = hops_from(adjacency, drawn)
    chosen = [0]
    for _ in range(1, count):
        looked = rng.choice(drawn.size, size=CANDIDATES, replace=False)
        near = rows[chosen][:, drawn[looked]].min(0)
        chosen.append(int(looked[near.argmax()]))
    return rows[chosen]


def _hops_in_ball(adjacency: Csr, hops: Array, size: int, drawn: int, rng: np.random.Generator) -> Array:
    """Return the hops between nodes of the ball around the node from which ``hops`` are counted."""
    within = np.cumsum(np.bincount(hops.astype(np.int64)))  # nodes in the balls of radius 0, 1, ...
    radius = max(int(np.abs(within - size).argmin()), 1)
    inside, around = (np.flatnonzero(hops <= radius + more) for more in (0, MARGIN))
    chosen = np.sort(rng.choice(inside, min(drawn, inside.size), replace=False))
    return hops_within(adjacency[around][:, around], np.searchsorted(around, chosen))


def hops_within(adjacency: Csr, nodes: IntArray) -> Array:
    """Return the hops between some nodes of a connected graph, through all of it, ``(m, m)``."""
    return hops_from(adjacency, nodes, nodes)


def hops_from(adjacency: Csr, sources: IntArray, to: IntArray | None = None) -> Array:
    """Return the hops from distinct sources to all nodes, or to some, ``(S, N)``; infinite where there is no path."""
    targets = np.arange(adjacency.shape[0]) if to is None else to
    found = np.full((targets.size, sources.size), np.inf)
    found[targets[:, None] == sources] = 0
    words = -(-sources.size // WORD)
    for level in bfs_levels(adjacency, sources, np.arange(sources.size), words):
        bits = np.unpackbits(level.bits[targets].view(np.uint8), axis=1, bitorder="little")
        found[bits[:, : sources.size].astype(bool)] = level.depth
    return found.T
