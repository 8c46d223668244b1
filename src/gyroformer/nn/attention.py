"""Multi-head attention between points."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.geometry import expmap0, logmap0
from gyroformer.nn.curvature import head_width
from gyroformer.nn.functional import check_mask
from gyroformer.nn.tangent import PointLayer, TangentLinear
from gyroformer.ops.attention import KINDS
from gyroformer.ops.blockwise import tangent_attention


class StereographicAttention(PointLayer):
    r"""Product-stereographic multi-head attention.

    Values are points :math:`V = \exp_0(W^V \log_0 x)`; queries and keys are tangent vectors at them, transported
    to the origin for the score, :math:`\tilde Q = (\lambda_V/2)\,W^Q\log_0 x`. Each head averages the lifted values
    in its own space; an output map then joins the heads.

    Args:
        dim: width, all heads together.
        heads: number of heads.
        kind: ``"linear"`` (feature map ELU + 1, linear in the number of tokens) or ``"softmax"``.
        bias: whether the maps have a bias.
        weight_dropout: share of weights set to zero in each training step.
        curvature: initial value, one for all heads or one for each.
        learn_curvature: whether training changes the curvatures.
        share_curvature: one curvature for all heads.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        kind: str = "linear",
        bias: bool = True,
        weight_dropout: float = 0.0,
        curvature: float | Sequence[float] = 0.0,
        learn_curvature: bool = True,
        share_curvature: bool = False,
    ) -> None:
        super().__init__(
            heads, curvature=curvature, learn_curvature=learn_curvature, share_curvature=share_curvature
        )
        if kind not in KINDS:
            raise UsageError(f"attention must be one of {', '.join(KINDS)}; got {kind!r}")
        head_width(dim, heads)
        self.kind = kind
        self.qkv = TangentLinear(dim, 3 * dim, bias=bias, weight_dropout=weight_dropout)
        self.out = TangentLinear(dim, dim, bias=bias, weight_dropout=weight_dropout)

    def tangent(
        self, u: Tensor, mask: Tensor | None = None, segment: Tensor | None = None, count: int | None = None
    ) -> Tensor:
        """Return attention between tangent vectors ``(B, N, dim)``; see :class:`StereographicTransformer`."""
        qkv = self.qkv(u).unflatten(-1, (3, self.heads, -1))
        mixed = tangent_attention(
            qkv, self.curvature, kind=self.kind, mask=mask, segment=segment, count=count
        )
        return self.out(mixed.flatten(-2).to(u.dtype))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return points ``(B, N, heads, d)`` attended to each other; padding (``mask`` False) at the origin."""
        if x.dim() != 4 or x.size(2) != self.heads:
            raise UsageError(f"points must have the shape (B, N, {self.heads}, d); got {tuple(x.shape)}")
        check_mask(mask, (x.size(0), x.size(1)))
        k = self.space()
        u = self.tangent(logmap0(x, k=k).flatten(-2), mask).unflatten(-1, (self.heads, -1))
        points = expmap0(u, k=k)
        return points if mask is None else torch.where(mask[..., None, None], points, 0.0)
