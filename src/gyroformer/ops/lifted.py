r"""Between tangent vectors at the origin and the ambient sphere or hyperboloid, in the layers' own format.

A layer keeps a point as its tangent vector :math:`u = \log_0 x`. With :math:`z = \kappa|u|^2`,

.. math:: P = u\,\frac{\sin\sqrt z}{\sqrt z}, \qquad C = \cos\sqrt z, \qquad x = P/C, \qquad C^2 + \kappa|P|^2 = 1,

and twice the angle gives the ambient point, :math:`\lambda x = 2CP`, :math:`\lambda - 1 = 2C^2 - 1`. Neither
saturates at the ball's edge as x does, and neither has the tangent's pole on a sphere. One pair (P, C) serves
the lift, the transport factor :math:`\lambda/2 = C^2` and the residual sum.

Shapes: vectors ``(..., d)``; scalars and the curvature ``k`` broadcast to ``(..., 1)``.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from gyroformer.geometry.trig import arsin_ratio, artan_ratio, sin_ratio_and_cos

#: √|k||u| beyond which a hyperbolic point counts as lying at this distance: 8 rounding units of float32 from the
#: boundary of the ball, as far as ``geometry.project`` lets float64 points go. The products of three factors
#: cosh²(√|k||u|) that attention forms then stay below 1e19, far from float32's end.
REACH = math.atanh(1 - 8 * torch.finfo(torch.float32).eps)
#: relative error that rounding may make in 1 - (√|k||N|/D)², the distance of a mean from the light cone: a mean
#: closer to it (in float32 about 6/√|k| from the origin or more) counts as lying where it is this well known,
#: for beyond that its length would be rounding and the derivative of its length noise
CONE_ERROR = 1e-2


def least_cone(dtype: torch.dtype) -> float:
    """Return the smallest 1 - (√|k||N|/D)² that a mean of ambient points is given."""
    return torch.finfo(dtype).eps / CONE_ERROR


def at_least_float32(x: Tensor) -> Tensor:
    """Return ``x``, half precision cast up: angles and sums of squares need more than three digits."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def sine_cosine(
    u: Float[Tensor, "*B d"], k: Float[Tensor, "*#B 1"]
) -> tuple[Float[Tensor, "*B d"], Float[Tensor, "*B 1"]]:
    r"""Return (P, C): the half-angle sine vector ``(..., d)`` and cosine ``(..., 1)`` of tangent vectors.

    For k < 0 the length √|k||u| is limited to :data:`REACH`; the direction always passes.
    """
    u, k = at_least_float32(u), at_least_float32(k)
    z = k * (u * u).sum(-1, keepdim=True)
    far = z < -REACH * REACH
    bounded = torch.where(far, -REACH * REACH, z)
    shrink = torch.where(far, REACH * torch.where(far, -z, 1.0).rsqrt(), 1.0)
    ratio, cosine = sin_ratio_and_cos(bounded)
    return u * (ratio * shrink), cosine


def lift(sine: Float[Tensor, "*B d"], cosine: Float[Tensor, "*B 1"]) -> Float[Tensor, "*B d+1"]:
    r"""Return the ambient points :math:`[\lambda x,\ \lambda - 1]`, ``(..., d + 1)``, from (P, C)."""
    return torch.cat((2 * cosine * sine, 2 * cosine * cosine - 1), dim=-1)


def unlift(ambient: Tensor, k: Tensor) -> Tensor:
    r"""Return the tangent vector at the origin under an ambient vector [N, D] of any positive length.

    It is :math:`\log_0` of :math:`N/(D + \sqrt{D^2 + \kappa|N|^2})`: half the angle between the vector and the
    axis, along N.
    """
    ambient, k = at_least_float32(ambient), at_least_float32(k)
    # the point does not depend on the vector's length; without it no square overflows
    scale = ambient.detach().abs().amax(-1, keepdim=True)
    ambient = ambient / torch.where(scale > 0, scale, 1.0)
    n, d = ambient[..., :-1], ambient[..., -1:]
    return n * (0.5 * angle_over_sine(k * (n * n).sum(-1, keepdim=True), d, least_cone(n.dtype)))


def angle_over_sine(a: Tensor, b: Tensor, least: float) -> Tensor:
    r"""Return :math:`\mathrm{atan2}(\sqrt a, b)/\sqrt a`, analytic in a.

    For a < 0 it is :math:`\mathrm{artanh}(\sqrt{-a}/b)/\sqrt{-a}` and needs b > 0; where :math:`1 + a/b^2` is
    below ``least`` it counts as that.
    """
    front = b > 0
    safe = torch.where(front, b, 1.0)
    forward = artan_ratio((torch.where(front, a, 0.0) / (safe * safe)).clamp(min=least - 1)) / safe
    # on a sphere, past a quarter turn; a = 0 there is the cut locus, where every direction is as good
    behind = torch.where(front, 1.0, a.clamp(min=torch.finfo(a.dtype).tiny)).sqrt()
    return torch.where(front, forward, torch.atan2(behind, torch.where(front, 1.0, b)) / behind)


def translate(
    shift: tuple[Tensor, Tensor], sine: Tensor, cosine: Tensor, k: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return the Möbius sum p ⊕ x as (u, P, C): tangent vector, half-angle sine and cosine.

    ``shift`` is (P, C) of p, ``sine`` and ``cosine`` those of x. With :math:`\sigma = C_x P_p + C_p P_x` the half
    angle of the sum has the sine :math:`|\sigma|`, and its direction is that of

    .. math:: N = (C_p(1 - 2\kappa|P_x|^2) - 2\kappa C_x\langle P_p, P_x\rangle)\,P_p + C_x P_x .

    For k ≤ 0 it is formed as in :func:`translate_hyperbolic`: its coefficient of :math:`P_p` cancels where far points
    nearly oppose.
    """
    p, cp = shift
    mixed = (p * sine).sum(-1, keepdim=True)
    sigma = cosine * p + cp * sine
    z = k * (sigma * sigma).sum(-1, keepdim=True)
    ball = k <= 0
    coefficient = cp * (1 - 2 * k * (sine * sine).sum(-1, keepdim=True)) - 2 * k * cosine * mixed
    numerator = torch.where(
        ball, (cosine * sigma - z * p) / torch.where(ball, cp, 1.0), coefficient * p + cosine * sine
    )
    # |N| = |σ| √(1 - z); on a sphere 1 - z is 0 at the cut locus of the origin
    square = (1 - z).clamp(min=torch.finfo(z.dtype).eps)
    inverse = square.rsqrt()
    new_sine, new_cosine = numerator * inverse, square * inverse
    return new_sine * arsin_ratio(z), new_sine, new_cosine


def translate_hyperbolic(shift: tuple[Tensor, Tensor], sine: Tensor, cosine: Tensor, k: Tensor) -> Tensor:
    r"""Return the tangent vector of p ⊕ x for k ≤ 0, where it is as exact as p and x are known.

    With :math:`C_p^2 + \kappa|P_p|^2 = 1` the direction N of :func:`translate` is also

    .. math:: C_p N = C_x\sigma - \kappa|\sigma|^2 P_p ,

    in which only :math:`\sigma` can cancel: (-p) ⊕ p is exactly 0, and a point seen from a near one far from the
    origin keeps its digits. On a sphere :math:`C_p` can be 0.
    """
    p, cp = shift
    sigma = cosine * p + cp * sine
    z = k * (sigma * sigma).sum(-1, keepdim=True)
    return (cosine * sigma - z * p) * (arsin_ratio(z) * (1 - z).rsqrt() / cp)
