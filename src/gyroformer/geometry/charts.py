r"""Staying on the space and changing charts: projection, antipode, stereographic projection."""

import torch
from torch import Tensor

from gyroformer.geometry.parts import conformal, dot, length
from gyroformer.geometry.precision import Curvature, common_dtype, widened

#: default margin of :func:`project`, in rounding units of the points' own format: at 8 units the stored
#: radius still resolves the distance to the boundary to about 3 %
PROJECT_UNITS = 8
#: |k| below which the ambient sphere's radius is taken as 1e19: the largest whose coordinates fit float32
FLATTEST = torch.finfo(torch.float32).tiny


def project(x: Tensor, *, k: Curvature, dim: int = -1, eps: float = -1.0) -> Tensor:
    r"""Return x pulled back to :math:`|x| \le (1 - \epsilon)/\sqrt{-\kappa}` where k < 0; x itself elsewhere.

    The default margin is ``8`` rounding units of the format of x (1e-6 in float32, 2e-15 in float64).
    """
    if eps < 0:
        eps = PROJECT_UNITS * torch.finfo(common_dtype([x])).eps
    return _project(x, k=k, dim=dim, eps=eps)


@widened
def _project(x: Tensor, *, k: Curvature, dim: int, eps: float) -> Tensor:
    radius = length(x, dim)
    ball = k < 0
    limit = (1 - eps) * torch.where(ball, -k, 1.0).rsqrt()
    outside = ball & (radius > limit)
    return torch.where(outside, x * (limit / torch.where(outside, radius, 1.0)), x)


@widened
def antipode(x: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return the opposite point of the sphere, :math:`-x/(\kappa|x|^2)`; :math:`-x` for k ≤ 0.

    The origin's antipode is the point at infinity; a point ``1/eps`` radii away on the first axis stands
    for it.
    """
    squared = dot(x, x, dim)
    lifted = (k > 0) & (squared > 0)
    opposite = -x / torch.where(lifted, k * squared, 1.0)
    axis = torch.zeros_like(opposite)
    axis.narrow(dim, 0, 1).fill_(1 / torch.finfo(x.dtype).eps)
    far = axis * torch.where(k > 0, k, 1.0).rsqrt()
    return torch.where((k > 0) & (squared == 0), far, opposite)


@widened
def inv_sproj(x: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return :math:`(\lambda_x x,\ (\lambda_x - 1)/\sqrt{|\kappa|})`, the point on the ambient quadric."""
    conform = conformal(x, k, dim)
    last = (2 - conform) / (conform * _inverse_radius(k))
    return torch.cat((2 / conform * x, last), dim=dim)


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
