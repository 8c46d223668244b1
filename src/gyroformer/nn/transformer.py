"""Transformers on products of stereographic spaces, for any sequence, and their flat twin.

The flat twin is the ordinary pre-norm Transformer with the same parameters, written without any geometry: the baseline
TokenGT, the yardstick of speed, and what the curved layers must equal at k = 0. Weights go from one to the other by
name (a curved model has the curvatures on top).
"""

import dataclasses as dc
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from gyroformer.errors import UsageError
from gyroformer.geometry import expmap0, logmap0
from gyroformer.nn.attention import FlatAttention, StereographicAttention
from gyroformer.nn.curvature import HeadCurvature
from gyroformer.nn.dropout import TokenDropout
from gyroformer.nn.functional import check_mask
from gyroformer.nn.tangent import ACTIVATIONS, TangentLinear, is_plain_linear, is_watched
from gyroformer.ops.attention import ONE_SEQUENCE, Part, TokenLayout
from gyroformer.ops.blockwise import added, attention_step, feed_forward
from gyroformer.ops.native.fused_block import Weights
from gyroformer.options import FromOptions, takes
from gyroformer.options.layers import (
    AttentionOptions,
    BlockOptions,
    EncoderOptions,
    FlatAttentionOptions,
    FlatBlockOptions,
    FlatEncoderOptions,
    InitialCurvature,
)


class FeedForward(nn.Module):
    """Two linear maps with an activation between them, in the tangent space: it fuses the heads."""

    def __init__(self, options: FlatBlockOptions) -> None:
        super().__init__()
        dim, width, dropout = options.dim, options.ffn_dim or options.dim, options.weight_dropout
        self.up = TangentLinear(dim, width, weight_dropout=dropout)
        self.activation = ACTIVATIONS[options.activation]
        self.dropout = TokenDropout(options.tangent_dropout)
        self.down = TangentLinear(width, dim, weight_dropout=dropout)

    def forward(self, u: Float[Tensor, "*B dim"], part: Part | None = None) -> Float[Tensor, "*B dim"]:
        """Return ``(..., dim)`` for ``(..., dim)``."""
        return self.down(self.dropout(self.activation(self.up(u)), part))


class Block(FromOptions, nn.Module):
    """A pre-norm block: attention and a feed-forward part, each added to its input; subclasses say how."""

    #: whether to normalise what goes into each part; False: what comes out of each sum, as the first Transformers did
    norm_first = True

    def __init__(self, options: FlatBlockOptions, attention: StereographicAttention | FlatAttention) -> None:
        super().__init__()
        self.attention = attention
        self.ffn = FeedForward(options)
        self.norm1 = nn.LayerNorm(options.dim) if options.norm else nn.Identity()
        self.norm2 = nn.LayerNorm(options.dim) if options.norm else nn.Identity()
        self.dropout = TokenDropout(options.tangent_dropout)

    @property
    def heads(self) -> int:
        """Number of heads."""
        return self.attention.heads

    def tangent(
        self, u: Float[Tensor, "B N dim"], layout: TokenLayout = ONE_SEQUENCE
    ) -> Float[Tensor, "B R dim"]:
        """Return the block of tangent vectors ``(B, N, dim)``, for the R that the layout asks for."""
        part = layout.part_asked_for
        if self.norm_first:
            return self.feed_forward(self.attend(u, layout), part)
        add, step = self.addition(), self.attention.tangent(u, layout)
        u = self.norm1(add(self.dropout(step, part), layout.asked_for(u)))
        return self.norm2(add(self.dropout(self.ffn(u, part), part), u))

    def attend(self, u: Float[Tensor, "B N dim"], layout: TokenLayout) -> Float[Tensor, "B R dim"]:
        """Return the tokens after attention between them, normalised before."""
        step = self.attention.tangent(self.norm1(u), layout)
        return self.addition()(self.dropout(step, layout.part_asked_for), layout.asked_for(u))

    def feed_forward(self, u: Float[Tensor, "B N dim"], part: Part | None) -> Float[Tensor, "B N dim"]:
        """Return the tokens after the feed-forward part, normalised before."""
        return self.addition()(self.dropout(self.ffn(self.norm2(u), part), part), u)

    def addition(self) -> Callable[[Tensor, Tensor], Tensor]:
        """Return the function that adds a step to vectors, both ``(B, N, dim)``."""
        raise NotImplementedError

    @torch.no_grad()
    def add_nothing(self) -> None:
        """Set the last maps of both parts to 0: the block then returns its input, until training changes that."""
        for last in (self.attention.out, self.ffn.down):
            for parameter in last.parameters():
                parameter.zero_()


