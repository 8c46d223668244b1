"""The flat twin: the ordinary pre-norm Transformer with the same parameters, written without any geometry.

It is the baseline TokenGT, the yardstick of speed, and what the curved layers must equal at k = 0. Weights go
from one to the other by name (a curved model has the curvatures on top).
"""

import torch
from torch import Tensor, nn

from gyroformer.errors import UsageError
from gyroformer.nn.block import FeedForward
from gyroformer.nn.curvature import head_width
from gyroformer.nn.encoder import Encoder
from gyroformer.nn.tangent import TangentLinear
from gyroformer.ops.attention import KINDS, attend, ragged_linear_attention


class FlatAttention(nn.Module):
    """Multi-head attention of vectors, ``"softmax"`` or ``"linear"`` (feature map ELU + 1)."""

    def __init__(self, dim: int, heads: int, *, kind: str = "linear", weight_dropout: float = 0.0) -> None:
        super().__init__()
        if kind not in KINDS:
            raise UsageError(f"attention must be one of {', '.join(KINDS)}; got {kind!r}")
        head_width(dim, heads)
        self.kind, self.heads = kind, heads
        self.qkv = TangentLinear(dim, 3 * dim, weight_dropout=weight_dropout)
        self.out = TangentLinear(dim, dim, weight_dropout=weight_dropout)

    def forward(
        self, u: Tensor, mask: Tensor | None = None, segment: Tensor | None = None, count: int | None = None
    ) -> Tensor:
        """Return ``(B, N, dim)`` for ``(B, N, dim)``."""
        query, key, value = self.qkv(u).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if self.kind == "softmax":
            mixed = attend(query, key, value, kind="softmax", mask=mask)
        else:
            counted = torch.cat((value, torch.ones_like(value[..., :1])), dim=-1)
            if segment is None:
                sums = attend(query, key, counted, kind="linear", mask=mask)
            else:
                assert count is not None
                sums = ragged_linear_attention(query[0], key[0], counted[0], segment, count).unsqueeze(0)
            mixed = sums[..., :-1] / sums[..., -1:]
        return self.out(mixed.transpose(1, 2).flatten(-2))


class FlatBlock(nn.Module):
    """A pre-norm block; arguments as in :class:`~gyroformer.nn.StereographicBlock`."""

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        ffn_dim: int | None = None,
        attention: str = "linear",
        norm: bool = True,
        dropout: float = 0.0,
        dropout_kind: str = "tangent",
        activation: str = "relu",
    ) -> None:
        super().__init__()
        weight_dropout = dropout if dropout_kind == "weight" else 0.0
        value_dropout = dropout if dropout_kind == "tangent" else 0.0
        self.attention = FlatAttention(dim, heads, kind=attention, weight_dropout=weight_dropout)
        self.ffn = FeedForward(
            dim, ffn_dim or dim, activation=activation, dropout=value_dropout, weight_dropout=weight_dropout
        )
        self.norm1 = nn.LayerNorm(dim) if norm else nn.Identity()
        self.norm2 = nn.LayerNorm(dim) if norm else nn.Identity()
        self.dropout = nn.Dropout(value_dropout)

    def tangent(
        self, u: Tensor, mask: Tensor | None = None, segment: Tensor | None = None, count: int | None = None
    ) -> Tensor:
        """Return ``(B, N, dim)`` for ``(B, N, dim)``."""
        u = u + self.dropout(self.attention(self.norm1(u), mask, segment, count))
        return u + self.dropout(self.ffn(self.norm2(u)))


class FlatTransformer(Encoder):
    """A stack of flat blocks; arguments as in :class:`~gyroformer.nn.StereographicTransformer`."""

    def __init__(
        self,
        dim: int,
        heads: int,
        layers: int,
        *,
        ffn_dim: int | None = None,
        attention: str = "linear",
        norm: bool = True,
        final_norm: bool = False,
        dropout: float = 0.0,
        dropout_kind: str = "tangent",
        activation: str = "relu",
    ) -> None:
        if layers < 1:
            raise UsageError(f"layers must be at least 1, got {layers}")
        blocks = [
            FlatBlock(
                dim,
                heads,
                ffn_dim=ffn_dim,
                attention=attention,
                norm=norm,
                dropout=dropout,
                dropout_kind=dropout_kind,
                activation=activation,
            )
            for _ in range(layers)
        ]
        super().__init__(dim, heads, attention=attention, blocks=blocks, final_norm=final_norm)

    @property
    def curvatures(self) -> Tensor:
        """Zeros, ``(layers, heads)``."""
        return torch.zeros(len(self.blocks), self.heads)

    @property
    def output_curvature(self) -> Tensor:
        """Zeros, ``(heads, 1)``."""
        return next(self.parameters()).new_zeros(self.heads, 1)

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        segment: Tensor | None = None,
        count: int | None = None,
    ) -> Tensor:
        """Return vectors ``(..., heads, d)``; in flat space a tangent vector is its point."""
        return self.tangent(tokens, mask, segment, count)
