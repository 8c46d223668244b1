r"""The scalars that all operations share, each in its well-conditioned form. Shapes: ``(..., 1)`` at ``dim``.

Everything here takes tensors already in the wide dtype (:mod:`gyroformer.geometry.precision`).
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from gyroformer.geometry.trig import arsin_ratio, artan_ratio, safe_sqrt


def dot(x: Tensor, y: Tensor, dim: int) -> Tensor:
    """Return the Euclidean inner product, the reduced dimension kept."""
    return (x * y).sum(dim, keepdim=True)


def length(x: Tensor, dim: int) -> Tensor:
    """Return the Euclidean norm, with derivative 0 (not NaN) at the zero vector."""
    return safe_sqrt(dot(x, x, dim))


def drop(scalar: Tensor, keepdim: bool, dim: int) -> Tensor:
    """Return the scalar without its kept dimension, unless ``keepdim``."""
    return scalar if keepdim else scalar.squeeze(dim)


def conformal(x: Tensor, k: Tensor, dim: int) -> Tensor:
    r"""Return :math:`c_x = 1 + \kappa\lVert x\rVert^2 = 2/\lambda_x`, at least one rounding unit.

    The unit is the smallest value that ``1 + k|x|²`` takes inside the ball in this format: a point on or
    beyond the boundary (k < 0) counts as lying on the last shell inside it.
    """
    return (1 + k * dot(x, x, dim)).clamp(min=torch.finfo(x.dtype).eps)


class GyroSum(NamedTuple):
    r""":math:`x \oplus y` as a fraction (see :func:`gyro_sum`)."""

    numerator: Tensor  # (..., d)
    denominator: Tensor  # (..., 1), floored above 0
    total: Tensor  # (..., d): cosine * x + point
    total_squared: Tensor  # (..., 1)
    conformal_x: Tensor  # (..., 1)
    at_pole: Tensor  # (..., 1): the sum is the point at infinity (k > 0)

    def value(self) -> Tensor:
        """Return the point; at the pole, where its direction is lost, a point 1/eps away along ``total``."""
        regular = self.numerator / self.denominator
        return torch.where(self.at_pole, self.total * self.denominator.rsqrt(), regular)


def gyro_sum(
    x: Tensor,
    point: Tensor,
    k: Tensor,
    dim: int,
    *,
    cosine: Tensor | None = None,
    share: Tensor | None = None,
) -> GyroSum:
    r"""Return the Möbius sum of x and y = ``point / cosine``, without cancellation.

    With :math:`\sigma = Cx + p`, :math:`c_x = 1 + \kappa|x|^2` and :math:`n = C^2 + \kappa|p|^2`
    (:math:`C = 1` and :math:`n = c_y` for a plain point),

    .. math::
        x \oplus \tfrac{p}{C} &= \frac{(C^2 - 2\kappa C\langle x,p\rangle - \kappa|p|^2)\,x + c_x C p}{D}
            = \frac{c_x C \sigma - \kappa|\sigma|^2 x}{D}, \\
        D &= C^2 - 2\kappa C\langle x, p\rangle + \kappa^2|x|^2|p|^2
            = c_x n - \kappa|\sigma|^2 = \frac{|Cx - \kappa|x|^2 p|^2}{|x|^2} .

    The first forms are used where their terms do not cancel. For :math:`x \approx -y` the numerator's second
    form is exact; near the edge of the ball D's second form is a sum of positive terms; near the pole
    (k > 0, the sum is the point at infinity) D's third form keeps the digits that the coordinates have.

    Args:
        x: points ``(..., d)``.
        point: the second summand's coordinates times ``cosine``.
        k: curvature, broadcasting to ``(..., 1)``.
        dim: dimension of the coordinates.
        cosine: C; 1 when absent.
        share: n, where the caller knows it better than from C and p.
    """
    info = torch.finfo(x.dtype)
    c = torch.ones_like(k) if cosine is None else cosine
    n = conformal(point, k, dim) if share is None else share
    xx, xp, pp = dot(x, x, dim), dot(x, point, dim), dot(point, point, dim)
    conformal_x = (1 + k * xx).clamp(min=info.eps)
    total = c * x + point
    total_squared = dot(total, total, dim)

    opposed = total_squared < 0.5 * (c * c * xx + pp)
    numerator = torch.where(
        opposed,
        conformal_x * c * total - k * total_squared * x,
        (c * c - 2 * k * c * xp - k * pp) * x + conformal_x * c * point,
    )

    scale = c * c + (k * xx) * (k * pp)
    mixed = 2 * k * c * xp
    cancels = mixed > 0.5 * scale
    near_pole = cancels & (k > 0)
    direct = c * x - (k * xx) * point
    by_pole = dot(direct, direct, dim) / torch.where(near_pole, xx, 1.0)
    by_edge = conformal_x * n - k * total_squared
    denominator = torch.where(cancels, torch.where(k > 0, by_pole, by_edge), scale - mixed)
    # closer to the pole than the coordinates can say: the floor is that distance, squared
    floor = torch.where(k > 0, info.eps**2 * scale, 0.0) + info.tiny
    return GyroSum(
        numerator=numerator,
        denominator=torch.maximum(denominator, floor),
        total=total,
        total_squared=total_squared,
        conformal_x=conformal_x,
        at_pole=denominator <= floor,
    )


def half_distance(between: Tensor, product: Tensor, denominator: Tensor, k: Tensor) -> Tensor:
    r"""Return :math:`\tfrac12 d(x, y)`.

    The arguments are :math:`b = |x-y|^2`, :math:`P = c_x c_y` and :math:`D = P - \kappa b`. Past a quarter
    turn (k > 0) it is half a turn less the way from the antipode, whose derivative does not cancel. At x = y
    its derivative is taken as 0.
    """
    far = (k > 0) & (k * between > denominator)
    near = safe_sqrt(between) * half_distance_ratio(between, product, denominator, k)
    rest = torch.where(far, denominator, 0.0) / torch.where(far, k * between, 1.0)
    beyond = (0.5 * math.pi - safe_sqrt(rest) * artan_ratio(rest)) * torch.where(far, k, 1.0).rsqrt()
    return torch.where(far, beyond, near)


def half_distance_ratio(between: Tensor, product: Tensor, denominator: Tensor, k: Tensor) -> Tensor:
    r"""Return :math:`\tfrac12 d(x, y)/|x - y|`, analytic at x = y (arguments of :func:`half_distance`).

    The distance is :math:`2\sin_\kappa^{-1}\sqrt{b/P} = 2\tan_\kappa^{-1}\sqrt{b/D}`: the first (arsinh) is
    exact up to the edge of the ball, the second (arctan) up to the antipode.
    """
    ball = k <= 0
    safe_product = torch.where(ball, product, 1.0)
    hyperbolic = arsin_ratio(torch.where(ball, k * between, 0.0) / safe_product) * safe_product.rsqrt()
    safe_denominator = torch.where(ball, 1.0, denominator)
    spherical = artan_ratio(torch.where(ball, 0.0, k * between) / safe_denominator) * safe_denominator.rsqrt()
    return torch.where(ball, hyperbolic, spherical)
