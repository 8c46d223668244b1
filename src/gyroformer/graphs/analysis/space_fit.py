r"""Which space of constant curvature fits a graph's distances best, with an interval and a test of flatness.

What is estimated is the curvature :math:`\kappa` in units of one hop: a graph has no other length. In a space of
curvature k in which a hop is as long as :math:`\ell`, :math:`\kappa = k\ell^2`; :math:`1/\sqrt{|\kappa|}` is the number
of hops over which the space bends.

The graph is cut into regions. The nodes of each get places in the space, and an offset each, so that hops are fitted as
well as can be (:mod:`gyroformer.graphs.analysis.stress`). A region small against the graph sees no more of its space
than its curvature: a torus is flat to it. Hops share paths, so pairs are far from independent, but regions nearly are:
at the true curvature the slopes :math:`s_r(\kappa) = dL_r/d\kappa` of the regions' stresses, each divided by what its
spread is to be expected from the region's size, scatter around 0, and

.. math:: t(\kappa) = \bar s(\kappa)\big/\sqrt{\mathrm{var}(s_r(\kappa))/R}

is Student's t with R − 1 degrees of freedom. The estimate is where t is 0, the 95 % interval where t is not beyond its
quantile, and t(0) tests flatness; so the interval contains 0 just if the test does not reject. Several cuts are
averaged: the mean of their t, each as wide as one alone, has at most that width.

A graph that hubs hold together has no regions: all nodes of one are two or three hops apart. There the sets are drawn
from the whole graph; they share its paths, so the interval is then one for other nodes of this very graph.
"""

import dataclasses as dc
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.adjacency import Csr, IntArray, ranked_components, simple_adjacency
from gyroformer.graphs.analysis.regions import cut, hops_within
from gyroformer.graphs.analysis.stress import Fitted, Sets, fit, start

#: regions of a cut, and the fewest that give a variance
REGIONS, FEWEST = 8, 4
#: nodes that are drawn from a region, and the fewest that make one
DRAWN, SMALLEST = 32, 12
#: level of the interval and of the test
LEVEL = 0.95
#: hops across regions below which all nodes of one are about equally far from each other, and nodes are drawn from the
#: whole graph instead
SHALLOW = 5
#: hops across the graph below which there is nothing to fit
FARTHEST = 3
#: curvatures tried below 0: -(j BELOW / radius of a region)², j to the number of steps; above 0: a region is at most
#: j/ABOVE_STEPS of the way to the antipode across
BELOW, BELOW_STEPS, ABOVE_STEPS = 0.6, 10, 5

Array = NDArray[np.float64]
#: called with what is being done
Progress = Callable[[str], None]


@dc.dataclass(frozen=True)
class SpaceFit:
    """The best space of constant curvature, in units of hops.

    Attributes:
        curvature: the estimate; at the end of what was tried if ``low`` or ``high`` is None and the fit still improves.
        low: lower end of the 95 % interval; None where distances of whole hops do not tell it from still lower ones.
        high: upper end, likewise.
        p_flat: p-value of the test that the curvature is 0.
        by_seed: the estimate of each cut by itself.
        profile: curvatures tried, with the error at each: the root mean square of what is left of a distance, in hops.
        error_flat: that error in the flat space.
        error_best: that error at the best curvature tried.
        dim: dimensions of the space.
        regions: regions of each cut.
        nodes: nodes of the component that was looked at, the largest.
        radius: half the hops across a region, the middle one of all.
        local: whether nodes were compared within regions; else, in a graph without regions, from all over it.
    """

    curvature: float
    low: float | None
    high: float | None
    p_flat: float
    by_seed: tuple[float, ...]
    profile: tuple[tuple[float, float], ...]
    error_flat: float
    error_best: float
    dim: int
    regions: tuple[int, ...]
    nodes: int
    radius: float
    local: bool

    @property
    def verdict(self) -> str:
        """``"flat"`` where flatness is not rejected, else ``"hyperbolic"`` or ``"spherical"``."""
        if self.p_flat >= 1 - LEVEL:
            return "flat"
        return "hyperbolic" if self.curvature < 0 else "spherical"

    @property
    def reading(self) -> str:
        """The result in a sentence."""
        if self.verdict == "flat":
            return f"flat is as good as curved, in {self.dim} dimensions (p = {self.p_flat:.2g})"
        hops = 1 / np.sqrt(abs(self.curvature))
        return (
            f"better embedded curved: {self.verdict} in {self.dim} dimensions, bending over {hops:.1f} hops "
            f"(flat: p = {self.p_flat:.2g})"
        )


