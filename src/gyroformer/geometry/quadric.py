r"""The scalars that the hyperboloid and the pseudo-hyperboloid share, each in a form that does not cancel.

A point is named by its space coordinates s alone (and, with several time coordinates, by their direction): its
time is :math:`\tau/\sqrt{-\kappa}` with :math:`\tau = \sqrt{1 - \kappa|s|^2} \ge 1`. A stored time is never read:
rounded, it no longer fits its s, and the error of :math:`-t^2 + |s|^2` is that rounding times t.

Everything here takes tensors already in the wide dtype (:mod:`gyroformer.geometry.precision`). Shapes:
vectors ``(..., d)``, scalars and k ``(..., 1)``.
"""

import torch
from torch import Tensor

from gyroformer.geometry.charts import FLATTEST
from gyroformer.geometry.parts import dot

#: rounding units of its terms below which a difference is rounding
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
