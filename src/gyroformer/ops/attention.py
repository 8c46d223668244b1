r"""Attention over lifted values: ordinary attention, one column wider.

Shapes: B sequences, H heads, N tokens, d coordinates. Queries and keys are vectors at the origin, values are
ambient points :math:`[\lambda V, \lambda - 1]` of d + 1 columns. The result is an ambient vector whose direction
names the midpoint; its length carries no meaning, so no normaliser is ever formed.
"""

import dataclasses as dc
import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from gyroformer.ops.feature_map import feature_map
from gyroformer.ops.softmax import softmax_attention
from gyroformer.processes.tensors import all_sum, gathered

KINDS = ("softmax", "linear")


@dc.dataclass(frozen=True, slots=True)
class Part:
    """Which tokens of a longer row these are; the others are in other processes.

    Attributes:
        places: where they stand in the row, piece by piece.
        total: number of tokens in the row.
        first: number of tokens in the piece of the row that the first of ``places`` is of.
    """

    places: tuple[slice, ...]
    total: int
    first: int


@dc.dataclass(frozen=True, slots=True)
class TokenLayout:
    """Which tokens attend to each other: all, those of one padded sequence, or those of one part of a ragged row.

    Attributes:
        mask: ``(B, N)``, True for real tokens, False for padding; None for none.
        segment: ``(N,)``, the sequence of each token of one long row (B = 1, linear attention); None for one sequence.
        count: number of sequences in ``segment``.
        causal: whether a token attends to itself and those before it only.
        pairs: softmax attention only: which pairs attend, all that ``mask`` and ``causal`` say included, as torch's
            ``scaled_dot_product_attention`` takes it, True for those that do or numbers that are added to the scores;
            broadcasts to ``(B, H, N, N)``.
        alone: ``(B, H or 1, N)``, True for tokens that no token is left to attend to; attention gives them the origin.
        read: how many tokens, the first ones, are asked for: the others are attended to, and what becomes of them is
            not computed; None for all.
        part: which tokens of one sequence these are; None for all. ``read`` are then those of its first piece.
    """

    mask: Tensor | None = None
    segment: Tensor | None = None
    count: int = 1
    causal: bool = False
    pairs: Tensor | None = None
    alone: Tensor | None = None
    read: int | None = None
    part: Part | None = None

    @property
    def part_asked_for(self) -> Part | None:
        """The same as ``part`` among the tokens that are asked for."""
        if self.part is None or self.read is None:
            return self.part
        return Part(self.part.places[:1], self.part.first, self.part.first)

    def asked_for(self, x: Shaped[Tensor, "B N *rest"]) -> Shaped[Tensor, "B R *rest"]:
        """Return the part of ``x`` that belongs to the tokens that are asked for."""
        return x if self.read is None else x[:, : self.read]


#: all tokens attend to all
ONE_SEQUENCE = TokenLayout()


def attend_within(
    query: Float[Tensor, "B H R d"],
    key: Float[Tensor, "B H N d"],
    lifted: Float[Tensor, "B H N v"],
    *,
    kind: str,
    layout: TokenLayout,
) -> Float[Tensor, "B H R v"]:
    """Return the sums of :func:`attend` among the tokens that the layout joins, for those that it asks for."""
    if layout.part is not None:
        return attend_in_part(query, key, lifted, kind=kind)
    if layout.segment is None:
        if kind == "linear" and layout.causal:
            return causal_linear_attention(query, key, lifted, layout.mask)
        if kind == "softmax" and (layout.causal or layout.pairs is not None):
            return softmax_attention(query, key, lifted, layout.pairs, causal=layout.pairs is None)
        return attend(query, key, lifted, kind=kind, mask=layout.mask)
    return ragged_linear_attention(query[0], key[0], lifted[0], layout.segment, layout.count).unsqueeze(0)


def attend(
    query: Float[Tensor, "B H R d"],
    key: Float[Tensor, "B H N d"],
    lifted: Float[Tensor, "B H N v"],
    *,
    kind: str,
    mask: Bool[Tensor, "B N"] | None = None,
) -> Float[Tensor, "B H R v"]:
    """Return weighted sums of lifted values, ``(B, H, R, d + 1)``.

    Args:
        query: ``(B, H, R, d)``.
        key: ``(B, H, N, d)``.
        lifted: ``(B, H, N, d + 1)``.
        kind: ``"softmax"`` (exact, quadratic) or ``"linear"`` (feature map ELU + 1, linear in N).
        mask: ``(B, N)``, True for real tokens; the others leave no trace in any sum.
    """
    keep = attended(mask)
    if kind == "linear":
        return linear_attention(query, key, lifted, keep)
    return softmax_attention(query, key, lifted, keep=keep)


