r"""The scalars that the hyperboloid and the pseudo-hyperboloid share, each in a form that does not cancel.

A point is named by its space coordinates s alone (and, with several time coordinates, by their direction): its
time is :math:`\tau/\sqrt{-\kappa}` with :math:`\tau = \sqrt{1 - \kappa|s|^2} \ge 1`. A stored time is never read:
rounded, it no longer fits its s, and the error of :math:`-t^2 + |s|^2` is that rounding times t.

Everything here takes tensors already in the wide format (:mod:`gyroformer.geometry.precision`). Shapes:
vectors ``(..., d)``, scalars and k ``(..., 1)``.
"""

import torch
from torch import Tensor

from gyroformer.geometry.charts import FLATTEST
from gyroformer.geometry.parts import dot

#: √|k||u| beyond which a tangent vector leads no farther, by the format of the computation: the coordinates,
#: which grow like exp of it, then stay below 5e8 and 6e27 lengths, and their fourth powers, which distances and
#: derivatives form, within the format
REACH = {torch.float32: 20.0, torch.float64: 64.0}
#: rounding units of its terms below which a difference of Gram entries is rounding
UNRESOLVED = 8


def below_zero(k: Tensor) -> Tensor:
    """Return a curvature (or its inverse) as a negative number: 0 and above count as ``-FLATTEST``."""
    return k.clamp(max=-FLATTEST)


def joined(time: Tensor, s: Tensor) -> Tensor:
    """Return (time, space) coordinates; the time may have more leading dimensions, those of its curvature."""
    return torch.cat((time, s.expand(*time.shape[:-1], s.size(-1))), dim=-1)


def stretch(s: Tensor, k: Tensor) -> Tensor:
    r"""Return :math:`\tau = \sqrt{1 - \kappa|s|^2}`, the time in units of the quadric's radius."""
    return (1 - k * dot(s, s, -1)).sqrt()


def within_reach(u: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """Return u and z = k|u|² ≤ 0, shortened to :data:`REACH` where they are longer; the direction passes."""
    reach = REACH[z.dtype]
    far = z < -reach * reach
    shrink = torch.where(far, reach * torch.where(far, -z, 1.0).rsqrt(), 1.0)
    return u * shrink, torch.where(far, -reach * reach, z)


def half_chord_squared(a: Tensor, b: Tensor, k: Tensor) -> Tensor:
    r"""Return :math:`h^2`, a quarter of the squared chord between the points over a and b.

    The half chord is :math:`|C_b P_a - C_a P_b|` in half-angle coordinates, :math:`P = s/(2C)`,
    :math:`2C^2 = 1 + \tau`. With :math:`\Delta = a - b`, :math:`\Sigma = a + b`, :math:`T = \tau_a + \tau_b` that is

    .. math:: h = \frac{|w|}{\sqrt{(1 + \tau_a)(1 + \tau_b)}}, \qquad
        w = \tfrac14\Bigl((2 + T)\Delta + \frac{\kappa\langle\Delta,\Sigma\rangle}{T}\Sigma\Bigr),

    in which the difference of the points is taken once, exactly; the times are not subtracted at all. What
    is left to cancel costs a factor τ of the rounding unit, where :math:`|\Delta|^2 - (t_a - t_b)^2` costs τ².
    """
    delta, total = a - b, a + b
    tau_a, tau_b = stretch(a, k), stretch(b, k)
    times = tau_a + tau_b
    w = 0.25 * ((2 + times) * delta + (k * dot(delta, total, -1) / times) * total)
    return dot(w, w, -1) / ((1 + tau_a) * (1 + tau_b))


def gram_half_chord_squared(aa: Tensor, bb: Tensor, gram: Tensor, k: Tensor) -> Tensor:
    r"""Return :math:`h^2` from squared norms :math:`|a|^2`, :math:`|b|^2` and inner products, all broadcasting.

    .. math:: h^2 = \frac{|a|^2 + |b|^2 - 2\langle a,b\rangle - \kappa|a|^2|b|^2
        - \langle a,b\rangle(\tau_a\tau_b - 1)}{2(1 + \tau_a\tau_b)}

    Points that it does not resolve (closer than about ``√eps`` of their norm) are at distance 0, derivative 0.
    """
    both = ((1 - k * aa) * (1 - k * bb)).sqrt()
    spread, product = aa + bb, k * aa * bb
    # (both - 1) without its cancellation near the origin
    rise = (k * product - k * spread) / (1 + both)
    raised = spread - product - gram * (2 + rise)
    noise = UNRESOLVED * torch.finfo(raised.dtype).eps * (spread - product)
    return torch.where(raised <= noise, 0.0, raised) / (2 * (1 + both))