def fit_space(
    edge_index: Tensor | NDArray[np.int64],
    num_nodes: int,
    *,
    dim: int = 2,
    seeds: int = 2,
    seed: int = 0,
    progress: Progress | None = None,
) -> SpaceFit:
    """Return the space of constant curvature whose distances fit the graph's hops best.

    Args:
        edge_index: edges ``(2, E)``; directions, repetitions and self-loops do not matter.
        num_nodes: number of nodes.
        dim: dimensions of the space, from 2.
        seeds: number of cuts into regions.
        seed: seed of the first cut.
        progress: called with what is being done.
    """
    if dim < 2:
        raise UsageError(f"a space of {dim} dimension has no curvature: dim must be 2 or more")
    if seeds < 1:
        raise UsageError(f"seeds must be 1 or more, got {seeds}")
    say = progress or (lambda text: None)
    adjacency = simple_adjacency(edge_index, num_nodes)
    _, component = ranked_components(adjacency)
    largest = np.flatnonzero(component == 0)
    connected = adjacency[largest][:, largest]
    if largest.size < FEWEST * SMALLEST:
        raise DataError(
            f"the largest component has {largest.size:,} nodes: at least {FEWEST * SMALLEST} are needed to tell curved "
            "from flat"
        )
    say("cutting the graph into regions")
    sets, local = [_regions(connected, np.random.default_rng(seed + number)) for number in range(seeds)], True
    hops = [[hops_within(connected, nodes) for nodes in one] for one in sets]
    if min(map(len, sets)) < FEWEST or np.median([one.max() for some in hops for one in some]) < SHALLOW:
        # a graph held together by hubs has no regions to speak of
        sets = [_drawn(largest.size, np.random.default_rng(seed + number)) for number in range(seeds)]
        hops, local = [[hops_within(connected, nodes) for nodes in one] for one in sets], False
    across = np.array([one.max() for some in hops for one in some])
    if across.max() < FARTHEST:
        raise DataError("no two nodes are more than two hops apart: too few to tell curved from flat")
    owner = np.repeat(np.arange(seeds), [len(some) for some in hops])
    matrices = [one for some in hops for one in some]
    profile = _Profile(_sets(matrices), owner, dim, seed, say)
    profile.walk(float(np.median(across)) / 2, float(across.max()))
    return profile.result(largest.size, float(np.median(across)) / 2, local)


