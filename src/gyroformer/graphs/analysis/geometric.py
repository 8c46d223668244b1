r"""Random geometric graphs on spaces of constant curvature and any dimension.

Points are drawn uniformly; those that are nearer than a radius are joined. The unit of length is about that radius: a
ball of radius 1 holds as many nodes as have been asked for as the mean degree.
"""

import dataclasses as dc
import math

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from gyroformer.graphs.adjacency import Csr, ranked_components, simple_adjacency

Array = NDArray[np.float64]

#: steps of the numerical integral that gives the volume of a ball
STEPS = 4096


@dc.dataclass(frozen=True, slots=True)
class GeometricGraph:
    """The largest component of a graph that was drawn.

    Attributes:
        adjacency: symmetric, without loops.
        distance: true distances of its nodes, ``(N, N)``.
        curvature: of the space, in the unit of these distances.
    """

    adjacency: Csr
    distance: Array
    curvature: float


def geometric_graph(
    nodes: int, degree: float, curvature: float, dim: int, *, closed: bool, rng: np.random.Generator
) -> GeometricGraph:
    """Return a random geometric graph of a mean degree.

    Args:
        nodes: how many are drawn; on a closed sphere as many as it holds.
        degree: mean degree.
        curvature: of the space.
        dim: its dimensions.
        closed: a torus or a whole sphere; else a ball, which has an edge. There is no closed one below 0 here.
        rng: draws the points.
    """
    unit = ball_volumes(curvature, dim, 1.0)[1][-1]
    distance = _distances(nodes, nodes * unit / degree, degree / unit, curvature, dim, closed, rng)
    pairs = distance[np.triu_indices(len(distance), 1)]
    wanted = min(int(degree * len(distance) / 2), pairs.size - 1)
    return joined(distance, float(np.partition(pairs, wanted)[wanted]), curvature)


def joined(distance: Array, radius: float, curvature: float) -> GeometricGraph:
    """Return the largest component of the graph that joins nodes nearer than a radius."""
    edges = np.stack(np.nonzero(np.triu(distance < radius, 1)))
    adjacency = simple_adjacency(edges, len(distance))
    kept = np.flatnonzero(ranked_components(adjacency)[1] == 0)
    return GeometricGraph(adjacency[kept][:, kept], distance[np.ix_(kept, kept)], curvature)


def hops_per_length(hops: Array, distance: Array, most: float) -> float:
    """Return the slope of hops over distances, of pairs of nodes that are at most so many hops apart."""
    pairs = (hops > 0) & (hops <= most)
    return float(np.polyfit(distance[pairs], hops[pairs], 1, w=hops[pairs] ** -0.5)[0])


def sphere_volume(curvature: float, dim: int) -> float:
    """Return the volume of a whole sphere."""
    return float(ball_volumes(curvature, dim, math.pi / math.sqrt(curvature))[1][-1])


def ball_volumes(curvature: float, dim: int, most: float) -> tuple[Array, Array]:
    """Return radii from 0 to ``most`` and the volumes of the balls."""
    radius = np.linspace(0, most, STEPS)
    shell = 2 * math.pi ** (dim / 2) / math.gamma(dim / 2) * _sine(radius, curvature) ** (dim - 1)
    volume = np.concatenate([[0.0], np.cumsum((shell[1:] + shell[:-1]) / 2 * np.diff(radius))])
    return radius, volume


def _sine(length: Array, curvature: float) -> Array:
    """Return sin(√k r)/√k, its limit r in the flat space, and sinh below."""
    if curvature == 0:
        return length
    root = math.sqrt(abs(curvature))
    return np.asarray((np.sin if curvature > 0 else np.sinh)(root * length) / root)


def _distances(
    nodes: int,
    volume: float,
    density: float,
    curvature: float,
    dim: int,
    closed: bool,
    rng: np.random.Generator,
) -> Array:
    """Return the distances of points drawn uniformly from a space of a volume."""
    if curvature > 0 and (closed or sphere_volume(curvature, dim) <= volume):
        count = max(round(density * sphere_volume(curvature, dim)), 2)
        return _angles(_directions(count, dim + 1, rng), curvature)
    if closed:
        return _on_torus(rng.random((nodes, dim)) * volume ** (1 / dim), volume ** (1 / dim))
    # a flat ball of the volume is at least as wide as a hyperbolic one
    flat = (volume / ball_volumes(0.0, dim, 1.0)[1][-1]) ** (1 / dim)
    radii, volumes = ball_volumes(curvature, dim, math.pi / math.sqrt(curvature) if curvature > 0 else flat)
    far = np.interp(rng.random(nodes) * volume, volumes, radii)
    places = _sine(far, curvature)[:, None] * _directions(nodes, dim, rng)
    if curvature == 0:
        return np.asarray(cdist(places, places))
    root = math.sqrt(abs(curvature))
    if curvature > 0:
        return _angles(np.concatenate([root * places, np.cos(root * far)[:, None]], 1), curvature)
    inner = np.outer(np.cosh(root * far), np.cosh(root * far)) + curvature * (places @ places.T)
    return np.asarray(np.arccosh(np.maximum(inner, 1)) / root)


def _directions(count: int, dim: int, rng: np.random.Generator) -> Array:
    drawn = rng.normal(size=(count, dim))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def _angles(places: Array, curvature: float) -> Array:
    return np.asarray(np.arccos(np.clip(places @ places.T, -1, 1)) / math.sqrt(curvature))


def _on_torus(places: Array, period: float) -> Array:
    total = np.zeros((len(places), len(places)))
    for axis in places.T:
        apart = np.abs(axis[:, None] - axis)
        total += np.square(np.minimum(apart, period - apart))
    return np.sqrt(total)
