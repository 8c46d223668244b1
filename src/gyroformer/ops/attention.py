r"""Attention over lifted values: ordinary attention, one column wider.

Shapes: B sequences, H heads, N tokens, d coordinates. Queries and keys are vectors at the origin, values are
ambient points :math:`[\lambda V, \lambda - 1]` of d + 1 columns. The result is an ambient vector whose direction
names the midpoint; its length carries no meaning, so no normaliser is ever formed.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

KINDS = ("softmax", "linear")
#: absolute error that rounding may make in a score of softmax attention, see ``_bounded``
SCORE_ERROR = 0.1


def attend(
    query: Float[Tensor, "B H N d"],
    key: Float[Tensor, "B H N d"],
    lifted: Float[Tensor, "B H N v"],
    *,
    kind: str,
    mask: Bool[Tensor, "B N"] | None = None,
) -> Float[Tensor, "B H N v"]:
    """Return weighted sums of lifted values ``(B, H, N, d + 1)``.

    Args:
        query: ``(B, H, N, d)``.
        key: ``(B, H, N, d)``.
        lifted: ``(B, H, N, d + 1)``.
        kind: ``"softmax"`` (exact, quadratic) or ``"linear"`` (feature map ELU + 1, linear in N).
        mask: ``(B, N)``, True for real tokens; the others leave no trace in any sum.
    """
    if kind == "softmax":
        return softmax_attention(query, key, lifted, mask)
    return linear_attention(query, key, lifted, mask)


def softmax_attention(query: Tensor, key: Tensor, lifted: Tensor, mask: Tensor | None) -> Tensor:
    """Return softmax(QKᵀ/√d) times the lifted values, through torch's fused kernels."""
    scale = query.size(-1) ** -0.5
    query, key = (_bounded(x, scale) for x in (query, key))
    # the fused kernels, which keep no N x N matrix, want one width for all three; a zero column changes no score
    query, key = (F.pad(x, (0, lifted.size(-1) - x.size(-1))) for x in (query, key))
    if mask is None:
        return F.scaled_dot_product_attention(query, key, lifted, scale=scale)
    # a sequence without a real token attends to all of its padding instead of nothing (NaN)
    allowed = (mask | ~mask.any(-1, keepdim=True))[:, None, None, :]
    return F.scaled_dot_product_attention(query, key, lifted, attn_mask=allowed, scale=scale)


def _bounded(x: Tensor, scale: float) -> Tensor:
    """Return vectors no longer than lets every score stay below ``SCORE_ERROR / eps``; longer ones shrink to that.

    The fused kernels' backward pass takes exp(score - logarithm of the sum) anew; a score of 1e11, which points near
    the edge of the ball can have, is known there to 1e4 only, and its exponential may be infinite. Scores this large
    differ by far more than a softmax can tell, so the limit changes no weight but in ties.
    """
    longest = (SCORE_ERROR / (torch.finfo(x.dtype).eps * scale)) ** 0.5
    squared = (x * x).sum(-1, keepdim=True)
    far = squared > longest * longest
    return torch.where(far, x * (longest * torch.where(far, squared, 1.0).rsqrt()), x)


def feature_floor(dtype: torch.dtype) -> float:
    """Return the x below which ELU(x) + 1 = exp(x) counts as at it: products of four features stay normal."""
    return math.log(torch.finfo(dtype).tiny) / 4


def feature_map(x: Tensor) -> Tensor:
    """Return ELU(x) + 1, the positive feature map of linear attention, without the cancellation of exp(x) - 1 + 1.

    Its floor (about 3e-10 in float32) keeps every weight positive, so that no row of attention is empty.
    """
    return torch.where(x > 0, x + 1, x.clamp(feature_floor(x.dtype), 0).exp())


def linear_attention(query: Tensor, key: Tensor, lifted: Tensor, mask: Tensor | None) -> Tensor:
    """Return φ(Q)(φ(K)ᵀ · lifted), in time and memory linear in N."""
    key = feature_map(key)
    if mask is not None:
        key = key * mask[:, None, :, None]
    return feature_map(query) @ (key.mT @ lifted)


def ragged_linear_attention(
    query: Float[Tensor, "H T d"],
    key: Float[Tensor, "H T d"],
    lifted: Float[Tensor, "H T v"],
    segment: Int[Tensor, " T"],
    count: int,
) -> Float[Tensor, "H T v"]:
    """Return linear attention within each of ``count`` sequences of one long row of tokens, without padding.

    Args:
        query: ``(H, T, d)``.
        key: ``(H, T, d)``.
        lifted: ``(H, T, d + 1)``.
        segment: ``(T,)``, the sequence of each token.
        count: number of sequences.
    """
    outer = feature_map(key).unsqueeze(-1) * lifted.unsqueeze(-2)  # (H, T, d, d + 1)
    sums = outer.new_zeros(outer.size(0), count, *outer.shape[2:]).index_add(1, segment, outer)
    return (feature_map(query).unsqueeze(-2) @ sums.index_select(1, segment)).squeeze(-2)


def attend_reference(query: Tensor, key: Tensor, lifted: Tensor, *, kind: str, mask: Tensor | None) -> Tensor:
    """Return the same as :func:`attend` up to each row's length, from an explicit N × N matrix; for tests."""
    if kind == "softmax":
        weight = (query @ key.mT / math.sqrt(query.size(-1))).exp()
    else:
        weight = feature_map(query) @ feature_map(key).mT
    if mask is not None:
        weight = weight * mask[:, None, None, :]
    return torch.einsum("bhnm,bhmd->bhnd", weight / weight.sum(-1, keepdim=True), lifted)
