"""Maps of tangent vectors at the origin: activations and linear maps."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from gyroformer.geometry.trig import arsin_ratio
from gyroformer.ops.lifted import REACH, sine_cosine
from gyroformer.options.layers import ActivationName

#: 1 + k|x|² of the farthest points that layers know: what rounding may not undercut
LEAST_CONFORMAL = 1 / math.cosh(REACH) ** 2

ACTIVATIONS: dict[ActivationName, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "elu": F.elu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "gelu": F.gelu,
}


class TangentLinear(nn.Linear):
    """A linear map of tangent vectors, optionally with dropout on its weights.

    Args:
        in_features: input width.
        out_features: output width.
        bias: whether to add a bias.
        weight_dropout: fraction of the weights set to zero in each training step.
    """

    def __init__(
        self, in_features: int, out_features: int, *, bias: bool = True, weight_dropout: float = 0.0
    ) -> None:
        super().__init__(in_features, out_features, bias=bias)
        self.weight_dropout = weight_dropout

    def forward(self, input: Float[Tensor, "*B width"]) -> Float[Tensor, "*B width_out"]:
        """Return ``input`` mapped, ``(..., out_features)``."""
        if self.weight_dropout and self.training:
            return F.linear(input, F.dropout(self.weight, self.weight_dropout), self.bias)
        return super().forward(input)


def is_plain_linear(module: nn.Module) -> bool:
    """Return whether a module does nothing now but multiply with its weights and add its bias."""
    return type(module) is TangentLinear and not (module.weight_dropout and module.training)


def is_watched(module: nn.Module) -> bool:
    """Return whether someone has hooks on a module, or on all: it has to be called then, not only computed."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return any(getattr(module, name) for name in hooks) or bool(
        torch.nn.modules.module._has_any_global_hook()
    )


def ball_activation(
    u: Float[Tensor, "*B d"], k: Float[Tensor, "*#B 1"], activation: Callable[[Tensor], Tensor]
) -> Float[Tensor, "*B d"]:
    r"""Return :math:`\log_0(\sigma(\exp_0 u))`: σ acts on the coordinates of the ball's points.

    With (P, C) of u, :math:`x = P/C` and :math:`y = \sigma(x)`, no point comes nearer to the edge, and how far from
    it y is needs no difference of numbers near 1:

    .. math:: 1 + \kappa|y|^2 = C^{-2} - \kappa\sum_i (x_i - y_i)(x_i + y_i)

    Args:
        u: tangent vectors ``(..., d)`` at the origin.
        k: curvature, at most 0, broadcasting to ``(..., 1)``.
        activation: σ, which makes no coordinate longer (``options.models.ShrinkingName``).
    """
    sine, cosine = sine_cosine(u, k)
    x = sine / cosine
    y = activation(x)
    lost = ((x - y) * (x + y)).sum(-1, keepdim=True)
    conformal = (cosine.square().reciprocal() - k * lost).clamp(min=LEAST_CONFORMAL)
    y = y * conformal.rsqrt()
    return y * arsin_ratio(k * (y * y).sum(-1, keepdim=True))
