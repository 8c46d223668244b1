"""The curvatures of a layer: one for each head, signed and unconstrained, or kept negative."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gyroformer.errors import UsageError


class HeadCurvature(nn.Module):
    """Owner of a layer's curvatures, the parameter called ``curvature``.

    Args:
        heads: number of heads, H.
        initial: one value for all heads, or one for each.
        learn: whether training changes them.
        shared: one curvature for all heads.
    """

    def __init__(
        self, heads: int, *, initial: float | Sequence[float] = 0.0, learn: bool = True, shared: bool = False
    ) -> None:
        super().__init__()
        if heads < 1:
            raise UsageError(f"heads must be at least 1, got {heads}")
        values = (
            [float(initial)] * heads if isinstance(initial, (int, float)) else [float(k) for k in initial]
        )
        if len(values) != heads:
            raise UsageError(f"{heads} heads need {heads} initial curvatures, got {len(values)}")
        if shared and len(set(values)) > 1:
            raise UsageError(f"heads that share a curvature need one initial value, got {values}")
        self.heads = heads
        self.curvature = nn.Parameter(torch.tensor(values[:1] if shared else values), requires_grad=learn)

    def forward(self) -> Tensor:
        """Return the curvatures as ``(H, 1)``, broadcasting over points ``(..., H, d)``."""
        return self.curvature.expand(self.heads).unsqueeze(-1)

    def extra_repr(self) -> str:
        """Return what ``repr`` shows."""
        return f"heads={self.heads}, learn={self.curvature.requires_grad}"


class NegativeCurvature(HeadCurvature):
    r"""Curvatures of spaces that stay hyperbolic, :math:`k = -\log(1 + e^\theta)`; ``curvature`` is θ.

    A plain parameter can be carried past zero by one step, and the space would no longer be hyperbolic. The
    softplus cannot, is no narrower in reach than :math:`-e^\theta` (every negative k), and from about k = -1 on
    a step of θ moves k by nearly as much, as a plain parameter's would.

    Args:
        heads: number of heads, H.
        initial: k, one value for all heads, or one for each; negative.
        learn: whether training changes them.
    """

    def __init__(self, heads: int, *, initial: float | Sequence[float] = -1.0, learn: bool = True) -> None:
        values = [float(initial)] if isinstance(initial, (int, float)) else [float(k) for k in initial]
        if not all(k < 0 for k in values):
            raise UsageError(f"the curvature of a hyperbolic space must be negative, got {initial}")
        # the inverse of the softplus, written so that neither a tiny nor a large curvature cancels
        theta = [-k + math.log(-math.expm1(k)) for k in values]
        super().__init__(heads, initial=theta * heads if len(theta) == 1 else theta, learn=learn)

    def forward(self) -> Tensor:
        """Return the curvatures k as ``(H, 1)``."""
        return -F.softplus(super().forward())


def head_width(dim: int, heads: int, name: str = "dim") -> int:
    """Return ``dim / heads``, or raise if the heads do not divide it."""
    if dim < 1 or dim % heads:
        raise UsageError(f"{name} must be a positive multiple of heads, got {name}={dim} and heads={heads}")
    return dim // heads
