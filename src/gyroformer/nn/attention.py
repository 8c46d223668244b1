"""Multi-head attention between points, and between vectors of a flat space."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from gyroformer.errors import UsageError
from gyroformer.geometry import expmap0, logmap0
from gyroformer.nn.curvature import PointLayer
from gyroformer.nn.functional import check_mask
from gyroformer.nn.tangent import TangentLinear
from gyroformer.ops.attention import ONE_SEQUENCE, TokenLayout, attend_within
from gyroformer.ops.blockwise import tangent_attention
from gyroformer.options import FromOptions, takes
from gyroformer.options.layers import AttentionOptions, FlatAttentionOptions


def _maps(options: FlatAttentionOptions) -> tuple[TangentLinear, TangentLinear]:
    """Return the map to queries, keys and values, and the map that joins the heads."""
    dim, bias, dropout = options.dim, options.bias, options.weight_dropout
    return (
        TangentLinear(dim, 3 * dim, bias=bias, weight_dropout=dropout),
        TangentLinear(dim, dim, bias=bias, weight_dropout=dropout),
    )


class StereographicAttention(PointLayer):
    r"""Product-stereographic multi-head attention.

    Values are points :math:`V = \exp_0(W^V \log_0 x)`; queries and keys are tangent vectors at them, transported
    to the origin for the score, :math:`\tilde Q = (\lambda_V/2)\,W^Q\log_0 x`. Each head averages the lifted values
    in its own space; an output map then joins the heads.
    """

    @takes(AttentionOptions)
    def __init__(self, options: AttentionOptions) -> None:
        super().__init__(options.heads, options)
        self.kind = options.kind
        self.qkv, self.out = _maps(options)

    def tangent(
        self, u: Float[Tensor, "B N dim"], layout: TokenLayout = ONE_SEQUENCE
    ) -> Float[Tensor, "B R dim"]:
        """Return attention between tangent vectors ``(B, N, dim)``, for the R that the layout asks for."""
        qkv = self.qkv(u).unflatten(-1, (3, self.heads, -1))
        if self.kind == "none":  # the midpoint of a value alone is the value
            return self.out(layout.asked_for(qkv[..., 2, :, :]).flatten(-2))
        mixed = tangent_attention(qkv, self.curvature, kind=self.kind, layout=layout)
        return self.out(mixed.flatten(-2).to(u.dtype))

    def forward(
        self, x: Float[Tensor, "B N heads d"], mask: Bool[Tensor, "B N"] | None = None
    ) -> Float[Tensor, "B N heads d"]:
        """Return points ``(B, N, heads, d)`` attended to each other; padding (``mask`` False) at the origin."""
        if x.dim() != 4 or x.size(2) != self.heads:
            raise UsageError(f"points must have the shape (B, N, {self.heads}, d); got {tuple(x.shape)}")
        check_mask(mask, (x.size(0), x.size(1)))
        k = self.space()
        u = self.tangent(logmap0(x, k=k).flatten(-2), TokenLayout(mask)).unflatten(-1, (self.heads, -1))
        points = expmap0(u, k=k)
        return points if mask is None else torch.where(mask[..., None, None], points, 0.0)


class FlatAttention(FromOptions, nn.Module):
    """Multi-head attention of vectors, ``"softmax"``, ``"linear"`` (feature map ELU + 1) or ``"none"``."""

    @takes(FlatAttentionOptions)
    def __init__(self, options: FlatAttentionOptions) -> None:
        super().__init__()
        self.kind, self.heads = options.kind, options.heads
        self.qkv, self.out = _maps(options)

    def tangent(
        self, u: Float[Tensor, "B N dim"], layout: TokenLayout = ONE_SEQUENCE
    ) -> Float[Tensor, "B R dim"]:
        """Return attention between vectors ``(B, N, dim)``, for the R that the layout asks for."""
        query, key, value = self.qkv(u).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query = query[:, :, : layout.read]
        if self.kind == "none":
            mixed = value[:, :, : layout.read]
        elif self.kind == "softmax":
            mixed = attend_within(query, key, value, kind="softmax", layout=layout)
        else:
            counted = torch.cat((value, torch.ones_like(value[..., :1])), dim=-1)
            sums = attend_within(query, key, counted, kind="linear", layout=layout)
            mixed = sums[..., :-1] / sums[..., -1:]
        return self.out(mixed.transpose(1, 2).flatten(-2))
