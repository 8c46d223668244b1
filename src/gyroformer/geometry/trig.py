r"""Circular and hyperbolic functions as one analytic function of :math:`z = \kappa r^2`.

With :math:`\tan_\kappa(r) = \tan(\sqrt\kappa\, r)/\sqrt\kappa` (and :math:`\tanh` for :math:`\kappa < 0`) the
ratio :math:`\tan_\kappa(r)/r` depends on :math:`z = \kappa r^2` alone and is analytic through :math:`z = 0`:

.. math:: T(z) = \frac{\tan\sqrt z}{\sqrt z} = 1 + \frac{z}{3} + \frac{2 z^2}{15} + \dots

and likewise for the sine and the two inverses. No square root of a curvature is ever taken alone: its
derivative is infinite at zero, where training starts. Around zero each ratio is a continued fraction or a
series that is exact to rounding in float64; outside, a closed form in exp, log, sin, cos, atan. Both meet
to rounding in value and in the derivatives that autograd takes of them. Inputs, not outputs, are masked, so
that the branch not taken has finite gradients.
"""

import math

import torch
from torch import Tensor

from gyroformer.geometry.precision import Curvature, widened
from gyroformer.geometry.ratios import by_kernel, sine_and_cosine_by_kernel

#: |z| below which the tangent's continued fraction and the sine's series are used
CIRCULAR_RADIUS = 1.0
#: |z| below which the arctangent's continued fraction is used (it has a branch point at z = -1)
ARCTANGENT_RADIUS = 0.15
#: |z| below which the arcsine goes through the arctangent of z / (1 - z), then within ARCTANGENT_RADIUS
ARCSINE_RADIUS = 0.125
#: levels at which each fraction, and terms at which each series, is exact to rounding on its disc
TANGENT_LEVELS = {torch.float32: 5, torch.float64: 8}
ARCTANGENT_LEVELS = {torch.float32: 6, torch.float64: 13}
SERIES_TERMS = {torch.float32: 7, torch.float64: 11}


def safe_sqrt(z: Tensor) -> Tensor:
    """Return the square root, 0 for ``z <= 0``, with derivative 0 there instead of infinity."""
    empty = z <= 0
    return torch.where(empty, 0.0, torch.where(empty, 1.0, z).sqrt())


