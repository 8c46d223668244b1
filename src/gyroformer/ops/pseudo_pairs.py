r"""Distances between all pairs of points of a pseudo-hyperboloid, and their partition sums, in blocks of rows.

With :math:`\kappa = 1/\beta`, points :math:`x = (x_t, x_s)` of directions :math:`\theta` and lengths
:math:`\rho = \sqrt{1 - \kappa|x_s|^2}` (:mod:`gyroformer.geometry.pseudo_hyperboloid`), one product of matrices gives

.. math:: q = \langle x, y\rangle/\beta = \langle X, \Sigma Y\rangle, \qquad
          X = (\rho\theta, \sqrt{-\kappa}\,x_s), \qquad \Sigma = \mathrm{diag}(1, \ldots, 1, -1, \ldots, -1),

and the squared distance is :math:`-\beta\,\omega^2`, where the way ω in units of the radius needs one number:

.. math:: \omega = 2\psi(w) \quad (q \ge 0), \qquad \omega = \pi + 2\psi(w) \quad (q < 0), \qquad
          w = \tfrac12(|q| - 1),

with :math:`\psi(w) = \mathrm{arsinh}\sqrt w` for w ≥ 0, :math:`-\arcsin\sqrt{-w}` for w < 0 (a way may be
negative: its square counts). The derivative is
:math:`\partial\omega^2/\partial q = \mathrm{sgn}(q)\,\omega/\sqrt{|w|(1 + w)}`.

The product and w, which cancel near the light cone and far from the pole, are formed in the wide dtype; the angle,
which does not, in the points' own. Masks multiply instead of choosing: on a CPU that takes a tenth of the time.
"""

import math

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gyroformer.geometry.precision import wide_dtype
from gyroformer.geometry.quadric import UNRESOLVED, below_zero, stretch
from gyroformer.ops.native import fused
from gyroformer.ops.native.fused_pseudo import pseudo_sums
from gyroformer.ops.pair_blocks import Sum, terms

#: w beyond which points count as that far apart, above 45 radii: its square, which the derivative forms, is still
#: a float32 number
FARTHEST = 1e19


def ambient(theta: Tensor, s: Tensor, k: Tensor) -> Tensor:
    """Return X ``(N, T + S)`` of unit directions ``(N, T)`` and space parts ``(N, S)``, k ``(1, 1)``."""
    k = below_zero(k)
    return torch.cat((stretch(s, k) * theta, (-k).sqrt() * s), dim=-1)


def squared_ways(rows: Tensor, columns: Tensor, time: int, dtype: torch.dtype) -> Tensor:
    """Return ω² ``(R, K)`` of all pairs of ambient vectors ``(R, D)`` and ``(K, D)``, in ``dtype``.

    Pairs that the product does not tell from the light cone (ω = 0), or from that of the antipode (ω = π), lie
    on it, with derivative 0.
    """
    result: Tensor = _Squared.apply(rows, columns, time, dtype)
    return result


def pair_sums(
    points: Tensor,
    radius_squared: Tensor,
    time: int,
    what: Sum,
    dtype: torch.dtype,
    bias: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Return Σ exp(a + b − d²) ``(N,)`` for ambient vectors ``(N, D)``; see :class:`~gyroformer.ops.pair_blocks.Sum`.

    No N x N tensor is kept: the backward pass forms each block again. It has no second derivative. Where all nodes of
    an undirected graph are summed over, without biases, and results are float32 on a CPU, a C++ kernel meets each pair
    once.
    """
    graph = what.neighbours
    if what.columns is None and bias is None and graph.back is None and _kernel_suffices(points, dtype):
        found: Tensor = pseudo_sums(points, radius_squared, graph.indptr, graph.indices, time, what.squared)
        return found
    result: Tensor = _Sums.apply(points, radius_squared, *(bias or (None, None)), time, what, dtype)
    return result


def _kernel_suffices(points: Tensor, dtype: torch.dtype) -> bool:
    formats = dtype == torch.float32 and points.dtype == torch.float64
    return formats and points.device.type == "cpu" and fused.usable()


def mirrored(points: Tensor, time: int) -> Tensor:
    """Return Σ X: the space part with the other sign."""
    return torch.cat((points[..., :time], -points[..., time:]), dim=-1)


def _excess(rows: Tensor, columns: Tensor, time: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return w and whether q is negative, 1 or 0, both ``(R, K)`` in ``dtype``.

    A w within its rounding of 0 is 0, and a q within its rounding of 0 not negative: points so far out that
    their product is rounding are not taken for antipodes.
    """
    half = (0.5 * mirrored(rows, time)) @ columns.mT
    w = half.abs().sub_(0.5).clamp_(max=FARTHEST).to(dtype)
    unit = UNRESOLVED * torch.finfo(half.dtype).eps
    noise = (unit * rows.norm(dim=-1, keepdim=True)).to(dtype) * columns.norm(dim=-1).to(dtype)
    return w.mul_(w.abs() > noise), (half < -noise).to(dtype)


def _way(w: Tensor, far: Tensor) -> Tensor:
    """Return the way ω."""
    above = w.clamp(min=0)
    # arsinh √w = log(1 + √w + (√(1 + w) - 1)), the last difference without its cancellation
    hyperbolic = (above + 1).sqrt_().add_(1).reciprocal_().mul_(above).add_(above.sqrt_()).log1p_()
    circular = (-w).clamp_(min=0).sqrt_().asin_()
    return hyperbolic.sub_(circular).mul_(2).add_(far, alpha=math.pi)


def _slope(w: Tensor, far: Tensor, way: Tensor) -> Tensor:
    """Return the derivative of ω² in q, 0 where w is."""
    edge = w == 0
    inverse = (w + 1).mul_(w.abs()).add_(edge).rsqrt_().mul_(~edge)
    return inverse.mul_(1 - 2 * far).mul_(way)


class _Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: Tensor, columns: Tensor, time: int, dtype: torch.dtype) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(rows, columns)
        ctx.time, ctx.dtype = time, dtype
        return _way(*_excess(rows, columns, time, dtype)).square_()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:  # type: ignore[no-untyped-def]
        (rows, columns), time = ctx.saved_tensors, ctx.time
        w, far = _excess(rows, columns, time, ctx.dtype)
        return *_drawn(_slope(w, far, _way(w, far)).mul_(grad), rows, columns, time), None, None