class FlatBlock(Block):
    """An ordinary pre-norm block."""

    attention: FlatAttention

    @takes(FlatBlockOptions)
    def __init__(self, options: FlatBlockOptions) -> None:
        kind, dropout = options.attention, options.weight_dropout
        attention = FlatAttention.of(options.part(FlatAttentionOptions, kind=kind, weight_dropout=dropout))
        super().__init__(options, attention)

    def addition(self) -> Callable[[Tensor, Tensor], Tensor]:
        """Return the sum of vectors."""
        return lambda step, u: u + step


class StereographicBlock(Block):
    r"""A pre-norm block of attention and feed-forward part, each added to its input.

    .. math:: x \leftarrow \mathrm{MHA}(\mathrm{LN}\,x) \oplus_\kappa x, \qquad
              x \leftarrow \mathrm{FFN}(\mathrm{LN}\,x) \oplus_\kappa x

    Between the sums everything happens in the tangent space at the origin, where logarithms and exponentials
    cancel; the sums are Möbius sums in each head's space. With all curvatures 0 it is the ordinary pre-norm block.
    """

    attention: StereographicAttention

    @takes(BlockOptions)
    def __init__(self, options: BlockOptions) -> None:
        kind, dropout = options.attention, options.weight_dropout
        attention = StereographicAttention.of(
            options.part(AttentionOptions, kind=kind, weight_dropout=dropout)
        )
        super().__init__(options, attention)

    @property
    def curvature(self) -> Float[Tensor, " heads"]:
        """The curvatures, ``(heads,)``."""
        return self.attention.curvature

    def addition(self) -> Callable[[Tensor, Tensor], Tensor]:
        """Return the Möbius sum of each head."""
        k = self.curvature
        return lambda step, u: added(step, u, k)

    def attend(self, u: Float[Tensor, "B N dim"], layout: TokenLayout) -> Float[Tensor, "B R dim"]:
        """Return the tokens after attention between them, in one operator where that can serve."""
        joint = self._joint(self.norm1, self.attention, self.attention.qkv, self.attention.out)
        if joint is None or self.attention.kind != "linear":
            return super().attend(u, layout)
        weights, eps = joint
        return attention_step(u, self.curvature, weights, eps=eps, layout=layout)

    def feed_forward(self, u: Float[Tensor, "B N dim"], part: Part | None) -> Float[Tensor, "B N dim"]:
        """Return the tokens after the feed-forward part, in one operator where that can serve."""
        joint = self._joint(self.norm2, self.ffn, self.ffn.up, self.ffn.down)
        if joint is None or self.ffn.activation is not F.relu:
            return super().feed_forward(u, part)
        weights, eps = joint
        return feed_forward(u, self.curvature, weights, eps=eps)

    def _joint(
        self, norm: nn.Module, part: nn.Module, first: TangentLinear, second: TangentLinear
    ) -> tuple[Weights, float] | None:
        """Return the weights of a part and the layer norm's epsilon.

        None if its modules do more than apply these weights, or someone watches them.
        """
        modules = norm, first, second
        if (self.training and self.dropout.p) or type(norm) is not nn.LayerNorm:
            return None
        if not (is_plain_linear(first) and is_plain_linear(second)) or any(map(is_watched, (part, *modules))):
            return None
        weights: list[Any] = [
            weight for one in modules for weight in (one.weight, one.bias) if weight is not None
        ]
        return (Weights(*weights), norm.eps) if len(weights) == len(Weights._fields) else None

    def _split(self, u: Tensor) -> Tensor:
        return u.unflatten(-1, (self.heads, -1))

    def forward(
        self, x: Float[Tensor, "B N heads d"], mask: Bool[Tensor, "B N"] | None = None
    ) -> Float[Tensor, "B N heads d"]:
        """Return points ``(B, N, heads, d)`` for points; padding (``mask`` False) at the origin."""
        k = self.attention.space()
        points = expmap0(self._split(self.tangent(logmap0(x, k=k).flatten(-2), TokenLayout(mask))), k=k)
        return points if mask is None else torch.where(mask[..., None, None], points, 0.0)


