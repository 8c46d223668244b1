r"""The sum of exp(−d²) over pairs in torch, a block of rows at a time, with its gradient written out.

With :math:`\delta = C_v P_u - C_u P_v`, :math:`q = |\delta|^2`, :math:`z = \kappa q` and r(z) as in
:mod:`gyroformer.ops.pairs`,

.. math:: \frac{\partial d^2}{\partial q} = \frac{4 r}{\sqrt{1 - z}}, \qquad
          \frac{\partial d^2}{\partial\kappa} = 4 q^2\, r\, B(z), \qquad
          B(z) = \frac{1}{z}\Bigl(\frac{1}{\sqrt{1 - z}} - r\Bigr) = \frac13 + \frac{3}{10} z + \dots

and with weights :math:`a_{uv} = \partial L/\partial q_{uv}` the gradients are products of matrices, such as
:math:`\partial L/\partial P_u = 2 P_u \sum_v a C_v^2 - 2 C_u \sum_v a C_v P_v`. Only one block's pairs exist at a
time. The eager form can be differentiated again, at the cost of keeping them all.

Shapes inside this file: sines ``(H, d, N)``, cosines ``(H, N)``, curvatures ``(H,)``; blocks ``(H, R, N)``.
"""

import dataclasses as dc
import functools
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.geometry.precision import wide_dtype
from gyroformer.geometry.trig import ARCSINE_RADIUS, arsin_ratio, safe_sqrt
from gyroformer.ops.neighbours import Neighbours

#: rows at a time in the compiled form, whose loops keep no coordinates
COMPILED_ROWS = 512
#: numbers at a time in the eager form, rows x columns x heads: what the nearer caches hold of a few such blocks
EAGER_NUMBERS = 1 << 17
#: terms at which the series of B is exact to rounding for |z| below ARCSINE_RADIUS
SERIES_TERMS = {torch.float32: 8, torch.float64: 17}

#: coordinates of a space up to which differences are formed one by one (the index of nearest nodes has no more)
FEW = 10
#: e to more than this counts as e to this: a sum of millions of such terms is still a float32 number
HIGH = 70.0

Points = tuple[Tensor, Tensor]


def quotients(mine: Points, others: Points) -> Tensor:
    """Return q ``(H, R, N)``.

    All is done in the wide dtype. In few coordinates differences are formed before they are squared, one by one: a
    point is at distance 0 from its double, and a pair has the same bits among few and among all. So are they in
    compiled code, which fuses them, and where there is no wider dtype. In more coordinates it is one product of
    matrices, whose sum of products tells apart all points that the narrow dtype can name.
    """
    dtype, wide = mine[0].dtype, wide_dtype(mine[0].dtype, mine[0].device)
    if torch.compiler.is_compiling():
        return _differences(mine, others)
    (p, c), (others_p, others_c) = widened(mine), widened(others)
    if p.shape[1] <= FEW or wide == dtype:
        return _differences((p, c), (others_p, others_c)).to(dtype)
    left = torch.cat((-2 * c[:, None] * p, (p * p).sum(1, keepdim=True), (c * c)[:, None]), 1)
    right = torch.cat(
        (others_c[:, None] * others_p, (others_c**2)[:, None], (others_p**2).sum(1, keepdim=True)), 1
    )
    return (left.mT @ right).to(dtype).clamp(min=0)


def widened(points: Points) -> Points:
    """Return points in the wide dtype."""
    wide = wide_dtype(points[0].dtype, points[0].device)
    return points[0].to(wide), points[1].to(wide)


def _differences(mine: Points, others: Points) -> Tensor:
    (p, c), (others_p, others_c) = mine, others
    total = p.new_zeros(())
    for j in range(p.shape[1]):
        delta = others_c[:, None] * p[:, j, :, None] - c[:, :, None] * others_p[:, j, None]
        total = torch.addcmul(total, delta, delta)
    return total


def squared_distances(q: Tensor, k: Tensor, dim: int) -> Tensor:
    """Return d² = Σ_h 4 q r(kq)² over the spaces, which lie along ``dim``; k broadcasts to q."""
    return (4 * q * arsin_ratio(k * q).square()).sum(dim)


