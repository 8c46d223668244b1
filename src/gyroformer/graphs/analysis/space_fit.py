r"""Which space of constant curvature fits a graph's distances best, with an interval and a test of flatness.

What is estimated is the curvature :math:`\kappa` in units of one hop: a graph has no other length. In a space of
curvature k in which a hop is as long as :math:`\ell`, :math:`\kappa = k\ell^2`; :math:`1/\sqrt{|\kappa|}` is the number
of hops over which the space bends.

Nodes are drawn from balls that hold a third of the graph and get places in the space, and an offset each, so that hops
are fitted as well as can be (:mod:`gyroformer.graphs.analysis.stress`). The mean of the balls' slopes
(:mod:`gyroformer.graphs.analysis.slopes`) at a curvature is compared with that of graphs drawn from a space of this
very curvature (:mod:`gyroformer.graphs.analysis.calibration`), which gives t. The estimate is where t is 0, the 95 %
interval where t is not beyond its critical value, and t(0) tests flatness; so the interval contains 0 just if the test
does not reject. Graphs are drawn at 0 and, as the interval takes
shape, at about both of its ends.

A graph that hubs hold together has no balls to speak of: all nodes are two or three hops apart. There the sets are
drawn from the whole graph, and t is their mean slope over its standard error by sets, which is Student's; they share
the graph's paths, so the interval is then one for other nodes of this very graph.
"""

import dataclasses as dc
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.adjacency import Csr, ranked_components, simple_adjacency
from gyroformer.graphs.analysis.calibration import LEVEL, Expected, between, expected_slopes
from gyroformer.graphs.analysis.regions import hops_in_balls, hops_within
from gyroformer.graphs.analysis.slopes import Slope, Slopes

