r"""What slopes to expect from a graph of known curvature: those of graphs drawn from such a space.

Hops are no distances. Where a random graph is sparse all its ways are longer, and such places look like curvature; the
balls of one graph share them. How far this moves the mean slope, and how much it scatters, is not a matter of theory
but of drawing: random geometric graphs with as many nodes and the same mean degree, in a space of curvature
:math:`\kappa`, measured at their own :math:`\kappa` in the very way the graph is. Half of the flat and spherical ones
are closed (tori, spheres), half have an edge, for which of the two a graph is, is not known.

The slope of a graph is then compared with theirs,

.. math:: t(\kappa) = \frac{\bar s(\kappa) - \mu(\kappa)}{w\,\sigma(\kappa)}, \qquad
          w = \max(1, e/e_\mu, m/m_\mu),

where :math:`w` widens the scatter if the sets of this graph differ more (e) than those of the drawn ones do, or its
hops fit worse (m): a graph that is no random geometric one gets a wider interval, not a wrong one. The drawn graphs are
treated alike. With n of them t is Student's, times :math:`\sqrt{1 + 1/n}`.
"""

import dataclasses as dc
from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

from gyroformer.graphs.adjacency import Csr
from gyroformer.graphs.analysis.geometric import (
    ball_volumes,
    geometric_graph,
    hops_per_length,
    sphere_volume,
)
from gyroformer.graphs.analysis.regions import hops_from
from gyroformer.graphs.analysis.slopes import Slope, Slopes

#: level of interval and test
LEVEL = 0.95
#: mean degree below which random geometric graphs fall apart; graphs of fewer edges are compared with these
LEAST_DEGREE = 8.0
#: nodes of a drawn graph at most
MOST_NODES = 2000
#: a sphere has at least so many times the nodes of the graph, and is drawn whole if at most so many
SPHERE = 0.55, 1.6
#: nodes from which hops are counted to find how long one is
SOURCES = 64

#: measures balls of a graph as those of the fitted graph were measured
Measure = Callable[[Csr, np.random.Generator], Slopes]


@dc.dataclass(frozen=True, slots=True)
class Expected:
    """Slopes of drawn graphs at their own curvature.

    Attributes:
        curvature: their mean curvature, per hop².
        mean: of their mean slopes.
        scatter: standard deviation of these, each divided by its own widening.
        error: root mean square of the standard errors by sets.
        misfit: mean of their misfits.
        draws: number of graphs.
        hop: how long a hop is, in radii within which nodes are joined.
    """

    curvature: float
    mean: float
    scatter: float
    error: float
    misfit: float
    draws: int
    hop: float

    def t(self, slope: Slope) -> float:
        """Return how far a slope is from the expected one, in units of the widened scatter."""
        return (slope.mean - self.mean) / (self.scatter * _widening(slope, self.error, self.misfit))

    @property
    def critical(self) -> float:
        """The t that is beyond the level."""
        return float(stats.t.ppf((1 + LEVEL) / 2, self.draws - 1) * np.sqrt(1 + 1 / self.draws))

    def p_value(self, slope: Slope) -> float:
        """Return the probability of a slope that far off."""
        return float(2 * stats.t.sf(abs(self.t(slope)) / np.sqrt(1 + 1 / self.draws), self.draws - 1))


def _widening(slope: Slope, error: float, misfit: float) -> float:
    return max(1.0, slope.error / error, slope.misfit / misfit)


def between(some: Sequence[Expected], curvature: float) -> Expected:
    """Return what is to be expected at a curvature: a straight line between those drawn, constant beyond them."""
    some = sorted(some, key=lambda one: one.curvature)
    places = [one.curvature for one in some]
    middle = {
        field.name: float(np.interp(curvature, places, [getattr(one, field.name) for one in some]))
        for field in dc.fields(Expected)
    }
    return Expected(**middle | {"draws": round(middle["draws"])})  # type: ignore[arg-type]


def expected_slopes(
    nodes: int,
    degree: float,
    dim: int,
    curvature: float,
    measure: Measure,
    *,
    draws: int,
    hop: float,
    seed: int,
    progress: Callable[[int], None],
) -> Expected:
    """Draw graphs of about a curvature per hop² and return their slopes.

    Args:
        nodes: of the graph that they are to be like.
        degree: its mean degree.
        dim: dimensions of the space.
        curvature: per hop².
        measure: measures balls of a graph.
        draws: how many graphs.
        hop: about how long a hop is, in radii within which nodes are joined.
        seed: of the draws.
        progress: called with the number of graphs drawn so far.
    """
    nodes, degree = min(nodes, MOST_NODES), max(degree, LEAST_DEGREE)
    slopes, curvatures, lengths = [], [], []
    for number in range(draws):
        rng = np.random.default_rng((seed, number))
        k = _at_most(curvature / hop**2, nodes, degree, dim)
        closed = number % 2 == 0 and _closes(k, nodes, degree, dim)
        drawn = geometric_graph(nodes, degree, k, dim, closed=closed, rng=rng)
        balls = measure(drawn.adjacency, rng)
        sources = rng.choice(len(drawn.distance), min(SOURCES, len(drawn.distance)), replace=False)
        hops = hops_from(drawn.adjacency, sources)
        lengths.append(1 / hops_per_length(hops, drawn.distance[sources], 2 * balls.radius))
        curvatures.append(drawn.curvature * lengths[-1] ** 2)
        slopes.append(balls.at(curvatures[-1]))
        progress(number + 1)
    mean = float(np.mean([one.mean for one in slopes]))
    error = float(np.sqrt(np.mean([one.error**2 for one in slopes])))
    misfit = float(np.mean([one.misfit for one in slopes]))
    scaled = [(one.mean - mean) / _widening(one, error, misfit) for one in slopes]
    scatter = float(np.sqrt(np.sum(np.square(scaled)) / (draws - 1)))
    at, hop = float(np.mean(curvatures)), float(np.mean(lengths))
    return Expected(at, mean, scatter, error, misfit, draws, hop)


def _closes(k: float, nodes: int, degree: float, dim: int) -> bool:
    """Return whether there is a closed space with about as many nodes."""
    return k == 0 or (k > 0 and _held(k, degree, dim) <= SPHERE[1] * nodes)


def _at_most(k: float, nodes: int, degree: float, dim: int) -> float:
    """Return a curvature, or the largest at which a sphere has room for so many nodes."""
    if k <= 0:
        return k
    return float(k * min(1.0, _held(k, degree, dim) / (SPHERE[0] * nodes)) ** (2 / dim))


def _held(k: float, degree: float, dim: int) -> float:
    """Return how many nodes a whole sphere holds."""
    return float(degree * sphere_volume(k, dim) / ball_volumes(k, dim, 1.0)[1][-1])
