"""One Transformer block on a product of stereographic spaces."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gyroformer.errors import UsageError
from gyroformer.geometry import expmap0, logmap0
from gyroformer.nn.attention import StereographicAttention
from gyroformer.nn.tangent import TangentLinear, activation_named
from gyroformer.ops.lifted import sine_cosine, translate

DROPOUTS = ("tangent", "weight")


class FeedForward(nn.Module):
    """Two linear maps with an activation between them, in the tangent space: it fuses the heads."""

    def __init__(
        self, dim: int, width: int, *, activation: str, dropout: float, weight_dropout: float
    ) -> None:
        super().__init__()
        self.up = TangentLinear(dim, width, weight_dropout=weight_dropout)
        self.activation = activation_named(activation)
        self.dropout = nn.Dropout(dropout)
        self.down = TangentLinear(width, dim, weight_dropout=weight_dropout)

    def forward(self, u: Tensor) -> Tensor:
        """Return ``(..., dim)`` for ``(..., dim)``."""
        return self.down(self.dropout(self.activation(self.up(u))))


class StereographicBlock(nn.Module):
    r"""A pre-norm block of attention and feed-forward part, each added to its input.

    .. math:: x \leftarrow \mathrm{MHA}(\mathrm{LN}\,x) \oplus_\kappa x, \qquad
              x \leftarrow \mathrm{FFN}(\mathrm{LN}\,x) \oplus_\kappa x

    Between the sums everything happens in the tangent space at the origin, where logarithms and exponentials
    cancel; the sums are Möbius sums in each head's space. With all curvatures 0 it is the ordinary pre-norm block.

    Args:
        dim: width, all heads together.
        heads: number of heads.
        ffn_dim: inner width of the feed-forward part; ``dim`` when absent, as in the paper's code.
        attention: ``"linear"`` or ``"softmax"``.
        norm: whether to normalise before each part.
        dropout: share of values dropped.
        dropout_kind: ``"tangent"`` drops coordinates of tangent vectors, ``"weight"`` entries of the weights.
        activation: one of relu, elu, tanh, sigmoid, gelu.
        curvature: initial value, one for all heads or one for each.
        learn_curvature: whether training changes the curvatures.
        share_curvature: one curvature for all heads.
    """

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
        curvature: float | Sequence[float] = 0.0,
        learn_curvature: bool = True,
        share_curvature: bool = False,
    ) -> None:
        super().__init__()
        if dropout_kind not in DROPOUTS:
            raise UsageError(f"dropout_kind must be one of {', '.join(DROPOUTS)}; got {dropout_kind!r}")
        if not 0 <= dropout < 1:
            raise UsageError(f"dropout must be at least 0 and below 1, got {dropout}")
        weight_dropout = dropout if dropout_kind == "weight" else 0.0
        tangent_dropout = dropout if dropout_kind == "tangent" else 0.0
        self.attention = StereographicAttention(
            dim,
            heads,
            kind=attention,
            weight_dropout=weight_dropout,
            curvature=curvature,
            learn_curvature=learn_curvature,
            share_curvature=share_curvature,
        )
        self.ffn = FeedForward(
            dim, ffn_dim or dim, activation=activation, dropout=tangent_dropout, weight_dropout=weight_dropout
        )
        self.norm1 = nn.LayerNorm(dim) if norm else nn.Identity()
        self.norm2 = nn.LayerNorm(dim) if norm else nn.Identity()
        self.dropout = nn.Dropout(tangent_dropout)

    @property
    def heads(self) -> int:
        """Number of heads."""
        return self.attention.heads

    @property
    def curvature(self) -> Tensor:
        """The curvatures, ``(heads,)``."""
        return self.attention.curvature

    def tangent(
        self, u: Tensor, mask: Tensor | None = None, segment: Tensor | None = None, count: int | None = None
    ) -> Tensor:
        """Return the block of tangent vectors ``(B, N, dim)``; see :class:`StereographicTransformer`."""
        k = self.attention.space()
        sine, cosine = sine_cosine(self._split(u), k)
        step = self.dropout(self.attention.tangent(self.norm1(u), mask, segment, count))
        middle, sine, cosine = translate(sine_cosine(self._split(step), k), sine, cosine, k)
        step = self.dropout(self.ffn(self.norm2(middle.flatten(-2).to(u.dtype))))
        end, _, _ = translate(sine_cosine(self._split(step), k), sine, cosine, k)
        return end.flatten(-2).to(u.dtype)

    def _split(self, u: Tensor) -> Tensor:
        return u.unflatten(-1, (self.heads, -1))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return points ``(B, N, heads, d)`` for points; padding (``mask`` False) at the origin."""
        k = self.attention.space()
        points = expmap0(self._split(self.tangent(logmap0(x, k=k).flatten(-2), mask)), k=k)
        return points if mask is None else torch.where(mask[..., None, None], points, 0.0)
