r"""The pseudo-hyperboloid: points ``(..., T + S)``, the T ≥ 1 time coordinates first.

.. math:: \{x = (x_t, x_s) : -|x_t|^2 + |x_s|^2 = \beta\}, \qquad \beta < 0

Each function takes ``beta``, a number or a tensor that broadcasts to ``(..., 1)`` (0 and above count as -1e-38),
and ``time`` = T. With one time coordinate it is the hyperboloid of curvature :math:`1/\beta` (and its mirror image).

A point is named by :math:`x_s` and the direction :math:`\theta = x_t/|x_t|`; the length
:math:`|x_t| = \sqrt{-\beta}\,\rho`, :math:`\rho = \sqrt{1 - |x_s|^2/\beta}`, is computed from them and never
read. That is the diffeomorphism to the product of a sphere of radius :math:`\sqrt{-\beta}` and a flat space,

.. math:: \psi(x) = (\sqrt{-\beta}\,\theta,\ x_s) \in S^{T-1} \times \mathbb R^S,

through which the maps of the pole :math:`(\sqrt{-\beta}, 0, \ldots, 0)` are defined for all points: the
geodesics of the pseudo-Riemannian metric itself do not reach every point. A direction that is lost
(:math:`x_t = 0`) counts as that of the pole. Tangent vectors at the pole are ``(..., T - 1 + S)``, without their
first coordinate, which is 0.
"""

import math

import torch
from torch import Tensor

from gyroformer.geometry.parts import dot, drop, length
from gyroformer.geometry.precision import Curvature, widened
from gyroformer.geometry.quadric import (
    UNRESOLVED,
    below_zero,
    half_chord_squared,
    joined,
    stretch,
)
from gyroformer.geometry.trig import arsin_ratio, artan_ratio, safe_sqrt, sin_ratio_and_cos


def to_sphere_product(x: Tensor, *, beta: Curvature, time: int) -> tuple[Tensor, Tensor]:
    r"""Return :math:`\psi(x)`: a point ``(..., T)`` of the sphere, and the space part ``(..., S)``."""
    both = _to_product(x, beta=beta, time=time)
    return both[..., :time], both[..., time:]


@widened
def _to_product(x: Tensor, *, beta: Curvature, time: int) -> Tensor:
    theta, s = _named(x, time)
    return joined((-below_zero(beta)).sqrt() * theta, s)


@widened
def expmap0(u: Tensor, *, beta: Curvature, time: int) -> Tensor:
    r"""Return the points reached from the pole along u, on sphere and flat space apart.

    With :math:`u = (u_t, u_s)` and :math:`z = -|u_t|^2/\beta` it is :math:`\psi^{-1}` of

    .. math:: \Bigl(\sqrt{-\beta}\cos\sqrt z,\ u_t\frac{\sin\sqrt z}{\sqrt z}\Bigr) \quad\text{and}\quad u_s .
    """
    beta = below_zero(beta)
    turn, s = u[..., : time - 1] * (-beta).rsqrt(), u[..., time - 1 :]
    sine, cosine = sin_ratio_and_cos(dot(turn, turn, -1))
    return _point(torch.cat((cosine, turn * sine), dim=-1), s, beta)


@widened
def logmap0(x: Tensor, *, beta: Curvature, time: int) -> Tensor:
    r"""Return the tangent vectors at the pole that lead to x, the inverse of :func:`expmap0`.

    It is unique but where θ is opposite to the pole (within a rounding unit): there the first axis is taken,
    with derivative 0. With one time coordinate it does not tell the two sheets apart.
    """
    beta = below_zero(beta)
    theta, s = _named(x, time)
    return joined(_angle_vector(theta) * (-beta).sqrt(), s)


@widened
def translate(x: Tensor, u: Tensor, *, beta: Curvature, time: int) -> Tensor:
    r"""Return x moved by u, a tangent vector at the pole: a bias.

    u is transported to x and followed from there, on sphere and flat space apart. With :math:`\theta = (c, w)` and
    :math:`a = u_t/\sqrt{-\beta}` the transported vector and the new direction are

    .. math:: v = \Bigl(-\langle w,a\rangle,\ a - \frac{\langle w,a\rangle}{1 + c}w\Bigr), \qquad
        \theta' = \theta\cos|a| + v\,\frac{\sin|a|}{|a|},

    and :math:`x_s' = x_s + u_s`. From the pole it is :func:`expmap0`. (With one time coordinate there are geodesics
    to every point: :func:`gyroformer.geometry.hyperboloid.translate` follows them.) Opposite to the pole (within a
    rounding unit), where the transport depends on the way, :math:`v = (0, a)`.
    """
    beta = below_zero(beta)
    theta, s = _named(x, time)
    a = u[..., : time - 1] * (-beta).rsqrt()
    c, w = theta[..., :1], theta[..., 1:]
    along, squared = dot(w, a, -1), dot(w, w, -1)
    # 1/(1 + c) = (1 - c)/|w|², which does not cancel behind
    behind = (c < 0) & (squared > torch.finfo(c.dtype).eps ** 2)
    lost = (c < 0) & ~behind
    inverse = torch.where(behind, 1 - c, 1.0) / torch.where(behind, squared, torch.where(lost, 1.0, 1 + c))
    straight = a - torch.where(lost, 0.0, along * inverse) * w
    sine, cosine = sin_ratio_and_cos(dot(a, a, -1))
    return _point(theta * cosine + torch.cat((-along, straight), dim=-1) * sine, s + u[..., time - 1 :], beta)


