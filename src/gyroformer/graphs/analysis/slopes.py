r"""How the misfit of hops changes with the curvature, over several sets of nodes.

At a curvature :math:`\kappa` the nodes of each set get the places that fit their hops best
(:mod:`gyroformer.graphs.analysis.stress`). The slopes :math:`dL_r/d\kappa` of the sets' stresses, each divided by what
its spread is to be expected from the width of the set, have a mean that is negative where a larger curvature fits
better, and positive where a smaller one does.
"""

import dataclasses as dc
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from gyroformer.graphs.adjacency import IntArray
from gyroformer.graphs.analysis.stress import Fitted, Sets, fit, start

Array = NDArray[np.float64]


@dc.dataclass(frozen=True, slots=True)
class Slope:
    """The slopes of all sets at one curvature.

    Attributes:
        mean: their mean.
        error: its standard error by the spread over the sets of one cut, as if they were independent.
        misfit: root mean square, by the weights of the stress, of what is left of a distance, in hops.
        by_cut: mean of the sets of each cut.
    """

    mean: float
    error: float
    misfit: float
    by_cut: tuple[float, ...]


class Slopes:
    """Sets of nodes that can be fitted at any curvature.

    Args:
        hops: between the nodes of each set.
        cut: the number of the cut that each set belongs to.
        dim: dimensions of the space.
        seed: of the start.
        steps: of each fit, all from the same start, so that slopes of several graphs can be compared; None for fits to
            the end, each from that of the nearest curvature.
    """

    def __init__(
        self, hops: Sequence[Array], cut: IntArray, dim: int, seed: int, steps: int | None = None
    ) -> None:
        self.cut, self.steps = cut, steps
        self.across = np.array([one.max() for one in hops])
        size = max(map(len, hops))
        padded = torch.zeros(len(hops), size, size, dtype=torch.float64)
        for i, one in enumerate(hops):
            padded[i, : len(one), : len(one)] = torch.from_numpy(one)
        self.sets = Sets(padded, padded > 0)
        # curvature moves a distance h in a ball of radius R by about h R²: a slope's variance is as its square's sum
        moved = (self.sets.weight * padded.square()).sum((1, 2)).sqrt().cpu().numpy()
        self.expected = np.square(self.across / 2) * moved
        self.begin = start(self.sets, dim, torch.Generator().manual_seed(seed))
        self.done: dict[float, Fitted] = {}

    @property
    def radius(self) -> float:
        """Half the hops across a set, the middle one of all."""
        return float(np.median(self.across)) / 2

    def at(self, curvature: float) -> Slope:
        """Return the slopes at a curvature."""
        fitted = self._fit(curvature)
        slope = fitted.slope.cpu().numpy() / self.expected
        cuts = [slope[self.cut == number] for number in range(int(self.cut.max()) + 1)]
        error = float(np.mean([one.std(ddof=1) / np.sqrt(one.size) for one in cuts]))
        misfit = float((2 * fitted.stress.sum() / self.sets.weight.sum()).sqrt())
        return Slope(float(slope.mean()), error, misfit, tuple(float(one.mean()) for one in cuts))

    def _fit(self, curvature: float) -> Fitted:
        if self.steps is not None:
            return fit(self.sets, curvature, *self.begin, steps=self.steps)
        begin = self.begin
        if self.done:
            near = self.done[min(self.done, key=lambda one: abs(one - curvature))]
            begin = near.points, near.offset
        self.done[curvature] = fit(self.sets, curvature, *begin)
        return self.done[curvature]