def _drawn(weight: Tensor, rows: Tensor, columns: Tensor, time: int) -> tuple[Tensor, Tensor]:
    """Return the gradients in rows and columns from the one in q, ``(R, K)``."""
    # the space and time parts of these sums cancel on their way to the coordinates: they are wide
    weight = weight.to(rows.dtype)
    return weight @ mirrored(columns, time), weight.mT @ mirrored(rows, time)


class _Sums(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx,
        points: Tensor,
        radius_squared: Tensor,
        rise: Tensor | None,
        pull: Tensor | None,
        time: int,
        what: Sum,
        dtype: torch.dtype,
    ) -> Tensor:
        ctx.save_for_backward(points, radius_squared, rise, pull)
        ctx.time, ctx.what, ctx.dtype = time, what, dtype
        columns, scale = _columns(points, what), radius_squared.to(dtype)
        parts = []
        for rows, keep in what.blocks(1):
            way = _way(*_excess(points[rows], columns, time, dtype))
            away = way.square_().mul_(scale) if what.squared else way.abs_().mul_(scale.sqrt())
            parts.append(terms(away, what.bias(rise, pull, rows), keep).sum(-1))
        # an infinite coordinate would pass for a point far away
        return torch.cat(parts) + (0 * points).sum().to(dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[no-untyped-def]
        (points, radius_squared, rise, pull), time, what = ctx.saved_tensors, ctx.time, ctx.what
        columns, scale = _columns(points, what), radius_squared.to(ctx.dtype)
        mine, others = torch.empty_like(points), torch.zeros_like(columns)
        by_scale = torch.zeros_like(radius_squared)
        by_rise, by_column = grad.new_zeros(len(points)), grad.new_zeros(len(columns))
        for rows, keep in what.blocks(1):
            w, far = _excess(points[rows], columns, time, ctx.dtype)
            way = _way(w, far)
            square = way.square()
            away = square * scale if what.squared else (square * scale).sqrt_()
            weight = terms(away, what.bias(rise, pull, rows), keep).mul_(grad[rows, None])
            by_rise[rows] = weight.sum(1)
            by_column += weight.sum(0)
            weight = weight.neg_() if what.squared else _by_square(weight, away)
            by_scale += (square * weight).sum().to(by_scale.dtype)
            slope = _slope(w, far, way).mul_(weight).mul_(scale)
            mine[rows], drawn = _drawn(slope, points[rows], columns, time)
            others += drawn
        by_pull = by_column
        if what.columns is None:
            mine += others
        else:
            mine = mine.index_add(0, what.columns, others)
            by_pull = torch.zeros_like(by_rise).index_add(0, what.columns, by_column)
        return mine, by_scale, *((None, None) if rise is None else (by_rise, by_pull)), None, None, None


def _columns(points: Tensor, what: Sum) -> Tensor:
    return points if what.columns is None else points[what.columns]


def _by_square(weight: Tensor, away: Tensor) -> Tensor:
    """Return the derivative in d² of a function of d that falls by ``weight``: 0 at d = 0."""
    together = away == 0
    return weight.div_(away + together).mul_(~together).mul_(-0.5)


def wide(tensor: Tensor) -> Tensor:
    """Return the tensor in the dtype that products of its own dtype are formed in."""
    return tensor.to(wide_dtype(tensor.dtype, tensor.device))
