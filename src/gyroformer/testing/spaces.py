"""Random geometric graphs on spaces of known curvature, and lattices: what an estimate of curvature is held against.

A graph joins the points, drawn uniformly, that are nearer than a radius, chosen so that nodes have a given mean degree.
This is apart from the draws that an estimate is itself calibrated with, :mod:`gyroformer.graphs.analysis.geometric`.
"""

import dataclasses as dc
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from gyroformer.errors import UsageError, did_you_mean
from gyroformer.graphs.adjacency import ranked_components, simple_adjacency
from gyroformer.graphs.analysis.geometric import hops_per_length

Array = NDArray[np.float64]


@dc.dataclass(frozen=True)
class Drawn:
    """The largest component of a graph that was drawn.

    Attributes:
        edges: ``(2, E)``.
        distance: true distances of its nodes, ``(N, N)``.
        curvature: of the space, in the unit of these distances.
    """

    edges: NDArray[np.int64]
    distance: Array
    curvature: float

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self.distance)

    def in_hops(self, most: float) -> float:
        """Return the curvature in units of a hop, whose length is that of hops over distances up to ``most`` hops."""
        if not self.curvature:
            return 0.0
        adjacency = simple_adjacency(self.edges, self.num_nodes)
        hops = shortest_path(adjacency, unweighted=True)
        return self.curvature / hops_per_length(hops, self.distance, most) ** 2


def random_geometric(space: str, nodes: int, degree: float, rng: np.random.Generator) -> Drawn:
    """Return a random geometric graph on one of :data:`SPACES`."""
    if space not in SPACES:
        raise UsageError(f"no space is called {space!r}{did_you_mean(space, SPACES)}")
    distance, curvature = SPACES[space](nodes, rng)
    pairs = np.sort(distance[np.triu_indices(nodes, 1)])
    return _joined(distance, pairs[int(degree * nodes / 2)], curvature)


def lattice(kind: str, side: int) -> Drawn:
    """Return a piece of a lattice of the plane: ``"square"``, ``"triangular"`` or ``"honeycomb"``."""
    row, column = (index.ravel().astype(float) for index in np.indices((side, side)))
    if kind == "square":
        places = np.stack((column, row), 1)
    elif kind in ("triangular", "honeycomb"):
        places = np.stack((column + 0.5 * (row % 2), row * math.sqrt(0.75)), 1)
        if kind == "honeycomb":  # a third of the triangular lattice, the middles of the hexagons, is left out
            places = places[(column + 0.5 * (row % 2) - 0.5 * row + 2 * row) % 3 != 0]
    else:
        raise UsageError(f"no lattice is called {kind!r}; known: square, triangular, honeycomb")
    return _joined(_flat(places), 1.01, 0.0)


def _joined(distance: Array, radius: float, curvature: float) -> Drawn:
    edges = np.stack(np.nonzero(np.triu(distance < radius, 1)))
    _, component = ranked_components(simple_adjacency(edges, len(distance)))
    kept = np.flatnonzero(component == 0)
    number = np.full(len(distance), -1)
    number[kept] = np.arange(kept.size)
    inside = number[edges]
    return Drawn(inside[:, (inside >= 0).all(0)], distance[np.ix_(kept, kept)], curvature)


def _flat(places: Array, period: float | None = None) -> Array:
    apart = np.abs(places[:, None] - places[None])
    if period is not None:
        apart = np.minimum(apart, period - apart)
    return np.asarray(np.sqrt(np.square(apart).sum(-1)))


def _hyperbolic(radius: float) -> Callable[[int, np.random.Generator], tuple[Array, float]]:
    def draw(nodes: int, rng: np.random.Generator) -> tuple[Array, float]:
        far = np.arccosh(1 + rng.random(nodes) * (math.cosh(radius) - 1))  # uniform by area
        turn = 2 * np.pi * rng.random(nodes)
        places = np.sinh(far)[:, None] * np.stack((np.cos(turn), np.sin(turn)), 1)
        inner = np.outer(np.cosh(far), np.cosh(far)) - places @ places.T
        return np.arccosh(np.maximum(inner, 1)), -1.0

    return draw


def _sphere(nodes: int, rng: np.random.Generator) -> tuple[Array, float]:
    places = rng.normal(size=(nodes, 3))
    places /= np.linalg.norm(places, axis=1, keepdims=True)
    return np.arccos(np.clip(places @ places.T, -1, 1)), 1.0


def _torus(nodes: int, rng: np.random.Generator) -> tuple[Array, float]:
    return _flat(rng.random((nodes, 2)), 1.0), 0.0


def _square(nodes: int, rng: np.random.Generator) -> tuple[Array, float]:
    return _flat(rng.random((nodes, 2))), 0.0


#: name -> draws so many points: their distances, and the curvature
SPACES: dict[str, Any] = {
    "hyperbolic disc, radius 3": _hyperbolic(3.0),
    "hyperbolic disc, radius 4": _hyperbolic(4.0),
    "sphere": _sphere,
    "torus": _torus,
    "square": _square,
}