def attend_in_part(
    query: Float[Tensor, "B H R d"],
    key: Float[Tensor, "B H N d"],
    lifted: Float[Tensor, "B H N v"],
    *,
    kind: str,
) -> Float[Tensor, "B H R v"]:
    """Return the sums of :func:`attend` for this process's tokens, over the tokens of all processes.

    Linear attention adds up the φ(K)ᵀ · lifted, d · (d + 1) numbers a head; softmax attention has to see all keys.
    """
    if kind == "linear":
        return feature_map(query) @ all_sum(feature_map(key).mT @ lifted)
    key, lifted = (gathered(x.movedim(2, 0)).movedim(0, 2) for x in (key, lifted))
    return softmax_attention(query, key, lifted)


def attended(mask: Bool[Tensor, "B N"] | None) -> Bool[Tensor, "B N"] | None:
    """Return the tokens that are attended to, the real ones; in a sequence without any all, instead of none (NaN)."""
    return None if mask is None else mask | ~mask.any(-1, keepdim=True)


def linear_attention(query: Tensor, key: Tensor, lifted: Tensor, mask: Tensor | None) -> Tensor:
    """Return φ(Q)(φ(K)ᵀ · lifted), in time and memory linear in N."""
    key = feature_map(key)
    if mask is not None:
        key = key * mask[:, None, :, None]
    return feature_map(query) @ (key.mT @ lifted)


def causal_linear_attention(
    query: Float[Tensor, "B H N d"],
    key: Float[Tensor, "B H N d"],
    lifted: Float[Tensor, "B H N v"],
    mask: Bool[Tensor, "B N"] | None = None,
) -> Float[Tensor, "B H N v"]:
    """Return linear attention of each token to itself and those before it, in time and memory linear in N.

    The sums φ(K)ᵀ · lifted of all tokens before each one would be N matrices of d × (d + 1). The row is cut into pieces
    of :func:`causal_piece` tokens instead: one such matrix for each piece, and within a piece an ordinary product whose
    upper triangle is left out.
    """
    tokens, piece = query.size(-2), causal_piece(query.size(-1))
    key = feature_map(key)
    if mask is not None:
        key = key * mask[:, None, :, None]
    missing = -tokens % piece
    query, key, lifted = (
        F.pad(x, (0, 0, 0, missing)).unflatten(-2, (-1, piece)) for x in (feature_map(query), key, lifted)
    )
    sums = key.mT @ lifted  # (B, H, pieces, d, d + 1)
    # of the pieces before each one, not by subtraction: a huge piece must leave no trace in those before it
    before = F.pad(sums[:, :, :-1].to(torch.promote_types(sums.dtype, torch.float32)), (0, 0, 0, 0, 1, 0))
    before = before.cumsum(2).to(sums.dtype)  # in half precision the last of many would not count
    within = (query @ key.mT).tril() @ lifted
    return (query @ before + within).flatten(2, 3)[..., :tokens, :]


def causal_piece(width: int) -> int:
    """Return how many tokens :func:`causal_linear_attention` takes at a time, for heads of ``width``.

    With at least as many as a head is wide, the matrices of all pieces take no more memory than the tokens do.
    """
    return max(64, width)


def ragged_linear_attention(
    query: Float[Tensor, "H R d"],
    key: Float[Tensor, "H T d"],
    lifted: Float[Tensor, "H T v"],
    segment: Int[Tensor, " T"],
    count: int,
) -> Float[Tensor, "H R v"]:
    """Return linear attention within each of ``count`` sequences of one long row of tokens, without padding.

    Args:
        query: ``(H, R, d)``, of the first R tokens.
        key: ``(H, T, d)``.
        lifted: ``(H, T, d + 1)``.
        segment: ``(T,)``, the sequence of each token.
        count: number of sequences.
    """
    outer = feature_map(key).unsqueeze(-1) * lifted.unsqueeze(-2)  # (H, T, d, d + 1)
    sums = outer.new_zeros(outer.size(0), count, *outer.shape[2:]).index_add(1, segment, outer)
    return (feature_map(query).unsqueeze(-2) @ sums.index_select(1, segment[: query.size(1)])).squeeze(-2)


def attend_reference(query: Tensor, key: Tensor, lifted: Tensor, *, kind: str, mask: Tensor | None) -> Tensor:
    """Return the same as :func:`attend` up to each row's length, from an explicit N × N matrix; for tests."""
    if kind == "softmax":
        weight = (query @ key.mT / math.sqrt(query.size(-1))).exp()
    else:
        weight = feature_map(query) @ feature_map(key).mT
    if mask is not None:
        weight = weight * mask[:, None, None, :]
    return torch.einsum("bhnm,bhmd->bhnd", weight / weight.sum(-1, keepdim=True), lifted)
