"""Points of nodes on a pseudo-hyperboloid, with the distances that the tasks ask for."""

import dataclasses as dc
from typing import Self

import torch
from torch import Tensor

from gyroformer.geometry import pseudo_hyperboloid as quadric
from gyroformer.geometry.quadric import below_zero
from gyroformer.ops.lifted import at_least_float32
from gyroformer.ops.near_field import NearField, near_log_partition
from gyroformer.ops.near_lists import Draws, renewed_lists
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.pair_blocks import Sum, block_rows
from gyroformer.ops.pairs import check_graph, checked_bias
from gyroformer.ops.pseudo_pairs import ambient, pair_sums, squared_ways, wide


@dc.dataclass(frozen=True, slots=True)
class PseudoHyperboloidPositions:
    r"""Points of the pseudo-hyperboloid of curvature :math:`\kappa = 1/\beta`, T > 1 time coordinates first.

    The distance is that of :func:`gyroformer.geometry.pseudo_hyperboloid.squared_dist`: no metric, for it is 0 on the
    light cone of a point.

    Attributes:
        x: the points, ``(N, T + S)``.
        k: the curvature, ``(1, 1)``, negative.
        time: T.
    """

    x: Tensor
    k: Tensor
    time: int

    @classmethod
    def from_tangent(cls, u: Tensor, k: Tensor, time: int) -> Self:
        """Return the points that tangent vectors ``(N, T - 1 + S)`` at the pole lead to; k is ``(1, 1)``."""
        u, k = at_least_float32(u), below_zero(at_least_float32(k))
        return cls(quadric.expmap0(u, beta=inverse(k), time=time), k, time)

    def __len__(self) -> int:
        return self.x.size(0)

    @property
    def device(self) -> torch.device:
        """Where the points are stored."""
        return self.x.device

    def pair_squared_dist(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the squared distances ``(M,)`` of the pairs ``source[i], target[i]``."""
        return quadric.squared_dist(self.x[source], self.x[target], beta=inverse(self.k), time=self.time)

    def squared_dist_rows(self, rows: Tensor) -> Tensor:
        """Return the squared distances ``(R, N)`` of the nodes ``rows`` to all nodes."""
        points = self._ambient()
        blocks = [
            squared_ways(points[some], points, self.time, self.x.dtype)
            for some in rows.split(block_rows(len(self)))
        ]
        return torch.cat(blocks) / -self.k if blocks else self.x.new_empty(0, len(self))

    def log_partition(
        self,
        neighbours: Neighbours,
        *,
        columns: Tensor | None = None,
        scale: float = 1.0,
        squared: bool = True,
        bias: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Return ``(N,)``: see :func:`gyroformer.ops.pairs.log_partition`."""
        check_graph(self.x, neighbours, columns)
        what = Sum(neighbours, columns, squared, compiled=False, rows=slice(0, len(self)))
        bias = checked_bias(bias, self.x)
        sums = pair_sums(self._ambient(), -1 / wide(self.k), self.time, what, self.x.dtype, bias)
        return torch.log1p(scale * sums)

    def near_log_partition(
        self, field: NearField, *, squared: bool = True, bias: tuple[Tensor, Tensor] | None = None
    ) -> Tensor:
        """Return ``(N,)``: see :mod:`gyroformer.ops.near_field`."""
        check_graph(self.x, field.neighbours, None)
        bias = checked_bias(bias, self.x)
        return near_log_partition(self.pair_squared_dist, field, squared=squared, bias=bias)

    def renewed_lists(self, lists: Tensor, neighbours: Neighbours, pull: Tensor | None = None) -> Tensor:
        """Return lists of near nodes for where the nodes are: see :mod:`gyroformer.ops.near_lists`."""
        draws = Draws.usual(lists.shape[1], len(self))
        return renewed_lists(self.pair_squared_dist, lists, neighbours, pull, draws)

    def coordinates(self) -> Tensor:
        """Return the tangent vectors at the pole that lead to the points, ``(N, 1, T - 1 + S)``."""
        return quadric.logmap0(self.x, beta=inverse(self.k), time=self.time).unsqueeze(1)

    def points(self) -> Tensor:
        """Return the points of the quadric, ``(N, 1, T + S)``."""
        return self.x.unsqueeze(1)

    def _ambient(self) -> Tensor:
        """Return the points in units of the radius, on their quadric to the rounding of the wide dtype."""
        k = wide(self.k)
        sphere, s = quadric.to_sphere_product(wide(self.x), beta=1 / k, time=self.time)
        return ambient(sphere * (-k).sqrt(), s, k)


def inverse(k: Tensor) -> Tensor:
    """Return β = 1/k, of k ``(1, 1)``, in the wide dtype and without dimensions: it widens no result."""
    return (1 / wide(k)).reshape(())
