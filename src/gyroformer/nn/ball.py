"""Activations of a ball's coordinates."""

import math
from collections.abc import Callable

from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.geometry.trig import arsin_ratio
from gyroformer.nn.tangent import activation_named
from gyroformer.ops.lifted import REACH, sine_cosine

#: activations that make no coordinate longer, so that they map the ball into itself
SHRINKING = ["elu", "gelu", "relu", "tanh"]
#: 1 + k|x|² of the farthest points that layers know: what rounding may not undercut
LEAST_CONFORMAL = 1 / math.cosh(REACH) ** 2


def shrinking_activation(name: str) -> Callable[[Tensor], Tensor]:
    """Return the activation called ``name``, or raise if it can lead out of the ball."""
    activation = activation_named(name)
    if name not in SHRINKING:
        raise UsageError(
            f"activation {name!r} of a ball's coordinates leads out of the ball; take one of {', '.join(SHRINKING)}"
        )
    return activation


def ball_activation(u: Tensor, k: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
    r"""Return :math:`\log_0(\sigma(\exp_0 u))`: σ acts on the coordinates of the ball's points.

    With (P, C) of u, :math:`x = P/C` and :math:`y = \sigma(x)`, no point comes nearer to the edge, and how far from
    it y is needs no difference of numbers near 1:

    .. math:: 1 + \kappa|y|^2 = C^{-2} - \kappa\sum_i (x_i - y_i)(x_i + y_i)

    Args:
        u: tangent vectors ``(..., d)`` at the origin.
        k: curvature, at most 0, broadcasting to ``(..., 1)``.
        activation: σ, which makes no coordinate longer (:func:`shrinking_activation`).
    """
    sine, cosine = sine_cosine(u, k)
    x = sine / cosine
    y = activation(x)
    lost = ((x - y) * (x + y)).sum(-1, keepdim=True)
    conformal = (cosine.square().reciprocal() - k * lost).clamp(min=LEAST_CONFORMAL)
    y = y * conformal.rsqrt()
    return y * arsin_ratio(k * (y * y).sum(-1, keepdim=True))