def block_rows(numbers: int) -> int:
    """Return how many rows of that many numbers each the eager form takes at a time."""
    return max(1, EAGER_NUMBERS // max(1, numbers))


def _exponent(mine: Points, others: Points, k: Tensor, squared: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return q, r(kq) and the exponent, d² or d."""
    q = quotients(mine, others)
    ratio = arsin_ratio(k[:, None, None] * q)
    square = (4 * q * ratio.square()).sum(0)
    return q, ratio, square if squared else safe_sqrt(square)


def terms(away: Tensor, bias: Points | None, keep: Tensor) -> Tensor:
    """Return exp(a + b − away) for what is kept, ``(R, N)``; a ``(R,)`` and b ``(N,)`` are the biases."""
    if bias is None:
        return torch.exp(-away) * keep
    exponent = (bias[0][:, None] + bias[1]) - away
    return torch.exp(exponent.clamp(max=HIGH)) * keep


def row_sums(
    mine: Points, others: Points, k: Tensor, bias: Points | None, keep: Tensor, squared: bool
) -> Tensor:
    """Return Σ_v exp(a + b − d²) over the columns that each row keeps, ``(R,)``."""
    _, _, exponent = _exponent(mine, others, k, squared)
    return terms(exponent, bias, keep).sum(-1)


def row_gradients(
    mine: Points, others: Points, k: Tensor, bias: Points | None, keep: Tensor, squared: bool, grad: Tensor
) -> tuple[Tensor, ...]:
    """Return the gradient in the rows' sines, cosines and biases, the columns' sines, cosines and biases, and k.

    Args:
        mine: sines and cosines of the rows.
        others: sines and cosines of the columns.
        k: curvatures.
        bias: of the rows and of the columns; None for none.
        keep: which columns count for each row, ``(R, N)``.
        squared: as in :func:`gyroformer.ops.pairs.log_partition`.
        grad: gradient in each row's sum, ``(R,)``.
    """
    q, ratio, exponent = _exponent(mine, others, k, squared)
    weight = -grad[:, None] * terms(exponent, bias, keep)
    mine_bias, others_bias = -weight.sum(1), -weight.sum(0)
    if not squared:
        apart = exponent > 0
        weight = torch.where(apart, 0.5 * weight / torch.where(apart, exponent, 1.0), 0.0)
    z = k[:, None, None] * q
    # at the cut locus of a sphere, z = 1, the ratio stops: beyond it only q itself changes
    inside = z < 1
    secant = torch.where(inside, (1 - torch.where(inside, z, 0.0)).rsqrt(), ratio)
    # by factors that stay numbers: the square of a far pair's q does not
    by_k = torch.where(inside, (2 * q * ratio) * (2 * q * _difference_over_z(z, secant, ratio)), 0.0)
    slope = (weight * by_k).sum((1, 2))
    # the sums below cancel where points are close and far from the origin: they are formed in double precision
    wide = wide_dtype(q.dtype, q.device)
    p, c, others_p, others_c = (t.to(wide) for t in (*mine, *others))
    twice = (8 * weight * ratio * secant).to(wide)
    to_others, to_mine = twice * c[:, :, None], twice * others_c[:, None]
    drawn_p = others_p @ to_mine.mT  # Σ_v 2a C_v P_v, (H, d, R)
    drawn_others = p @ to_others  # Σ_u 2a C_u P_u, (H, d, N)
    mine_sine = p * (to_mine @ others_c[:, :, None]).mT - c[:, None] * drawn_p
    others_sine = others_p * (c[:, None] @ to_others) - others_c[:, None] * drawn_others
    square, others_square = p.square().sum(1), others_p.square().sum(1)
    mine_cosine = c * (twice @ others_square[:, :, None]).squeeze(-1) - (p * drawn_p).sum(1)
    others_cosine = others_c * (square[:, None] @ twice).squeeze(1) - (others_p * drawn_others).sum(1)
    return mine_sine, mine_cosine, mine_bias, others_sine, others_cosine, others_bias, slope


def _difference_over_z(z: Tensor, secant: Tensor, ratio: Tensor) -> Tensor:
    """Return B(z) = (1/√(1 − z) − r(z))/z; its series has the terms C(2n, n)/4ⁿ · 2n/(2n + 1) zⁿ⁻¹."""
    near = z.abs() < ARCSINE_RADIUS
    inside = torch.where(near, z, 0.0)
    binomial = [1.0]
    for n in range(1, SERIES_TERMS[z.dtype] + 1):
        binomial.append(binomial[-1] * (2 * n - 1) / (2 * n))
    series = torch.zeros_like(z)
    for n in range(len(binomial) - 1, 0, -1):
        series = binomial[n] * 2 * n / (2 * n + 1) + inside * series
    return torch.where(near, series, (secant - ratio) / torch.where(near, 1.0, z))


@functools.cache
def _functions(compiled: bool) -> tuple[Callable[..., Tensor], Callable[..., tuple[Tensor, ...]]]:
    if not compiled:
        return row_sums, row_gradients
    return torch.compile(row_sums, fullgraph=True), torch.compile(row_gradients, fullgraph=True)


@dc.dataclass(frozen=True, slots=True)
class Sum:
    """What is summed: for each node the exp(−d²), or exp(−d), of the columns that it does not leave out."""

    neighbours: Neighbours
    columns: Tensor | None
    squared: bool
    compiled: bool
    #: the rows, consecutive ones
    rows: slice

    def blocks(self, heads: int) -> Iterator[tuple[slice, Tensor]]:
        """Yield consecutive rows, and which columns count for each of them, ``(R, K)``."""
        nodes, end = self.neighbours.num_nodes, self.rows.stop
        count = nodes if self.columns is None else self.columns.numel()
        rows = COMPILED_ROWS if self.compiled else block_rows(heads * count)
        for first in range(self.rows.start, end, rows):
            some = torch.arange(first, min(first + rows, end), device=self.neighbours.indptr.device)
            left_out = self.neighbours.adjacent(some)
            left_out[torch.arange(some.numel(), device=some.device), some] = True
            keep = ~(left_out if self.columns is None else left_out[:, self.columns])
            yield slice(first, first + some.numel()), keep

    def bias(self, rise: Tensor | None, pull: Tensor | None, rows: slice) -> Points | None:
        """Return the biases of some rows and of the columns from those of all nodes; None for none."""
        if rise is None or pull is None:
            return None
        return rise[rows], pull if self.columns is None else pull[self.columns]


class PairSums(torch.autograd.Function):
    """S ``(R,)`` of some rows from sine ``(N, H, d)``, cosine ``(N, H, 1)``, k ``(H,)`` and biases ``(N,)`` or None."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, sine: Tensor, cosine: Tensor, k: Tensor, rise: Tensor | None, pull: Tensor | None, what: Sum
    ) -> Tensor:
        """Sum block by block."""
        ctx.save_for_backward(sine, cosine, k, rise, pull)
        ctx.what = what
        sine, cosine, k = sine.detach(), cosine.detach(), k.detach()
        points, others = laid_out(sine, cosine, what.columns)
        sums = _functions(what.compiled)[0]
        parts = [
            sums(_rows(points, rows), others, k, what.bias(rise, pull, rows), keep, what.squared)
            for rows, keep in what.blocks(sine.shape[1])
        ]
        # an infinite coordinate would pass for a point far away
        finite = [t for t in (sine, cosine, k, rise, pull) if t is not None]
        return torch.cat(parts) + sum((0 * t).sum() for t in finite)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[no-untyped-def]
        """Form every block again and add up its gradient."""
        (sine, cosine, k, rise, pull), what = ctx.saved_tensors, ctx.what
        if what.compiled:
            if torch.is_grad_enabled():
                raise UsageError(
                    "the compiled form of log_partition has no second derivative: use form='eager' where you "
                    "need one"
                )
            sine, cosine, k = sine.detach(), cosine.detach(), k.detach()
        points, others = laid_out(sine, cosine, what.columns)
        gradients = _functions(what.compiled)[1]
        mine: list[tuple[Tensor, ...]] = []
        total: list[Tensor] = []
        for rows, keep in what.blocks(sine.shape[1]):
            bias = what.bias(rise, pull, rows)
            mine_grad = grad[rows.start - what.rows.start : rows.stop - what.rows.start]
            found = gradients(_rows(points, rows), others, k, bias, keep, what.squared, mine_grad)
            mine.append(found[:3])
            total = [a + b for a, b in zip(total, found[3:], strict=True)] if total else [*found[3:]]
        around = what.rows.start, sine.shape[0] - what.rows.stop
        by_p, by_c, by_rise = (F.pad(torch.cat(parts, -1), around) for parts in zip(*mine, strict=True))
        *to_columns, by_k = total
        by_p, by_c, by_pull = (
            at + (drawn if what.columns is None else torch.zeros_like(at).index_add(-1, what.columns, drawn))
            for at, drawn in zip((by_p, by_c, torch.zeros_like(by_rise)), to_columns, strict=True)
        )
        by_sine, by_cosine = by_p.permute(2, 0, 1).to(sine.dtype), by_c.mT.unsqueeze(-1).to(cosine.dtype)
        return by_sine, by_cosine, by_k, *((None, None) if rise is None else (by_rise, by_pull)), None


def laid_out(sine: Tensor, cosine: Tensor, columns: Tensor | None) -> tuple[Points, Points]:
    """Return all points and the columns' points, sines ``(H, d, N)`` and cosines ``(H, N)``."""
    points = sine.permute(1, 2, 0).contiguous(), cosine.squeeze(-1).mT.contiguous()
    return points, points if columns is None else (points[0][..., columns], points[1][..., columns])


def _rows(points: Points, rows: slice) -> Points:
    return points[0][..., rows].contiguous(), points[1][..., rows].contiguous()
