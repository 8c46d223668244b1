"""Moments and histogram of a value on every triple (m; {b, c}), without listing the triples.

A value is scale[m] (centre[m] - arm[mb] - arm[mc] - closing[m] [b ~ c]). Without its last part it is a sum
over two arms: sums and squares have closed forms, and the pairs below a threshold are counted by sorting
the arms. The last part concerns triangles only, and these are listed in blocks.
Time O(bins * E log E + E^1.5), memory O(E): a star with a million leaves is no harder than its edges.
"""

import dataclasses as dc
import math
from collections.abc import Iterator

import numpy as np

from gyroformer.graphs.adjacency import Csr, FloatArray, IntArray, sum_by
from gyroformer.graphs.analysis.triangles import closed_triples

BIN_WIDTH = 0.02
#: values within this of a bin's left edge belong to the bin: rounding must not make a zero negative
ZERO = 1e-9
_BLOCK = 1 << 20


@dc.dataclass(frozen=True, slots=True)
class TripleValues:
    """The parts of every triple's value.

    ``arm`` goes with the entries of ``adjacency``, the others with its nodes; ``closed`` counts the
    triangles at each node.
    """

    adjacency: Csr
    centre: FloatArray
    arm: FloatArray
    closing: FloatArray
    scale: FloatArray
    closed: IntArray

    @property
    def degree(self) -> IntArray:
        """Number of neighbours of each node."""
        return np.asarray(np.diff(self.adjacency.indptr), np.int64)

    @property
    def source(self) -> IntArray:
        """The node m of each arm mb."""
        return np.repeat(np.arange(self.degree.size), self.degree)

    def component_totals(self, component: IntArray, count: int) -> FloatArray:
        """Return the sum of the values of each component's triples.

        Scaled last: the sums before are of integers and halves when no edge is level, as in a tree, and
        come out exact.
        """
        degree = self.degree
        arms = sum_by(self.source, self.arm, degree.size)
        total = degree * (degree - 1) / 2 * self.centre - (degree - 1) * arms - self.closed * self.closing
        return sum_by(component, self.scale * total, count)

    def deviation(self, mean: float) -> float:
        """Return the standard deviation of the values, whose mean is given."""
        degree, source = self.degree, self.source
        half = self.scale[source] * (self.centre[source] / 2 - self.arm) - mean / 2
        total = sum_by(source, half, degree.size)
        square = sum_by(source, half**2, degree.size)
        # the sum of (y_b + y_c)^2 over pairs of neighbours; zero for a node with fewer than two
        spread = float(((degree - 2) * square + total**2).sum())
        for open_value, closing in self.closed_triples():
            centred = open_value - mean
            spread += float((closing * (closing - 2 * centred)).sum())
        return float(np.sqrt(max(spread, 0.0) / float((degree * (degree - 1) // 2).sum())))

    def closed_triples(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield, for the triples with b ~ c, the values without their last part, and that part."""
        for m, b, c in closed_triples(self.adjacency):
            yield (
                self.scale[m] * (self.centre[m] - self.arm[b] - self.arm[c]),
                self.scale[m] * self.closing[m],
            )


def histogram(values: TripleValues) -> tuple[tuple[int, ...], tuple[float, ...], int]:
    """Return the counts of the values, the bin edges, and how many values are negative.

    Bins are ``BIN_WIDTH`` wide and zero is an edge; empty bins at both ends are left out.
    """
    fans = _fans(values)
    lowest, highest = float((fans.low - fans.closing).min()), float(fans.high.max())
    first, last = math.floor(lowest / BIN_WIDTH) - 1, math.floor(highest / BIN_WIDTH) + 2
    edges = np.arange(first, last + 1) * BIN_WIDTH
    counts = np.diff(_pairs_below(fans, edges - ZERO))
    for open_value, closing in values.closed_triples():
        counts -= _binned(open_value, edges)
        counts += _binned(open_value - closing, edges)
    filled = np.flatnonzero(counts)
    negative = int(counts[edges[:-1] < -BIN_WIDTH / 2].sum())
    counts = counts[filled[0] : filled[-1] + 1]
    edges = np.round(edges[filled[0] : filled[-1] + 2], 10)
    return tuple(counts.tolist()), tuple(edges.tolist()), negative


def _binned(value: FloatArray, edges: FloatArray) -> IntArray:
    bins = np.searchsorted(edges - ZERO, value, side="right") - 1
    return np.bincount(bins, minlength=edges.size - 1)


@dc.dataclass(frozen=True, slots=True)
class _Fans:
    """Nodes with two neighbours or more, each with its arms in increasing order, all scaled.

    ``low`` and ``high`` are the least and greatest value of each node's triples without their last part.
    """

    arms: FloatArray
    begin: IntArray
    end: IntArray
    centre: FloatArray
    closing: FloatArray
    low: FloatArray
    high: FloatArray


def _fans(values: TripleValues) -> _Fans:
    arms = values.scale[values.source] * values.arm
    arms = arms[np.lexsort((arms, values.source))]
    nodes = np.flatnonzero(values.degree > 1)
    begin = values.adjacency.indptr[nodes].astype(np.int64)
    end = values.adjacency.indptr[nodes + 1].astype(np.int64)
    centre = (values.scale * values.centre)[nodes]
    low = centre - arms[end - 1] - arms[end - 2]
    high = centre - arms[begin] - arms[begin + 1]
    return _Fans(arms, begin, end, centre, (values.scale * values.closing)[nodes], low, high)


def _pairs_below(fans: _Fans, thresholds: FloatArray) -> IntArray:
    """Return, for each threshold (increasing), the number of triples with a value without last part below."""
    first = np.searchsorted(thresholds, fans.low, side="right")
    last = np.searchsorted(thresholds, fans.high, side="right")
    degree = fans.end - fans.begin
    # from threshold number `last` on, all pairs of a node are below; before number `first`, none
    steps = np.zeros(thresholds.size + 1, np.int64)
    np.add.at(steps, last, degree * (degree - 1) // 2)
    below = np.cumsum(steps)[:-1]
    for i in np.flatnonzero(first < last):
        arms = fans.arms[fans.begin[i] : fans.end[i]]
        rows = max(1, _BLOCK // arms.size)
        for start in range(int(first[i]), int(last[i]), rows):
            stop = min(start + rows, int(last[i]))
            # a pair is below t if its second arm exceeds what the first one leaves of centre - t
            needed = (fans.centre[i] - thresholds[start:stop])[:, None] - arms
            partners = arms.size - np.searchsorted(arms, needed, side="right")
            ordered = partners.sum(axis=1) - (arms > needed).sum(axis=1)
            below[start:stop] += ordered // 2
    return below