class Encoder(FromOptions, nn.Module):
    """A stack of blocks over tangent vectors, and its checks; subclasses choose the blocks."""

    def __init__(self, options: FlatEncoderOptions, blocks: Iterable[Block]) -> None:
        super().__init__()
        self.dim, self.heads, self.kind = options.dim, options.heads, options.attention
        self.blocks = nn.ModuleList(blocks)
        self.final_norm = nn.LayerNorm(options.dim) if options.final_norm else nn.Identity()

    def tangent(
        self,
        tokens: Float[Tensor, "*B N dim"],
        mask: Bool[Tensor, "*B N"] | None = None,
        segment: Int[Tensor, " N"] | None = None,
        count: int | None = None,
        *,
        read: int | None = None,
        part: Part | None = None,
    ) -> Float[Tensor, "*B R heads d"]:
        """Return the result as tangent vectors at the origin, ``(..., heads, d)``.

        Args:
            tokens: tangent vectors at the origin, ``(N, dim)`` or ``(B, N, dim)``.
            mask: ``(B, N)``, True for real tokens; padding leaves no trace and comes out as zero.
            segment: ``(N,)``, the sequence of each token, for many sequences in one row without padding
                (linear attention, ``tokens (N, dim)``).
            count: number of sequences in ``segment``.
            read: how many tokens, the first ones, are asked for (None: all); the last block does no more for the
                others than let them be attended to.
            part: which tokens of one sequence these are, where other processes have the others; None for all.
        """
        self._check(tokens, mask, segment, count)
        u = tokens if tokens.dim() == 3 else tokens.unsqueeze(0)
        u = self.encode(u, TokenLayout(mask, segment, count or 1, read=read, part=part))
        return (u if tokens.dim() == 3 else u.squeeze(0)).unflatten(-1, (self.heads, -1))

    def encode(self, u: Float[Tensor, "B N dim"], layout: TokenLayout) -> Float[Tensor, "B R dim"]:
        """Return all blocks of tangent vectors, one after the other; padding comes out as zero."""
        *before, last = self.blocks
        for block in before:
            u = block.tangent(u, dc.replace(layout, read=None))  # type: ignore[operator]
        u = self.final_norm(last.tangent(u, layout))  # type: ignore[operator]
        return u if layout.mask is None else torch.where(layout.asked_for(layout.mask).unsqueeze(-1), u, 0.0)

    def add_nothing(self) -> None:
        """Let every block return its input, until training changes that."""
        for block in self.blocks:
            block.add_nothing()  # type: ignore[operator]

    @property
    def curvatures(self) -> Float[Tensor, "layers heads"]:
        """All curvatures, ``(layers, heads)``."""
        raise NotImplementedError

    @property
    def output_curvature(self) -> Float[Tensor, "heads 1"]:
        """The curvatures of the space that the result lies in, ``(heads, 1)``."""
        raise NotImplementedError

    def _check(self, tokens: Tensor, mask: Tensor | None, segment: Tensor | None, count: int | None) -> None:
        if tokens.dim() not in (2, 3) or tokens.size(-1) != self.dim:
            raise UsageError(
                f"tokens must be (N, {self.dim}) or (B, N, {self.dim}); got {tuple(tokens.shape)}"
            )
        if tokens.size(-2) == 0:
            raise UsageError("there are no tokens: an empty graph or sequence cannot be encoded")
        if mask is not None and tokens.dim() != 3:
            raise UsageError(f"a mask needs tokens (B, N, {self.dim}); got {tuple(tokens.shape)}")
        check_mask(mask, (tokens.size(0), tokens.size(1)))
        if segment is not None and (tokens.dim() != 2 or self.kind == "softmax" or count is None):
            raise UsageError(
                "a ragged row of sequences needs tokens (N, dim), linear attention or none, and their count"
            )


