"""What all layers share: a curvature of their own, and a map of tangent vectors made into one of points."""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gyroformer.errors import UsageError, did_you_mean
from gyroformer.geometry import expmap0, logmap0
from gyroformer.nn.curvature import HeadCurvature

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "elu": F.elu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "gelu": F.gelu,
}


def activation_named(name: str) -> Callable[[Tensor], Tensor]:
    """Return the activation function called ``name``."""
    if name not in ACTIVATIONS:
        known = sorted(ACTIVATIONS)
        raise UsageError(
            f"activation must be one of {', '.join(known)}; got {name!r}{did_you_mean(name, known)}"
        )
    return ACTIVATIONS[name]


class TangentLinear(nn.Linear):
    """A linear map of tangent vectors, optionally with dropout on its weights.

    Args:
        in_features: input width.
        out_features: output width.
        bias: whether to add a bias.
        weight_dropout: share of weights set to zero in each training step.
    """

    def __init__(
        self, in_features: int, out_features: int, *, bias: bool = True, weight_dropout: float = 0.0
    ) -> None:
        super().__init__(in_features, out_features, bias=bias)
        self.weight_dropout = weight_dropout

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` mapped, ``(..., out_features)``."""
        if self.weight_dropout and self.training:
            return F.linear(input, F.dropout(self.weight, self.weight_dropout), self.bias)
        return super().forward(input)


class PointLayer(nn.Module):
    r"""A layer :math:`\exp_0 \circ f \circ \log_0` on a product of spaces; subclasses define f as ``tangent``."""

    def __init__(
        self,
        heads: int,
        *,
        curvature: float | Sequence[float] = 0.0,
        learn_curvature: bool = True,
        share_curvature: bool = False,
    ) -> None:
        super().__init__()
        self.space = HeadCurvature(heads, initial=curvature, learn=learn_curvature, shared=share_curvature)

    @property
    def heads(self) -> int:
        """Number of heads, the factors of the product."""
        return self.space.heads

    @property
    def curvature(self) -> Tensor:
        """The curvatures, ``(heads,)``."""
        return self.space().squeeze(-1)

    def tangent(self, u: Tensor) -> Tensor:
        """Return f of tangent vectors at the origin, the heads joined: ``(..., dim)`` to ``(..., dim_out)``."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Return f of points ``(..., heads, d)`` as points ``(..., heads, d_out)``."""
        if x.dim() < 2 or x.size(-2) != self.heads:
            raise UsageError(f"points must have the shape (..., {self.heads}, d); got {tuple(x.shape)}")
        k = self.space()
        return expmap0(self.tangent(logmap0(x, k=k).flatten(-2)).unflatten(-1, (self.heads, -1)), k=k)
