r"""How likely it is that one node is an ancestor, or a neighbour, of another, from where both are.

.. math:: s(u, v) = -d(u, v)^2 + a\,(\rho_u - \rho_v)

where :math:`\rho` is the distance from the origin and a is learned: an ancestor is near, and nearer to the centre.
``distance`` is the first term alone, which is the same both ways; ``dot`` is :math:`\rho_u^2 + \rho_v^2 - d(u, v)^2`,
in a flat space twice the inner product. Neighbours of a graph without directions have one of these two.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from gyroformer.ops.positions import Positions

ScoreKind = Literal["depth", "distance", "dot"]
#: where the weight of the depth starts: from 1 the points first spread without any order (see docs/log.md)
START = 5.0

Bias = tuple[Tensor, Tensor] | None


class PairScore(nn.Module):
    """The score s(u, v) of v as an ancestor or a neighbour of u.

    Args:
        kind: ``"depth"``, ``"distance"`` or ``"dot"``.
    """

    def __init__(self, kind: ScoreKind = "depth") -> None:
        super().__init__()
        self.kind = kind
        self.weight = nn.Parameter(torch.tensor(START)) if kind == "depth" else None

    @torch.no_grad()
    def weigh_depth(self, weight: float) -> None:
        """Let the depth count ``weight`` times from now on, if it counts."""
        if self.weight is not None:
            self.weight.fill_(weight)

    def bias(self, positions: Positions) -> Bias:
        """Return what is added to −d² for the node below, ``(N,)``, and for the one above; None for nothing."""
        if self.weight is not None:
            depth = self.weight * radius(positions)
            return depth, -depth
        if self.kind == "dot":  # 2⟨x, y⟩ = |x|² + |y|² − |x − y|²
            square = _radius_squared(positions)
            return square, square
        return None

    def pairs(self, positions: Positions, below: Tensor, above: Tensor) -> Tensor:
        """Return the scores ``(M,)`` of pairs of nodes."""
        near, bias = -positions.pair_squared_dist(below, above), self.bias(positions)
        return near if bias is None else near + bias[0][below] + bias[1][above]

    def costs(self, positions: Positions, below: Tensor) -> Tensor:
        """Return −s, ``(R, N)``, of all nodes beside some: the smallest comes first, as with distances."""
        far, bias = positions.squared_dist_rows(below), self.bias(positions)
        return far if bias is None else far - bias[0][below, None] - bias[1]

    def height(self, positions: Positions) -> Tensor:
        """Return a number for each node, ``(N,)``, that is larger for an ancestor than for its descendants."""
        if self.kind == "dot":
            return _radius_squared(positions)
        return -radius(positions) if self.weight is None else -self.weight * radius(positions)


def radius(positions: Positions) -> Tensor:
    """Return the distance of each node from the origin, ``(N,)``; its derivative at the origin counts as 0."""
    square = _radius_squared(positions)
    away = square > 0
    return torch.where(away, torch.where(away, square, 1.0).sqrt(), 0.0)


def _radius_squared(positions: Positions) -> Tensor:
    # a tangent vector of a stereographic space is half as long as its geodesic
    return 4 * positions.coordinates().square().sum((-1, -2))