def _split(z: Tensor, radius: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return ``near``, z where near (else 0), and √|z| where far and positive, far and negative (else 1)."""
    z = z.clamp(-torch.finfo(z.dtype).max, torch.finfo(z.dtype).max)
    near = z.abs() < radius
    inside = torch.where(near, z, 0.0)
    above = torch.where(z >= radius, z, 1.0).sqrt()
    below = torch.where(z <= -radius, -z, 1.0).sqrt()
    # NaN is neither near, above nor below: it must come out as NaN
    return near, inside, torch.where(z.isnan(), z, above), below


def _join(z: Tensor, near: Tensor, inside: Tensor, above: Tensor, below: Tensor) -> Tensor:
    return torch.where(near, inside, torch.where(z < 0, below, above))


@by_kernel
def tan_ratio(z: Tensor) -> Tensor:
    r"""Return :math:`\tan\sqrt z/\sqrt z`, which is :math:`\tanh\sqrt{-z}/\sqrt{-z}` for negative z."""
    near, inside, above, below = _split(z, CIRCULAR_RADIUS)
    # Lambert's fraction: tan(r)/r = 1/(1 - z/(3 - z/(5 - ...)))
    levels = TANGENT_LEVELS[z.dtype]
    fraction = torch.full_like(z, 2 * levels + 1)
    for level in range(levels - 1, -1, -1):
        fraction = (2 * level + 1) - inside / fraction
    decay = torch.exp(-2 * below)
    # (1 - e)/(1 + e) keeps its derivative, sech², where 1 - tanh² would have cancelled
    hyperbolic = -torch.expm1(-2 * below) / ((1 + decay) * below)
    return _join(z, near, 1 / fraction, above.sin() / (above.cos() * above), hyperbolic)


def _artan_fraction(z: Tensor) -> Tensor:
    """Return Gauss's fraction for |z| below its radius: atan(r)/r = 1/(1 + z/(3 + 4z/(5 + 9z/(7 + ...))))."""
    levels = ARCTANGENT_LEVELS[z.dtype]
    fraction = torch.full_like(z, 2 * levels + 1)
    for level in range(levels, 0, -1):
        fraction = (2 * level - 1) + (level * level) * z / fraction
    return 1 / fraction


@by_kernel
def artan_ratio(z: Tensor) -> Tensor:
    r"""Return :math:`\arctan\sqrt z/\sqrt z`, :math:`z > -1`.

    At and below :math:`z = -1`, the boundary of the ball, the value at the last number above it is returned,
    with derivative 0.
    """
    z = z.clamp(min=-1 + torch.finfo(z.dtype).eps)
    near, inside, above, below = _split(z, ARCTANGENT_RADIUS)
    # artanh(r) = log(1 + r) - log(1 - r²)/2, and 1 - r² = 1 + z is exact near the boundary; 1 - r is not
    complement = torch.log1p(torch.where(z <= -ARCTANGENT_RADIUS, z, -0.5))
    hyperbolic = (torch.log1p(below) - 0.5 * complement) / below
    return _join(z, near, _artan_fraction(inside), above.atan() / above, hyperbolic)


def sin_ratio(z: Tensor) -> Tensor:
    r"""Return :math:`\sin\sqrt z/\sqrt z`, which is :math:`\sinh\sqrt{-z}/\sqrt{-z}` for negative z."""
    return sin_ratio_and_cos(z)[0]


def cos_root(z: Tensor) -> Tensor:
    r"""Return :math:`\cos\sqrt z`, which is :math:`\cosh\sqrt{-z}` for negative z."""
    return sin_ratio_and_cos(z)[1]


@sine_and_cosine_by_kernel
def sin_ratio_and_cos(z: Tensor) -> tuple[Tensor, Tensor]:
    r"""Return both :math:`\sin\sqrt z/\sqrt z` and :math:`\cos\sqrt z`, from one exponential or one angle."""
    near, inside, above, below = _split(z, CIRCULAR_RADIUS)
    terms = SERIES_TERMS[z.dtype]
    sine = torch.full_like(z, _series_term(2 * terms - 1))
    cosine = torch.full_like(z, _series_term(2 * terms - 2))
    for term in range(terms - 2, -1, -1):
        sine = _series_term(2 * term + 1) + inside * sine
        cosine = _series_term(2 * term) + inside * cosine
    # compilers vectorise exp where they do not sinh and cosh
    grow = torch.exp(below)
    fall = 1 / grow
    far_sine = _join(z, near, sine, above.sin() / above, 0.5 * (grow - fall) / below)
    return far_sine, _join(z, near, cosine, above.cos(), 0.5 * (grow + fall))


def _series_term(n: int) -> float:
    """Return the coefficient of the n-th power of an angle in its sine (n odd) or cosine (n even)."""
    return (-1.0) ** (n // 2) / math.factorial(n)


@by_kernel
def arsin_ratio(z: Tensor) -> Tensor:
    r"""Return :math:`\arcsin\sqrt z/\sqrt z`, :math:`z \le 1`, the inverse hyperbolic sine for negative z.

    Above :math:`z = 1` (by rounding, or off the space) the value is that at 1, with derivative 0.
    """
    z = z.clamp(max=1.0)
    near, inside, above, below = _split(z, ARCSINE_RADIUS)
    # asin(r) = atan(r / √(1 - r²))
    tangent = _artan_fraction(inside / (1 - inside)) * (1 - inside).rsqrt()
    # 1 - z is exact above 1/2, so the angle keeps its digits up to the pole at z = 1
    circular = torch.atan2(above, safe_sqrt(1 - torch.where(z >= ARCSINE_RADIUS, z, 0.0))) / above
    hyperbolic = torch.log(below + (1 + below * below).sqrt()) / below
    return _join(z, near, tangent, circular, hyperbolic)


def sech_squared_root(z: Tensor) -> Tensor:
    r"""Return :math:`1/\cosh^2\sqrt{-z}` for :math:`z \le 0`: what is left of 1 after :math:`\tanh^2`."""
    far = z < -CIRCULAR_RADIUS
    # written with exp(-2r), which underflows to 0 where cosh² would overflow
    decay = torch.exp(-2 * torch.where(far, -z, 1.0).sqrt())
    near = torch.where(far, 0.0, z)
    return torch.where(far, 4 * decay / (1 + decay).square(), 1 + near * tan_ratio(near).square())


@widened
def tan_k(x: Tensor, k: Curvature) -> Tensor:
    r"""Return :math:`\tan_\kappa(x) = x\,T(\kappa x^2)`: tan for k > 0, x for k = 0, tanh for k < 0."""
    return x * tan_ratio(k * x * x)


@widened
def artan_k(x: Tensor, k: Curvature) -> Tensor:
    r"""Return the inverse of :func:`tan_k` around 0; beyond :math:`1/\sqrt{-\kappa}` the largest."""
    return x * artan_ratio(k * x * x)


@widened
def sin_k(x: Tensor, k: Curvature) -> Tensor:
    r"""Return :math:`\sin_\kappa(x) = \sin(\sqrt\kappa\,x)/\sqrt\kappa`, x for k = 0, sinh for k < 0."""
    return x * sin_ratio(k * x * x)


@widened
def arsin_k(x: Tensor, k: Curvature) -> Tensor:
    r"""Return the inverse of :func:`sin_k` around 0; beyond :math:`|x| = 1/\sqrt\kappa` the quarter turn."""
    # where |x| sqrt(k) > 1 the ratio stays at its value for 1, so x itself must stop there as well
    z = k * x * x
    beyond = z > 1
    bounded = torch.where(beyond, x * torch.where(beyond, z, 1.0).rsqrt(), x)
    return bounded * arsin_ratio(z)
