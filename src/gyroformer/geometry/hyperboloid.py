r"""The hyperboloid of curvature k < 0: points ``(..., d + 1)``, the time coordinate first.

.. math:: -t^2 + |s|^2 = 1/\kappa, \quad t > 0, \qquad t = \tau/\sqrt{-\kappa}, \quad \tau = \sqrt{1 - \kappa|s|^2}

The space coordinates s name the point; every function here computes the time from them and none reads it, so a
float32 point is exact however far out it lies (and derivatives arrive at the space coordinates). The same holds
for the time :math:`\langle s, v\rangle/t` of a tangent vector (t', v). Tangent vectors at the origin
:math:`(1/\sqrt{-\kappa}, 0)` are given without their time, which is 0, as ``(..., d)``.

The metric is that of the ambient space, so a tangent vector at the origin is as long as the way it leads;
in the stereographic model (:mod:`gyroformer.geometry`), whose metric there is 4 times the Euclidean one, the
same way is half the vector. The curvature ``k``, a number or a tensor that broadcasts to ``(..., 1)``, must be
negative; 0 and above count as -1e-38. Everything but the time is analytic at k → 0, where the space is flat.
"""

import torch
from torch import Tensor

from gyroformer.geometry.parts import conformal, dot, drop
from gyroformer.geometry.precision import Curvature, widened
from gyroformer.geometry.quadric import (
    below_zero,
    gram_half_chord_squared,
    half_chord_squared,
    joined,
    stretch,
    within_reach,
)
from gyroformer.geometry.trig import arsin_ratio, safe_sqrt, sin_ratio_and_cos


def _on(s: Tensor, k: Tensor) -> Tensor:
    """Return the point over s."""
    return joined(stretch(s, k) * (-k).rsqrt(), s)


def _tangent(s: Tensor, v: Tensor, k: Tensor) -> Tensor:
    """Return the tangent vector at the point over s whose space part is v."""
    return joined(dot(s, v, -1) * (-k).sqrt() / stretch(s, k), v)


@widened
def from_space(s: Tensor, *, k: Curvature) -> Tensor:
    r"""Return the points ``(..., d + 1)`` over the space coordinates ``(..., d)``."""
    return _on(s, below_zero(k))


@widened
def expmap0(u: Tensor, *, k: Curvature) -> Tensor:
    r"""Return the points reached from the origin along u ``(..., d)``.

    .. math:: s = u\,\frac{\sin\sqrt z}{\sqrt z}, \qquad t = \frac{\cos\sqrt z}{\sqrt{-\kappa}}, \qquad z = \kappa|u|^2

    (sinh and cosh, as z ≤ 0). A vector longer than :data:`~gyroformer.geometry.quadric.REACH` leads that far.
    """
    k = below_zero(k)
    u, z = within_reach(u, k * dot(u, u, -1))
    sine, cosine = sin_ratio_and_cos(z)
    return torch.cat((cosine * (-k).rsqrt(), u * sine), dim=-1)


@widened
def logmap0(x: Tensor, *, k: Curvature) -> Tensor:
    r"""Return the tangent vectors ``(..., d)`` at the origin that lead to x, :math:`s\arcsin\sqrt z/\sqrt z`."""
    s = x[..., 1:]
    return s * arsin_ratio(below_zero(k) * dot(s, s, -1))


@widened
def expmap(x: Tensor, v: Tensor, *, k: Curvature) -> Tensor:
    r"""Return the points reached from x along the tangent vectors v, both ``(..., d + 1)``.

    .. math:: s' = s\cos\sqrt z + v\,\frac{\sin\sqrt z}{\sqrt z}, \qquad
        z = \frac{\kappa}{\tau^2}\bigl(|v|^2 - \kappa|s|^2|v_\perp|^2\bigr)

    where v is the vector's space part and :math:`v_\perp` what of it is orthogonal to s. All terms of its squared
    length are positive: the time part is not subtracted.
    """
    k = below_zero(k)
    s, v = x[..., 1:], v[..., 1:]
    squared = dot(s, s, -1)
    across = v - s * (dot(s, v, -1) / torch.where(squared > 0, squared, 1.0))
    z = k * (dot(v, v, -1) - k * squared * dot(across, across, -1)) / (1 - k * squared)
    v, z = within_reach(v, z)
    sine, cosine = sin_ratio_and_cos(z)
    return _on(s * cosine + v * sine, k)


@widened
def logmap(x: Tensor, y: Tensor, *, k: Curvature) -> Tensor:
    r"""Return the tangent vectors ``(..., d + 1)`` at x that lead to y.

    .. math:: v = \frac{\arcsin\sqrt z}{\sqrt z\sqrt{1 - z}}\,(s_y - s_x + 2z\,s_x), \qquad z = \kappa h^2

    with h half the chord between the points.
    """
    k = below_zero(k)
    a, b = x[..., 1:], y[..., 1:]
    z = k * half_chord_squared(a, b, k)
    return _tangent(a, (arsin_ratio(z) * (1 - z).rsqrt()) * (b - a + 2 * z * a), k)


