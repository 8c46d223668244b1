r"""Maps of points of the hyperboloid by their space coordinates: what Lorentz networks are made of.

A point is its space part s ``(..., d)``; its time :math:`t = \sqrt{|s|^2 - 1/\kappa}` is computed where a map reads it
(:mod:`gyroformer.geometry.hyperboloid`) and never stored, so that every result lies on the hyperboloid. A map f into
a space of another curvature leads to :math:`\sqrt{\kappa/\kappa'}\,f(s)`: the same point up to the unit of length.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gyroformer.errors import UsageError
from gyroformer.geometry import hyperboloid
from gyroformer.geometry.parts import length
from gyroformer.nn.sparse import edge_sum
from gyroformer.nn.sparse_features import row_length
from gyroformer.options.layers import head_width


class LorentzLinear(nn.Module):
    r"""A linear map of all coordinates, :math:`s' = W(t, s) + b`; with the new time it is the next point.

    It starts as published: Xavier's uniform weights times :math:`\sqrt 2`, and no bias.

    Args:
        before: width of the space part.
        after: width of the result.
    """

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.linear = nn.Linear(before + 1, after)
        nn.init.xavier_uniform_(self.linear.weight, gain=math.sqrt(2))
        nn.init.zeros_(self.linear.bias)

    def forward(self, s: Tensor, k: Tensor) -> Tensor:
        """Return ``(..., after)`` for space parts ``(..., before)``; k is ``(1, 1)``."""
        # the time over s is that over any vector as long: no copy of a wide s with one more column is made
        time = hyperboloid.from_space(row_length(s), k=k)[..., :1]
        weight = self.linear.weight
        return F.linear(s, weight[:, 1:], self.linear.bias) + time * weight[:, 0]


def rescaled(s: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """Return the space parts that have in the curvature ``after`` the shape they had in ``before``, (1, 1) each."""
    return s * (before / after).sqrt()


def mean_of_two(a: Tensor, b: Tensor, weight: float, k: Tensor) -> Tensor:
    """Return the space parts ``(N, d)`` of the Lorentz centroids of a and b, b with that weight of 1."""
    both = hyperboloid.from_space(torch.stack((a, b), dim=-2), k=k)
    weights = both.new_tensor([[1 - weight, weight]])
    return hyperboloid.centroid(both, weights, k=k).squeeze(-2)[..., 1:]


def mean_over_neighbours(s: Tensor, matrix: Tensor, k: Tensor) -> Tensor:
    """Return the space parts ``(N, d)`` of the Lorentz centroids by the rows of a sparse matrix ``(N, N)``."""
    return hyperboloid.centroid(hyperboloid.from_space(s, k=k), matrix, k=k)[..., 1:]


def focused(x: Tensor, power: float) -> Tensor:
    r"""Return the feature map :math:`\phi(x) = |y|\,y^p/|y^p|`, :math:`y = \mathrm{ReLU}(x)`: sharper, as long.

    A vector without a positive coordinate gives 0.
    """
    y = F.relu(x)
    # the direction does not depend on the scale; with the largest coordinate at 1 no power over- or underflows
    top = y.detach().amax(-1, keepdim=True)
    y = y / torch.where(top > 0, top, 1.0)
    raised = y**power
    size = length(raised, -1)
    return raised * (top * length(y, -1) / torch.where(size > 0, size, 1.0))


class FocusedAttention(nn.Module):
    r"""Attention of every node to all nodes of its graph, in time and memory linear in their number.

    .. math:: Z = \frac{\phi(Q)\,(\phi(K)^\top V)}{\phi(Q)\,(\phi(K)^\top 1)} + \Psi V

    on the space parts of queries, keys and values, which are Lorentz linear maps of the nodes; φ is :func:`focused`,
    Ψ a linear map. A node whose query meets no key gets :math:`\Psi V` alone.

    Args:
        dim: width of the space part, all heads together.
        heads: number of heads; each has its share of the coordinates.
        power: the p of φ, at least 1.
    """

    def __init__(self, dim: int, heads: int, power: float) -> None:
        super().__init__()
        head_width(dim, heads)
        if power < 1:
            raise UsageError(f"power must be at least 1, got {power}")
        self.heads, self.power = heads, power
        self.query, self.key, self.value = (LorentzLinear(dim, dim) for _ in range(3))
        self.skip = nn.Linear(dim, dim)

    def forward(self, s: Tensor, k: Tensor, segment: Tensor | None = None, count: int = 1) -> Tensor:
        """Return the space parts ``(N, dim)``.

        Args:
            s: space parts ``(N, dim)``.
            k: curvature ``(1, 1)``.
            segment: the graph of each node, ``(N,)``; None for one graph.
            count: number of graphs.
        """
        value = self.value(s, k)
        query, key = (
            focused(part(s, k).unflatten(-1, (self.heads, -1)), self.power) for part in (self.query, self.key)
        )
        # beside the values a column of ones: the normaliser is summed as they are
        wide = F.pad(value.unflatten(-1, (self.heads, -1)), (0, 1), value=1.0)
        if segment is None:
            drawn = torch.einsum("nhd,hde->nhe", query, torch.einsum("nhd,nhe->hde", key, wide))
        else:
            sums = edge_sum(key.unsqueeze(-1) * wide.unsqueeze(-2), segment, count)
            drawn = torch.einsum("nhd,nhde->nhe", query, sums[segment])
        total = drawn[..., -1:]
        met = total > torch.finfo(total.dtype).tiny
        mean = torch.where(met, drawn[..., :-1] / torch.where(met, total, 1.0), 0.0)
        return mean.flatten(-2) + self.skip(value)