@widened
def squared_dist(x: Tensor, y: Tensor, *, beta: Curvature, time: int, keepdim: bool = False) -> Tensor:
    r"""Return the squared length of the geodesic from x to y, broken at :math:`-x` where there is none.

    With :math:`q = \langle x, y\rangle/\beta` the plane of x and y cuts the manifold in

    * a hyperbola through both for q > 1 (space-like): its length is :math:`\sqrt{-\beta}\,\mathrm{arcosh}\,q`;
    * a straight line for q = 1 (null; or x = y): 0;
    * an ellipse for \|q\| < 1, and for y = -x (time-like): :math:`\sqrt{-\beta}\arccos q`;
    * two branches, x on one and y on the other, for q ≤ -1. But -x is joined to x by half an ellipse and to y,
      since :math:`\langle -x, y\rangle/\beta = -q`, by a hyperbola or a line:
      :math:`\sqrt{-\beta}\,(\pi + \mathrm{arcosh}(-q))`.

    As a function of q, hence of x and y, the length is continuous. It is 0 on the whole light cone of x, not only at
    x, and there is no triangle inequality. With T = 1 it is the hyperboloid's distance on each sheet.

    Derivatives are finite everywhere. The square has a kink on the light cone of x (q = 1: there, and at x = y, the
    derivative is 0), and at q = -1 a vertical tangent: within rounding of that its value is :math:`-\pi^2\beta` and its
    derivative 0.
    """
    beta = below_zero(beta)
    (theta_x, a), (theta_y, b) = _named(x, time), _named(y, time)
    k = 1 / beta
    times = 0.25 * stretch(a, k) * stretch(b, k)
    turn, turn_back = theta_x - theta_y, theta_x + theta_y
    squared = _squared(
        (-k * half_chord_squared(a, b, k), times * dot(turn, turn, -1)),
        (-k * half_chord_squared(a, -b, k), times * dot(turn_back, turn_back, -1)),
        beta,
    )
    return drop(squared, keepdim, -1)


def _squared(there: tuple[Tensor, Tensor], back: tuple[Tensor, Tensor], beta: Tensor) -> Tensor:
    r"""Return the squared distance from the parts of :math:`E = (q - 1)/2 = A - B`.

    A is the squared half chord of the space parts on a hyperboloid of radius 1,
    :math:`B = \rho_x\rho_y|\theta_x - \theta_y|^2/4`; ``back`` are those of x and -y. E is sinh² or, negative,
    -sin² of half the distance; -1 - E, the same from -y, takes over where E < -1/2.
    """
    excess = there[0] - there[1]
    near = ~(excess < -0.5)
    ahead = torch.where(near, excess, 0.0)
    direct = 4 * ahead.abs() * arsin_ratio(-ahead).square()
    rest = back[0] - back[1]
    noise = UNRESOLVED * torch.finfo(rest.dtype).eps * (back[0] + back[1])
    rest = torch.where(near | (rest.abs() <= noise), 0.0, rest)
    root = torch.where(rest < 0, -safe_sqrt(-rest), safe_sqrt(rest))
    beyond = (math.pi + 2 * root * arsin_ratio(-rest)).square()
    return -beta * torch.where(near, direct, beyond)


def _unit(t: Tensor) -> Tensor:
    """Return the direction of t, the first axis for the zero vector."""
    size = length(t, -1)
    lost = size == 0
    pole = torch.zeros_like(t)
    pole[..., 0] = 1
    return torch.where(lost, pole, t / torch.where(lost, 1.0, size))


def _named(x: Tensor, time: int) -> tuple[Tensor, Tensor]:
    """Return what names the points: the direction of the time part, and the space part."""
    return _unit(x[..., :time]), x[..., time:]


def _point(theta: Tensor, s: Tensor, beta: Tensor) -> Tensor:
    """Return the point with direction theta, of length 1, and space part s."""
    return joined(theta * (stretch(s, 1 / beta) * (-beta).sqrt()), s)


def _angle_vector(theta: Tensor) -> Tensor:
    r"""Return :math:`w\,\alpha/\sin\alpha` for unit vectors (cos α, w): tangent vectors at the pole, of length α."""
    c, w = theta[..., :1], theta[..., 1:]
    squared = dot(w, w, -1)
    front = c > 0
    safe = torch.where(front, c, 1.0)
    forward = artan_ratio(torch.where(front, squared, 0.0) / (safe * safe)) / safe
    lost = ~front & (squared <= torch.finfo(c.dtype).eps ** 2)
    sine = torch.where(front | lost, 1.0, squared).sqrt()
    backward = torch.atan2(sine, torch.where(front | lost, 1.0, c)) / sine
    axis = torch.zeros_like(w)
    axis[..., :1] = math.pi
    return torch.where(lost, axis, w * torch.where(front, forward, backward))