#: balls of a cut
BALLS = 8
#: share of the nodes that a ball holds, and the most: a third of a torus does not yet reach around it
SHARE, LARGEST = 0.35, 700
#: nodes that are drawn from a ball, and the fewest nodes of a graph
DRAWN, FEWEST = 28, 48
#: steps of a fit that is only compared with others that were fitted alike
FEW_STEPS = 8
#: hops across balls below which all nodes of one are about equally far from each other, and nodes are drawn from the
#: whole graph instead
SHALLOW = 5
#: hops across the graph below which there is nothing to fit
FARTHEST = 3
#: curvatures tried below 0: -(j BELOW / radius of a ball)², j to the number of steps; above 0: the widest
#: ball is j ABOVE of the way to the antipode across; more than the whole way, for paths are longer than ways
BELOW, BELOW_STEPS, ABOVE, ABOVE_STEPS = 0.45, 14, 0.12, 10
#: graphs drawn from the flat space, and from the spaces at about both ends of the interval
FLAT_DRAWS, END_DRAWS = 20, 12
#: an end is settled if graphs were drawn within this share of the interval from it, or after so many rounds
NEAR, ROUNDS = 0.2, 2
#: length of a hop, in radii within which nodes are joined, before one is measured
HOP = 0.8
#: critical values beyond which no further curvature is tried
BEYOND = 2.5

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
        regions: balls of each cut, or sets of nodes in a graph without balls.
        nodes: nodes of the component that was looked at, the largest.
        radius: half the hops across a ball, the middle one of all.
        local: whether nodes were compared within balls; else, in a graph without them, from all over it.
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
    def interval(self) -> str:
        """The interval in words; an end that hops do not tell is said so."""
        if self.low is None and self.high is None:
            return "unbounded: hops do not tell"
        if self.low is None:
            return f"below {self.high:+.4f}"
        if self.high is None:
            return f"above {self.low:+.4f}"
        return f"{self.low:+.4f} to {self.high:+.4f}"

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
        seeds: number of cuts, each of :data:`BALLS` balls.
        seed: seed of the first cut.
        progress: called with what is being done.
    """
    if dim < 2:
        raise UsageError(f"a space of {dim} dimension has no curvature: dim must be 2 or more")
    if seeds < 1:
        raise UsageError(f"seeds must be 1 or more, got {seeds}")
    say = progress or (lambda text: None)
    adjacency = simple_adjacency(edge_index, num_nodes)
    largest = np.flatnonzero(ranked_components(adjacency)[1] == 0)
    connected = adjacency[largest][:, largest]
    if largest.size < FEWEST:
        raise DataError(
            f"the largest component has {largest.size:,} nodes: at least {FEWEST} are needed to tell curved from flat"
        )
    say("counting hops")
    balls = _Balls(largest.size, seeds, dim, seed)
    slopes = balls.measure(connected, np.random.default_rng(seed))
    local = float(np.median(slopes.across)) >= SHALLOW
    if not local:
        slopes = balls.everywhere(connected, np.random.default_rng(seed))
    if slopes.across.max() < FARTHEST:
        raise DataError("no two nodes are more than two hops apart: too few to tell curved from flat")
    judge = _Calibrated(balls, connected, seed, say) if local else _ByItself(BALLS)
    profile = _Profile(slopes, judge, say)
    profile.walk()
    return profile.result(largest.size, dim, local)


@dc.dataclass(frozen=True, slots=True)
class _Balls:
    """How a graph of some nodes is measured, and those drawn to compare it with."""

    nodes: int
    cuts: int
    dim: int
    seed: int

    def measure(self, connected: Csr, rng: np.random.Generator) -> Slopes:
        size = min(round(SHARE * self.nodes), LARGEST)
        hops = [one for _ in range(self.cuts) for one in hops_in_balls(connected, BALLS, size, DRAWN, rng)]
        return self._slopes(hops, FEW_STEPS)

    def everywhere(self, connected: Csr, rng: np.random.Generator) -> Slopes:
        """Take disjoint sets of nodes from the whole graph instead."""
        size = min(DRAWN, self.nodes // BALLS)
        hops = []
        for _ in range(self.cuts):
            order = rng.permutation(self.nodes)
            hops += [hops_within(connected, np.sort(order[i * size : (i + 1) * size])) for i in range(BALLS)]
        return self._slopes(hops, None)

    def _slopes(self, hops: list[Array], steps: int | None) -> Slopes:
        return Slopes(hops, np.repeat(np.arange(self.cuts), BALLS), self.dim, self.seed, steps)


class _Calibrated:
    """Compares slopes with those of graphs drawn from spaces of known curvature."""

    def __init__(self, balls: _Balls, connected: Csr, seed: int, say: Progress) -> None:
        self.balls, self.seed, self.say = balls, seed, say
        self.degree = connected.nnz / connected.shape[0]
        self.known: list[Expected] = []
        self.draw(0.0, FLAT_DRAWS)

    def draw(self, curvature: float, draws: int) -> None:
        """Draw graphs of a curvature."""
        self.known.append(
            expected_slopes(
                self.balls.nodes,
                self.degree,
                self.balls.dim,
                curvature,
                self.balls.measure,
                draws=draws,
                hop=self.known[0].hop if self.known else HOP,
                seed=self.seed + len(self.known),
                progress=lambda done: self.say(
                    f"drawing graphs of curvature {curvature:+.3f} to compare with: {done} of {draws}"
                ),
            )
        )

    def settle(self, low: float | None, high: float | None) -> bool:
        """Draw graphs at the ends of an interval that graphs of other curvatures gave; return whether any were."""
        near = NEAR * (high - low) if low is not None and high is not None else 0.0
        ends = [
            end
            for end in (low, high)
            if end is not None and min(abs(end - one.curvature) for one in self.known) > near
        ]
        for end in ends:
            self.draw(end, END_DRAWS)
        return bool(ends)

    def excess(self, curvature: float, slope: Slope) -> float:
        """Return t in units of its critical value."""
        expected = between(self.known, curvature)
        return expected.t(slope) / expected.critical

    def p_flat(self, slope: Slope) -> float:
        """Return the p-value of a slope at curvature 0."""
        return self.known[0].p_value(slope)


class _ByItself:
    """Compares slopes with 0, by their spread over sets."""

    def __init__(self, sets: int) -> None:
        self.free = sets - 1

    def settle(self, low: float | None, high: float | None) -> bool:
        """Nothing is drawn."""
        return False

    def excess(self, curvature: float, slope: Slope) -> float:
        """Return t in units of its critical value."""
        return self._t(slope) / float(stats.t.ppf((1 + LEVEL) / 2, self.free))

    def p_flat(self, slope: Slope) -> float:
        """Return the p-value of a slope at curvature 0."""
        return float(2 * stats.t.sf(abs(self._t(slope)), self.free))

    def _t(self, slope: Slope) -> float:
        return slope.mean / slope.error if slope.error else 0.0


class _Profile:
    """Fits at curvatures from 0 outward."""

    def __init__(self, slopes: Slopes, judge: _Calibrated | _ByItself, say: Progress) -> None:
        self.slopes, self.judge, self.say = slopes, judge, say
        self.found: dict[float, Slope] = {0.0: slopes.at(0.0)}

    def walk(self) -> None:
        """Fit on each side of 0 until the curvature is far beyond its interval, then settle what to expect there."""
        radius, across = self.slopes.radius, float(self.slopes.across.max())
        below = [-((j * BELOW / radius) ** 2) for j in range(1, BELOW_STEPS + 1)]
        above = [(j * ABOVE * np.pi / across) ** 2 for j in range(1, ABOVE_STEPS + 1)]
        for sign, side in ((-1, below), (1, above)):
            last = 0.0
            for curvature in side:
                if sign * self.judge.excess(last, self.found[last]) > BEYOND:
                    break
                self.say(f"fitting curvature {curvature:+.3f}")
                self.found[curvature], last = self.slopes.at(curvature), curvature
        for _ in range(ROUNDS):
            if not self.judge.settle(*_inverted(*self._excess())[1:]):
                break

    def _excess(self) -> tuple[Array, Array]:
        """Return the curvatures tried, and t of each in units of its critical value."""
        tried = sorted(self.found)
        return np.array(tried), np.array([self.judge.excess(one, self.found[one]) for one in tried])

    def _by_cut(self, cut: int) -> float:
        """Return the estimate of a cut alone."""
        tried = sorted(self.found)
        alone = [dc.replace(self.found[one], mean=self.found[one].by_cut[cut]) for one in tried]
        excess = [self.judge.excess(one, slope) for one, slope in zip(tried, alone, strict=True)]
        return _inverted(np.array(tried), np.array(excess))[0]

    def result(self, nodes: int, dim: int, local: bool) -> SpaceFit:
        """Return what the fits say."""
        estimate, low, high = _inverted(*self._excess())
        errors = {one: self.found[one].misfit for one in sorted(self.found)}
        cuts = len(self.found[0.0].by_cut)
        return SpaceFit(
            curvature=estimate,
            low=low,
            high=high,
            p_flat=self.judge.p_flat(self.found[0.0]),
            by_seed=tuple(self._by_cut(cut) for cut in range(cuts)),
            profile=tuple(errors.items()),
            error_flat=errors[0.0],
            error_best=min(errors.values()),
            dim=dim,
            regions=(BALLS,) * cuts,
            nodes=nodes,
            radius=self.slopes.radius,
            local=local,
        )


def _inverted(tried: Array, excess: Array) -> tuple[float, float | None, float | None]:
    """Return where the excess, between the curvatures tried a straight line, is 0, and where it is -1 and 1.

    An end is None where it is not reached at the last curvature tried. Without a zero the estimate is the curvature
    tried whose excess is nearest to it.
    """
    rises = np.flatnonzero((excess[:-1] < 0) & (excess[1:] >= 0))
    nearest = int(np.abs(excess).argmin())
    # of several zeros (a bumpy profile) the one nearest to the smallest |t|
    at = int(rises[np.abs(rises - nearest).argmin()]) if rises.size else None
    estimate = float(tried[nearest]) if at is None else _crossing(tried, excess, at, 0.0)
    first = nearest if at is None else at
    below = [i for i in range(first + 1) if excess[i] <= -1]
    above = [i for i in range(nearest if at is None else at + 1, len(excess)) if excess[i] >= 1]
    low = None if not below else _crossing(tried, excess, below[-1], -1.0)
    high = None if not above else _crossing(tried, excess, above[0] - 1, 1.0)
    return estimate, low, high


def _crossing(tried: Array, excess: Array, i: int, value: float) -> float:
    """Return where the line from the i-th to the next curvature has the value; the end where there is no next."""
    if not 0 <= i < len(excess) - 1:
        return float(tried[min(max(i, 0), len(excess) - 1)])
    share = (value - excess[i]) / (excess[i + 1] - excess[i])
    return float(tried[i] + min(max(share, 0.0), 1.0) * (tried[i + 1] - tried[i]))