@widened
def squared_dist(x: Tensor, y: Tensor, *, k: Curvature, keepdim: bool = False) -> Tensor:
    r"""Return the squared distance :math:`4h^2(\arcsin\sqrt z/\sqrt z)^2`, :math:`z = \kappa h^2`; smooth at x = y."""
    k = below_zero(k)
    h2 = half_chord_squared(x[..., 1:], y[..., 1:], k)
    return drop(4 * h2 * arsin_ratio(k * h2).square(), keepdim, -1)


@widened
def dist(x: Tensor, y: Tensor, *, k: Curvature, keepdim: bool = False) -> Tensor:
    r"""Return the geodesic distance :math:`2\,\mathrm{arsinh}(\sqrt{-\kappa}\,h)/\sqrt{-\kappa}`, h half the chord.

    The derivative at x = y is taken as 0.
    """
    k = below_zero(k)
    h2 = half_chord_squared(x[..., 1:], y[..., 1:], k)
    return drop(2 * safe_sqrt(h2) * arsin_ratio(k * h2), keepdim, -1)


@widened
def pairwise_squared_dist(x: Tensor, y: Tensor, *, k: Curvature) -> Tensor:
    r"""Return all squared distances ``(..., N, M)`` between points ``(..., N, d + 1)`` and ``(..., M, d + 1)``.

    ``k`` is one curvature, or broadcasts to ``(..., 1, 1)``. From one Gram matrix: points closer than about
    ``√eps`` of their norm in the wide format are at distance 0, with derivative 0. For many points give x in
    blocks of rows.
    """
    k = below_zero(k)
    a, b = x[..., 1:], y[..., 1:]
    h2 = gram_half_chord_squared(dot(a, a, -1), dot(b, b, -1).mT, a @ b.mT, k)
    return 4 * h2 * arsin_ratio(k * h2).square()


@widened
def parallel_transport0(y: Tensor, u: Tensor, *, k: Curvature) -> Tensor:
    r"""Return u ``(..., d)``, a tangent vector at the origin, moved to y: ``(..., d + 1)``.

    .. math:: v = u - \frac{\kappa\langle s, u\rangle}{1 + \tau}\,s, \qquad v_t = \sqrt{-\kappa}\,\langle s, u\rangle
    """
    k = below_zero(k)
    s = y[..., 1:]
    along = dot(s, u, -1)
    return torch.cat((along * (-k).sqrt(), u - (k * along / (1 + stretch(s, k))) * s), dim=-1)


@widened
def parallel_transport0back(x: Tensor, v: Tensor, *, k: Curvature) -> Tensor:
    r"""Return v ``(..., d + 1)``, a tangent vector at x, moved to the origin: ``(..., d)``."""
    k = below_zero(k)
    s, v = x[..., 1:], v[..., 1:]
    tau = stretch(s, k)
    return v + (k * dot(s, v, -1) / (tau * (1 + tau))) * s


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


@widened
def to_stereographic(x: Tensor, *, k: Curvature) -> Tensor:
    r"""Return the points :math:`s/(1 + \tau)` ``(..., d)`` of the stereographic model; distances are the same."""
    s = x[..., 1:]
    return s / (1 + stretch(s, below_zero(k)))


@widened
def from_stereographic(p: Tensor, *, k: Curvature) -> Tensor:
    r"""Return the points over :math:`s = 2p/(1 + \kappa|p|^2)`, the inverse of :func:`to_stereographic`."""
    k = below_zero(k)
    return _on(2 * p / conformal(p, k, -1), k)


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


@widened
def to_klein(x: Tensor, *, k: Curvature) -> Tensor:
    r"""Return the points :math:`s/\tau` ``(..., d)`` of the Klein ball of radius :math:`1/\sqrt{-\kappa}`."""
    s = x[..., 1:]
    return s / stretch(s, below_zero(k))


@widened
def from_klein(v: Tensor, *, k: Curvature) -> Tensor:
    r"""Return the points over :math:`s = \gamma v`, :math:`\gamma = 1/\sqrt{1 + \kappa|v|^2}`.

    A point on or beyond the ball's boundary counts as lying on the last shell inside.
    """
    k = below_zero(k)
    return _on(v * conformal(v, k, -1).rsqrt(), k)


@widened
def einstein_midpoint(v: Tensor, weights: Tensor, *, k: Curvature) -> Tensor:
    r"""Return the midpoints :math:`\sum w\gamma v/\sum w\gamma` ``(..., M, d)`` of points of the Klein ball.

    It is the Klein image of :func:`centroid`, which is the better one for points far out, where Klein
    coordinates saturate. Arguments as there; a row of zeros gives the origin.
    """
    gamma = conformal(v, below_zero(k), -1).rsqrt()
    sums = weights @ torch.cat((gamma, gamma * v), dim=-1)
    total = sums[..., :1]
    empty = total == 0
    return torch.where(empty, 0.0, sums[..., 1:] / torch.where(empty, 1.0, total))