class StereographicTransformer(Encoder):
    r"""A stack of product-stereographic blocks, each with its own curvatures, for tokens of any kind.

    Tokens are tangent vectors at the origin. Between blocks of different curvature a point keeps its tangent
    vector, :math:`\exp_0^{\kappa'} \circ \log_0^{\kappa}`, so nothing is to be computed there.

    Example:
        >>> encoder = StereographicTransformer(16, heads=2, layers=1)
        >>> encoder(torch.randn(100, 16)).shape
        torch.Size([100, 2, 8])
    """

    @takes(EncoderOptions)
    def __init__(self, options: EncoderOptions) -> None:
        initial = initial_curvatures(options.curvature, options.layers, options.heads)
        blocks = [
            StereographicBlock.of(options.part(BlockOptions, curvature=of_layer)) for of_layer in initial
        ]
        super().__init__(options, blocks)

    @property
    def curvatures(self) -> Float[Tensor, "layers heads"]:
        """All curvatures, ``(layers, heads)``."""
        return torch.stack([space().squeeze(-1) for space in self._spaces()])

    @property
    def output_curvature(self) -> Float[Tensor, "heads 1"]:
        """The curvatures of the space that the result lies in, ``(heads, 1)``."""
        return self._spaces()[-1]()

    def _spaces(self) -> list[HeadCurvature]:
        return [module for module in self.modules() if isinstance(module, HeadCurvature)]

    def forward(
        self,
        tokens: Float[Tensor, "*B N dim"],
        mask: Bool[Tensor, "*B N"] | None = None,
        segment: Int[Tensor, " N"] | None = None,
        count: int | None = None,
    ) -> Float[Tensor, "*B N heads d"]:
        """Return points ``(..., heads, d)`` of the last block's space; arguments as in ``tangent``."""
        return expmap0(self.tangent(tokens, mask, segment, count), k=self.output_curvature)


class FlatTransformer(Encoder):
    """A stack of flat blocks, called as :class:`StereographicTransformer`."""

    @takes(FlatEncoderOptions)
    def __init__(self, options: FlatEncoderOptions) -> None:
        super().__init__(
            options, (FlatBlock.of(options.part(FlatBlockOptions)) for _ in range(options.layers))
        )

    @property
    def curvatures(self) -> Float[Tensor, "layers heads"]:
        """Zeros, ``(layers, heads)``."""
        return next(self.parameters()).new_zeros(len(self.blocks), self.heads)

    @property
    def output_curvature(self) -> Float[Tensor, "heads 1"]:
        """Zeros, ``(heads, 1)``."""
        return next(self.parameters()).new_zeros(self.heads, 1)

    def forward(
        self,
        tokens: Float[Tensor, "*B N dim"],
        mask: Bool[Tensor, "*B N"] | None = None,
        segment: Int[Tensor, " N"] | None = None,
        count: int | None = None,
    ) -> Float[Tensor, "*B N heads d"]:
        """Return vectors ``(..., heads, d)``; in flat space a tangent vector is its point."""
        return self.tangent(tokens, mask, segment, count)


def initial_curvatures(curvature: InitialCurvature, layers: int, heads: int) -> list[list[float]]:
    """Return the initial curvatures as ``layers`` lists of ``heads`` numbers."""
    if isinstance(curvature, (int, float)):
        return [[float(curvature)] * heads] * layers
    nested = [k for k in curvature if not isinstance(k, (int, float))]
    rows = (
        [list(row) for row in nested] if nested else [[k for k in curvature if isinstance(k, (int, float))]]
    )
    rows = rows * layers if len(rows) == 1 else rows
    rows = [row * heads if len(row) == 1 else row for row in rows]
    mixed = nested and len(nested) < len(curvature)
    if mixed or len(rows) != layers or any(len(row) != heads for row in rows):
        raise UsageError(
            f"curvature must be a number, {heads} numbers or {layers} lists of {heads}; got {curvature!r}"
        )
    return rows