def _regions(connected: Csr, rng: np.random.Generator) -> list[IntArray]:
    """Return nodes drawn from each region of a cut that is large enough."""
    count = min(REGIONS, connected.shape[0] // (2 * SMALLEST))
    parts = [part for part in cut(connected, max(count, 1), rng) if part.size >= SMALLEST]
    return [part if part.size <= DRAWN else np.sort(rng.choice(part, DRAWN, replace=False)) for part in parts]


def _drawn(nodes: int, rng: np.random.Generator) -> list[IntArray]:
    """Return disjoint sets of nodes drawn from all."""
    size = min(DRAWN, max(SMALLEST, nodes // REGIONS))
    order = rng.permutation(nodes)
    return [np.sort(order[i * size : (i + 1) * size]) for i in range(min(REGIONS, nodes // size))]


def _sets(hops: Sequence[Array]) -> Sets:
    size = max(len(one) for one in hops)
    padded = torch.zeros(len(hops), size, size, dtype=torch.float64)
    for i, one in enumerate(hops):
        padded[i, : len(one), : len(one)] = torch.from_numpy(one)
    return Sets(padded, padded > 0)


class _Profile:
    """Fits at curvatures from 0 outward, each from its neighbour."""

    def __init__(self, sets: Sets, owner: IntArray, dim: int, seed: int, say: Progress) -> None:
        self.sets, self.owner, self.dim, self.say = sets, owner, dim, say
        self.regions = np.bincount(owner)
        self.least = int(self.regions.min())
        # curvature moves a distance h in a region of radius R by about h R²: a slope's variance is as its square's sum
        radius = sets.hops.amax((1, 2)) / 2
        self.spread = (radius**4 * (sets.weight * sets.hops.square()).sum((1, 2))).sqrt().cpu().numpy()
        self.critical = float(stats.t.ppf((1 + LEVEL) / 2, self.least - 1))
        say("fitting the flat space")
        begin = start(sets, dim, torch.Generator().manual_seed(seed))
        self.fits: dict[float, Fitted] = {0.0: fit(sets, 0.0, *begin)}

    def walk(self, radius: float, across: float) -> None:
        """Fit on each side of 0 until the curvature is beyond its interval, the better side first."""
        below = [-((j * BELOW / radius) ** 2) for j in range(1, BELOW_STEPS + 1)]
        above = [(j / ABOVE_STEPS * 0.95 * np.pi / across) ** 2 for j in range(1, ABOVE_STEPS + 1)]
        for sign, side in ((-1, below), (1, above)):
            now = self.fits[0.0]
            for number, curvature in enumerate(side):
                if (
                    sign * self.statistic(self.fits[side[number - 1] if number else 0.0]).mean()
                    > self.critical
                ):
                    break
                self.say(f"fitting curvature {curvature:+.3f}")
                now = fit(self.sets, curvature, now.points, now.offset)
                self.fits[curvature] = now

    def statistic(self, fitted: Fitted) -> Array:
        """Return t of each cut."""
        slope = fitted.slope.cpu().numpy() / self.spread
        groups = [slope[self.owner == cut] for cut in range(self.regions.size)]
        error = np.array([group.std(ddof=1) / np.sqrt(group.size) for group in groups])
        mean = np.array([group.mean() for group in groups])
        return np.divide(mean, error, out=np.zeros_like(mean), where=error > 0)

    def error(self, fitted: Fitted) -> float:
        """Return the root mean square, by the weights of the stress, of what is left of a distance."""
        return float((2 * fitted.stress.sum() / self.sets.weight.sum()).sqrt())

    def result(self, nodes: int, radius: float, local: bool) -> SpaceFit:
        """Return what the fits say."""
        tried = np.array(sorted(self.fits))
        each = np.stack([self.statistic(self.fits[one]) for one in tried])  # (curvatures, cuts)
        errors = [self.error(self.fits[one]) for one in tried]
        p_flat = 2 * stats.t.sf(abs(self.statistic(self.fits[0.0]).mean()), self.least - 1)
        estimate, low, high = _inverted(tried, each.mean(1), self.critical)
        return SpaceFit(
            curvature=estimate,
            low=low,
            high=high,
            p_flat=float(p_flat),
            by_seed=tuple(_inverted(tried, one, self.critical)[0] for one in each.T),
            profile=tuple(zip(tried.tolist(), errors, strict=True)),
            error_flat=self.error(self.fits[0.0]),
            error_best=min(errors),
            dim=self.dim,
            regions=tuple(self.regions.tolist()),
            nodes=nodes,
            radius=radius,
            local=local,
        )


def _inverted(tried: Array, t: Array, critical: float) -> tuple[float, float | None, float | None]:
    """Return where t, between the curvatures tried a straight line, is 0, and the ends of where it is not critical.

    An end is None where t is not critical at the last curvature tried. Without a zero the estimate is the curvature
    tried whose t is nearest to it.
    """
    rises = np.flatnonzero((t[:-1] < 0) & (t[1:] >= 0))
    nearest = int(np.abs(t).argmin())
    # of several zeros (a bumpy profile) the one nearest to the smallest |t|
    at = int(rises[np.abs(rises - nearest).argmin()]) if rises.size else None
    estimate = float(tried[nearest]) if at is None else _crossing(tried, t, at, 0.0)
    first = nearest if at is None else at
    below = [i for i in range(first + 1) if t[i] <= -critical]
    above = [i for i in range(nearest if at is None else at + 1, len(t)) if t[i] >= critical]
    low = None if not below else _crossing(tried, t, below[-1], -critical)
    high = None if not above else _crossing(tried, t, above[0] - 1, critical)
    return estimate, low, high


def _crossing(tried: Array, t: Array, i: int, value: float) -> float:
    """Return where the line from the i-th to the next curvature has the value; the end where there is no next."""
    if not 0 <= i < len(t) - 1:
        return float(tried[min(max(i, 0), len(t) - 1)])
    share = (value - t[i]) / (t[i + 1] - t[i])
    return float(tried[i] + min(max(share, 0.0), 1.0) * (tried[i + 1] - tried[i]))
