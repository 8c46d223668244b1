r"""Exponential and logarithmic maps, geodesics, parallel transport, metric. Conventions as in ``gyro``."""

import torch
from torch import Tensor

from gyroformer.geometry.gyro import half_angle_cosine, rotate
from gyroformer.geometry.parts import (
    conformal,
    dot,
    drop,
    gyro_sum,
    half_distance,
    half_distance_ratio,
    length,
)
from gyroformer.geometry.precision import Curvature, widened
from gyroformer.geometry.rows import by_rows
from gyroformer.geometry.trig import (
    artan_ratio,
    cos_root,
    sech_squared_root,
    sin_ratio,
    tan_ratio,
)


@by_rows(2)
@widened
def expmap(x: Tensor, u: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return the points reached from x along u: :math:`x \oplus \tan_\kappa(\lambda_x|u|/2)\,u/|u|`.

    For k > 0 the tangent is kept as sine and cosine, so that half a turn is an ordinary length.
    """
    return _walk(x, u / conformal(x, k, dim), k, dim)


def _walk(x: Tensor, half: Tensor, k: Tensor, dim: int) -> Tensor:
    """Return the point at twice the (origin-scaled) tangent vector ``half`` from x."""
    z = k * dot(half, half, dim)
    sphere = k > 0
    turn = torch.where(sphere, z, 0.0)
    reach = torch.where(sphere, 0.0, z)
    cosine = torch.where(sphere, cos_root(turn), 1.0)
    sine = half * torch.where(sphere, sin_ratio(turn), tan_ratio(reach))
    share = torch.where(sphere, 1.0, sech_squared_root(reach))
    return gyro_sum(x, sine, k, dim, cosine=cosine, share=share).value()


@by_rows(2)
@widened
def logmap(x: Tensor, y: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return the tangent vectors at x that lead to y.

    .. math:: \log_x(y) = \tfrac{2}{\lambda_x}\tan_\kappa^{-1}(|w|)\,w/|w|, \qquad w = (-x) \oplus y

    At the antipode of x (k > 0) every direction leads there; one of them is returned.
    """
    gyro = gyro_sum(-x, y, k, dim)
    product = gyro.conformal_x * conformal(y, k, dim)
    ratio = half_distance_ratio(gyro.total_squared, product, gyro.denominator, k)
    # |numerator| = |x - y| √D, so numerator/√D has the length of x - y
    direction = torch.where(gyro.at_pole, gyro.total, gyro.numerator * gyro.denominator.rsqrt())
    return gyro.conformal_x * ratio * direction


@by_rows(2, number=True)
@widened
def geodesic(t: Tensor, x: Tensor, y: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return the point a fraction t of the way from x to y (t = 0 is x, t = 1 is y)."""
    return expmap(x, t * logmap(x, y, k=k, dim=dim), k=k, dim=dim)


@by_rows(2, number=True)
@widened
def geodesic_unit(t: Tensor, x: Tensor, u: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return the point at distance t from x in the direction of u (of any length but 0)."""
    norm = length(u, dim)
    return _walk(x, 0.5 * t * u / torch.where(norm > 0, norm, 1.0), k, dim)


@by_rows(2, scalar=True)
@widened
def dist(x: Tensor, y: Tensor, *, k: Curvature, keepdim: bool = False, dim: int = -1) -> Tensor:
    r"""Return the geodesic distance :math:`2\sin_\kappa^{-1}(|x-y|/\sqrt{(1+\kappa|x|^2)(1+\kappa|y|^2)})`.

    It is :math:`2|x - y|` at k = 0. The derivative at x = y is taken as 0.
    """
    gyro = gyro_sum(-x, y, k, dim)
    product = gyro.conformal_x * conformal(y, k, dim)
    return drop(2 * half_distance(gyro.total_squared, product, gyro.denominator, k), keepdim, dim)


@by_rows(1, scalar=True)
@widened
def dist0(x: Tensor, *, k: Curvature, keepdim: bool = False, dim: int = -1) -> Tensor:
    r"""Return the distance from the origin, :math:`2\tan_\kappa^{-1}|x|`."""
    return drop(2 * length(x, dim) * artan_ratio(k * dot(x, x, dim)), keepdim, dim)


@by_rows(3, narrow=True)
@widened
def parallel_transport(x: Tensor, y: Tensor, v: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return v moved from x to y along the geodesic: :math:`\mathrm{gyr}[y, -x]v\,\lambda_x/\lambda_y`."""
    gyro = gyro_sum(-x, y, k, dim)
    p = half_angle_cosine(-x, y, gyro.total_squared, k, dim)
    # the plane of y and -x is that of y - x and -x, and y - x does not cancel
    turned = rotate(gyro.total, -x, v, (p, gyro.denominator), k, dim)
    return turned * (conformal(y, k, dim) / gyro.conformal_x)


@by_rows(2)
@widened
def parallel_transport0(y: Tensor, v: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return v moved from the origin to y, the scaling :math:`v\,(1 + \kappa|y|^2)`."""
    return v * conformal(y, k, dim)


@by_rows(2)
@widened
def parallel_transport0back(x: Tensor, v: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return v moved from x to the origin, the scaling :math:`v\,\lambda_x/2`."""
    return v / conformal(x, k, dim)


@by_rows(3, scalar=True)
@widened
def inner(x: Tensor, u: Tensor, v: Tensor, *, k: Curvature, keepdim: bool = False, dim: int = -1) -> Tensor:
    r"""Return the Riemannian inner product of tangent vectors at x, :math:`\lambda_x^2\langle u,v\rangle`."""
    return drop(dot(u, v, dim) * (2 / conformal(x, k, dim)).square(), keepdim, dim)


@by_rows(2, scalar=True)
@widened
def norm(x: Tensor, u: Tensor, *, k: Curvature, keepdim: bool = False, dim: int = -1) -> Tensor:
    r"""Return the length of a tangent vector at x, :math:`\lambda_x|u|`; derivative 0 at u = 0."""
    return drop(2 * length(u, dim) / conformal(x, k, dim), keepdim, dim)


@by_rows(2)
@widened
def egrad2rgrad(x: Tensor, grad: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return the Riemannian gradient :math:`\nabla/\lambda_x^2` of a Euclidean one."""
    return grad * (0.5 * conformal(x, k, dim)).square()
