"""The curvatures of a layer, one for each head, and the layers and biases of points that own or use them."""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from gyroformer.errors import UsageError
from gyroformer.geometry import expmap0, logmap0
from gyroformer.ops.lifted import sine_cosine, translate_hyperbolic
from gyroformer.options import FromOptions
from gyroformer.options.layers import CurvatureOptions


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

    @classmethod
    def from_options(cls, heads: int, options: CurvatureOptions) -> "HeadCurvature":
        """Return the curvatures of one layer of ``heads`` heads."""
        initial: Any = options.curvature
        return cls(heads, initial=initial, learn=options.learn_curvature, shared=options.share_curvature)

    def forward(self) -> Float[Tensor, "heads 1"]:
        """Return the curvatures as ``(H, 1)``, broadcasting over points ``(..., H, d)``."""
        return self.curvature.expand(self.heads).unsqueeze(-1)

    def extra_repr(self) -> str:
        """Return what ``repr`` shows."""
        return f"heads={self.heads}, learn={self.curvature.requires_grad}"


class SignedCurvature(HeadCurvature):
    r"""Curvatures that keep their signs, :math:`k = \pm\log(1 + e^\theta)`; ``curvature`` is θ.

    A plain parameter can be carried past zero by one step, and the space would be of another kind. The softplus
    cannot, is no narrower in reach than :math:`e^\theta` (every k of the sign), and from about \|k\| = 1 on a step of
    θ moves k by nearly as much, as a plain parameter's would.

    Args:
        heads: number of heads, H.
        initial: k, one value for all heads, or one for each; not 0.
        learn: whether training changes them.
    """

    def __init__(self, heads: int, *, initial: float | Sequence[float], learn: bool = True) -> None:
        values = [float(initial)] if isinstance(initial, (int, float)) else [float(k) for k in initial]
        if not all(values):
            raise UsageError(f"a curvature must be negative or positive to keep its sign, got {initial}")
        # the inverse of the softplus, written so that neither a tiny nor a large curvature cancels
        theta = [abs(k) + math.log(-math.expm1(-abs(k))) for k in values]
        super().__init__(heads, initial=theta * heads if len(theta) == 1 else theta, learn=learn)
        self.signs = [math.copysign(1.0, k) for k in values]

    def forward(self) -> Float[Tensor, "heads 1"]:
        """Return the curvatures k as ``(H, 1)``."""
        size = F.softplus(super().forward())
        if len(set(self.signs)) == 1:  # a number: nothing is copied to the device at every step
            return self.signs[0] * size
        return size * size.new_tensor(self.signs).unsqueeze(-1)


class NegativeCurvature(SignedCurvature):
    """Curvatures of spaces that stay hyperbolic."""

    def __init__(self, heads: int, *, initial: float | Sequence[float] = -1.0, learn: bool = True) -> None:
        super().__init__(heads, initial=initial, learn=learn)
        if 1.0 in self.signs:
            raise UsageError(f"the curvature of a hyperbolic space must be negative, got {initial}")


class PointLayer(FromOptions, nn.Module):
    r"""A layer :math:`\exp_0 \circ f \circ \log_0` on a product of spaces; subclasses define f as ``tangent``."""

    def __init__(self, heads: int, options: CurvatureOptions) -> None:
        super().__init__()
        self.space = HeadCurvature.from_options(heads, options)

    @property
    def heads(self) -> int:
        """Number of heads, the factors of the product."""
        return self.space.heads

    @property
    def curvature(self) -> Float[Tensor, " heads"]:
        """The curvatures, ``(heads,)``."""
        return self.space().squeeze(-1)

    def tangent(self, u: Float[Tensor, "*B dim"]) -> Float[Tensor, "*B dim_out"]:
        """Return f of tangent vectors at the origin, the heads joined: ``(..., dim)`` to ``(..., dim_out)``."""
        raise NotImplementedError

    def forward(self, x: Float[Tensor, "*B heads d"]) -> Float[Tensor, "*B heads d_out"]:
        """Return f of points ``(..., heads, d)`` as points ``(..., heads, d_out)``."""
        if x.dim() < 2 or x.size(-2) != self.heads:
            raise UsageError(f"points must have the shape (..., {self.heads}, d); got {tuple(x.shape)}")
        k = self.space()
        return expmap0(self.tangent(logmap0(x, k=k).flatten(-2)).unflatten(-1, (self.heads, -1)), k=k)


class MobiusBias(nn.Module):
    r"""A learned translation, :math:`x \oplus_\kappa \exp_0(b)`, of points kept as tangent vectors at the origin.

    It is the same point as :math:`\exp_x` of b transported from the origin to x, and x + b at k = 0.

    Args:
        heads: number of heads.
        width: width of a head.
    """

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(heads, width))

    def forward(
        self, u: Float[Tensor, "*B heads d"], k: Float[Tensor, "heads 1"], scale: float = 1.0
    ) -> Float[Tensor, "*B heads d"]:
        """Return the translated tangent vectors ``(..., heads, d)``, in units of ``scale``; ``k (heads, 1)``."""
        bias = sine_cosine(scale * self.bias, k)
        return translate_hyperbolic(sine_cosine(scale * u, k), *bias, k) / scale
