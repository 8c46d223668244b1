r"""The hyperboloid of curvature k < 0: points ``(..., d + 1)``, the time coordinate first.

.. math:: -t^2 + |s|^2 = 1/\kappa, \quad t > 0, \qquad t = \tau/\sqrt{-\kappa}, \quad \tau = \sqrt{1 - \kappa|s|^2}

The space coordinates s name the point; every function here computes the time from them and none reads it, so a
float32 point is exact however far out it lies (and derivatives arrive at the space coordinates). Distances are those
of the stereographic model (:mod:`gyroformer.geometry`), to which :func:`to_half_angle` leads.

The curvature ``k``, a number or a tensor that broadcasts to ``(..., 1)``, must be negative; 0 and above count as
-1e-38. Everything but the time is analytic at k → 0, where the space is flat.
"""

import torch
from torch import Tensor

from gyroformer.geometry.parts import dot
from gyroformer.geometry.precision import Curvature, widened
from gyroformer.geometry.quadric import below_zero, joined, stretch
from gyroformer.geometry.trig import sin_ratio_and_cos

#: natural lengths of the longest translation: float32 holds no point so far out, float64 its square
FARTHEST = 200.0


def _on(s: Tensor, k: Tensor) -> Tensor:
    """Return the point over s."""
    return joined(stretch(s, k) * (-k).rsqrt(), s)


@widened
def from_space(s: Tensor, *, k: Curvature) -> Tensor:
    r"""Return the points ``(..., d + 1)`` over the space coordinates ``(..., d)``."""
    return _on(s, below_zero(k))


@widened
def translate(x: Tensor, u: Tensor, *, k: Curvature) -> Tensor:
    r"""Return the points x ``(..., d + 1)`` moved by u ``(..., d)``, tangent vectors at the pole (s = 0): a bias.

    u is transported to x along the geodesic from the pole and followed from there. With :math:`z = -\kappa|u|^2`,

    .. math:: s' = s\cosh\sqrt z +
              \Bigl(u - \frac{\kappa\langle s,u\rangle}{1 + \tau}s\Bigr)\frac{\sinh\sqrt z}{\sqrt z},

    which is s + u at k = 0, and :math:`\exp_0 u` at the pole. Beyond ``FARTHEST`` z does not grow.
    """
    k = below_zero(k)
    s = x[..., 1:]
    sine, cosine = sin_ratio_and_cos((k * dot(u, u, -1)).clamp(min=-(FARTHEST**2)))
    transported = u - (k * dot(s, u, -1) / (1 + stretch(s, k))) * s
    return _on(s * cosine + transported * sine, k)


@widened
def centroid(x: Tensor, weights: Tensor, *, k: Curvature) -> Tensor:
    r"""Return the Lorentz centroids ``(..., M, d + 1)`` of points ``(..., N, d + 1)``.

    .. math:: s = \frac{N}{\sqrt{D^2 + \kappa|N|^2}}, \qquad N = \sum w s, \quad D = \sum w\tau

    A common factor of a row of weights changes nothing; a row of zeros gives the origin. The root is at least
    :math:`\sum w`, as it is for any points and non-negative weights, however D and N are rounded.

    Args:
        x: the points.
        weights: non-negative ``(..., M, N)``, also a sparse matrix.
        k: one curvature, or one that broadcasts to ``(..., 1, 1)``.
    """
    k = below_zero(k)
    s = x[..., 1:]
    tau = stretch(s, k)
    sums = weights @ torch.cat((torch.ones_like(tau), tau, s), dim=-1)
    total, time, n = sums[..., :1], sums[..., 1:2], sums[..., 2:]
    square = torch.maximum(time * time + k * dot(n, n, -1), total * total)
    empty = square <= 0
    return _on(torch.where(empty, 0.0, n * torch.where(empty, 1.0, square).rsqrt()), k)


def to_half_angle(x: Tensor, *, k: Curvature) -> tuple[Tensor, Tensor]:
    r"""Return the half-angle sine P ``(..., d)`` and cosine C ``(..., 1)`` of the points.

    :math:`C^2 = (1 + \tau)/2` and :math:`P = s/(2C)`, so that :math:`C^2 + \kappa|P|^2 = 1`, the stereographic point is
    P/C, and neither saturates as that does.
    """
    both = _half_angle(x, k=k)
    return both[..., 1:], both[..., :1]


@widened
def _half_angle(x: Tensor, *, k: Curvature) -> Tensor:
    s = x[..., 1:]
    cosine = (0.5 * (1 + stretch(s, below_zero(k)))).sqrt()
    return torch.cat((cosine, 0.5 * s / cosine), dim=-1)
