r"""Staying on the space and changing charts: projection, antipode, stereographic projection."""

from typing import Any

import torch
from torch import Tensor

from gyroformer.geometry.kernels import is_plain, outside_transforms
from gyroformer.geometry.parts import conformal, dot, length
from gyroformer.geometry.precision import Curvature, common_dtype, widened
from gyroformer.geometry.rows import by_rows

#: default margin m of :func:`project`, as a fraction of the ball's radius. A stored point is known to eps across the
#: radius, at the margin a way of eps/m; transport turns directions by as much, and a walk back through the middle of
#: the ball misses its end by about eps/m². With these it misses by 3 % of the radius in float32 and 0.1 % in float64
#: after a hundred steps along the edge, with a quarter of them by some 15 times as much. The half formats have no such
#: shell: theirs is 8 rounding units, at which the stored radius resolves the distance to the boundary to about 3 %
PROJECT_MARGIN = {
    torch.float16: 8 * torch.finfo(torch.float16).eps,
    torch.bfloat16: 8 * torch.finfo(torch.bfloat16).eps,
    torch.float32: 2.0**-8,
    torch.float64: 2.0**-20,
}
#: |k| below which the ambient sphere's radius is taken as 1e19: the largest whose coordinates fit float32
FLATTEST = torch.finfo(torch.float32).tiny


def project(x: Tensor, *, k: Curvature, dim: int = -1, eps: float = -1.0) -> Tensor:
    r"""Return x pulled back to :math:`|x| \le (1 - \epsilon)/\sqrt{-\kappa}` where k < 0; x itself elsewhere.

    The default margin, 4e-3 for float32 points and 1e-6 for float64 (:data:`PROJECT_MARGIN`), leaves digits for what
    follows: tangent vectors can be transported along the edge and lead back. Distances from the origin then end at
    :math:`6.2/\sqrt{-\kappa}` and :math:`14.6/\sqrt{-\kappa}`; give a smaller ``eps`` for points farther out, whose
    distances are right up to 8 rounding units from the boundary.
    """
    if eps < 0:
        eps = PROJECT_MARGIN[common_dtype([x])]
    return _project(x, k=k, dim=dim, keep=1 - eps)


@by_rows(1, option="keep")
@widened
def _project(x: Tensor, *, k: Curvature, dim: int, keep: float) -> Tensor:
    radius = length(x, dim)
    ball = k < 0
    limit = keep * torch.where(ball, -k, 1.0).rsqrt()
    outside = ball & (radius > limit)
    return torch.where(outside, x * (limit / torch.where(outside, radius, 1.0)), x)


def antipode(x: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return the opposite point of the sphere, :math:`-x/(\kappa|x|^2)`; :math:`-x` for k ≤ 0.

    The origin's antipode is the point at infinity; a point ``1/eps`` radii away on the first axis stands
    for it.
    """
    if not torch.compiler.is_compiling() and outside_transforms() and is_plain(x) and _is_no_sphere(k):
        needed = isinstance(k, Tensor) and k.requires_grad and torch.is_grad_enabled()
        return _Negated.apply(x, k) if needed else -x
    return _antipode(x, k=k, dim=dim)


def _is_no_sphere(k: Curvature) -> bool:
    """Return whether k is one number, at most 0."""
    if isinstance(k, (int, float)):
        return k <= 0
    return is_plain(k) and k.dim() == 0 and k.item() <= 0


class _Negated(torch.autograd.Function):
    """-x, which has the gradient 0 in the curvature too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, k: Tensor) -> Tensor:
        ctx.save_for_backward(k)
        return -x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        return -grad, torch.zeros_like(*ctx.saved_tensors)


@by_rows(1, whole=False)
@widened
def _antipode(x: Tensor, *, k: Curvature, dim: int) -> Tensor:
    squared = dot(x, x, dim)
    lifted = (k > 0) & (squared > 0)
    opposite = -x / torch.where(lifted, k * squared, 1.0)
    axis = torch.zeros_like(opposite)
    axis.narrow(dim, 0, 1).fill_(1 / torch.finfo(x.dtype).eps)
    far = axis * torch.where(k > 0, k, 1.0).rsqrt()
    return torch.where((k > 0) & (squared == 0), far, opposite)


@by_rows(1, more=1)
@widened
def inv_sproj(x: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return :math:`(\lambda_x x,\ (\lambda_x - 1)/\sqrt{|\kappa|})`, the point on the ambient quadric."""
    conform = conformal(x, k, dim)
    last = (2 - conform) / (conform * _inverse_radius(k))
    return torch.cat((2 / conform * x, last), dim=dim)


@by_rows(1, more=-1, whole=False)
@widened
def sproj(x: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return the stereographic projection of ambient coordinates, the inverse of :func:`inv_sproj`.

    The sphere's pole (0, …, 0, -R) is the point at infinity; :func:`antipode`'s stand-in for it is returned.
    """
    first, last = x.narrow(dim, 0, x.size(dim) - 1), x.narrow(dim, -1, 1)
    denominator = 1 + _inverse_radius(k) * last
    unit = torch.finfo(x.dtype).eps
    at_pole = denominator.abs() < unit
    regular = first / torch.where(at_pole, unit, denominator)
    no_direction = at_pole & (dot(first, first, dim) == 0)
    return torch.where(no_direction, antipode(torch.zeros_like(first), k=k, dim=dim), regular)


def _inverse_radius(k: Tensor) -> Tensor:
    # clamped so that the flat space has a (huge) radius as well; derivative 0 there
    return k.abs().clamp(min=FLATTEST).sqrt()
