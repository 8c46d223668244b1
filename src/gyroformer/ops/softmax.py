r"""Softmax attention over lifted values, :math:`\mathrm{softmax}(QK^\top/\sqrt d)\,L`, without a matrix of all pairs.

A C++ kernel for float32 on a CPU; torch's fused kernels elsewhere, and for masks of single pairs.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from gyroformer.ops.native import fused, fused_softmax

#: absolute error that rounding may make in a score, see ``_bounded``
SCORE_ERROR = 0.1


def softmax_attention(
    query: Float[Tensor, "B H R d"],
    key: Float[Tensor, "B H N d"],
    lifted: Float[Tensor, "B H N v"],
    pairs: Tensor | None = None,
    *,
    keep: Bool[Tensor, "B N"] | None = None,
    causal: bool = False,
) -> Float[Tensor, "B H R v"]:
    """Return softmax(QKᵀ/√d) times the lifted values.

    Args:
        query: ``(B, H, R, d)``.
        key: ``(B, H, N, d)``.
        lifted: ``(B, H, N, v)``.
        pairs: which pairs attend, or numbers added to their scores; broadcasts to ``(B, H, R, N)``.
        keep: ``(B, N)``, True for keys that are attended to; not beside ``pairs`` or ``causal``.
        causal: whether query i attends to the keys up to i only; not beside ``pairs``.
    """
    scale = query.size(-1) ** -0.5
    query, key = (_bounded(x, scale) for x in (query, key))
    if pairs is None and fused.usable(query, key, lifted):
        return fused_softmax.attend(query, key, lifted, keep, causal)[0]
    return torch_form(query, key, lifted, pairs if keep is None else keep[:, None, None, :], causal=causal)


def torch_form(
    query: Tensor, key: Tensor, lifted: Tensor, pairs: Tensor | None = None, *, causal: bool = False
) -> Tensor:
    """Return the same through torch's fused kernels."""
    scale = query.size(-1) ** -0.5
    # these want one width for all three; a zero column changes no score
    query, key = (F.pad(x, (0, lifted.size(-1) - x.size(-1))) for x in (query, key))
    if pairs is not None and pairs.dtype != torch.bool:
        pairs = pairs.to(query.dtype)
    return F.scaled_dot_product_attention(query, key, lifted, attn_mask=pairs, is_causal=causal, scale=scale)


def explicit(
    query: Tensor, key: Tensor, lifted: Tensor, *, keep: Tensor | None = None, causal: bool = False
) -> Tensor:
    """Return the same from a matrix of all pairs, which can be differentiated twice; torch's fused kernels cannot."""
    score = query @ key.mT * query.size(-1) ** -0.5
    if keep is not None:
        score = score.masked_fill(~keep[:, None, None, :], -torch.inf)
    if causal:
        later = torch.ones(score.shape[-2:], dtype=torch.bool, device=score.device).triu(1)
        score = score.masked_fill(later, -torch.inf)
    return score.softmax(-1) @ lifted


def _bounded(x: Tensor, scale: float) -> Tensor:
    """Return vectors no longer than lets every score stay below ``SCORE_ERROR / eps``; longer ones shrink to that.

    The backward passes take exp(score - logarithm of the sum) anew; a score of 1e11, which points near the edge of the
    ball can have, is known there to 1e4 only, and its exponential may be infinite. Scores this large differ by far more
    than a softmax can tell, so the limit changes no weight but in ties.
    """
    longest = (SCORE_ERROR / (torch.finfo(x.dtype).eps * scale)) ** 0.5
    squared = (x * x).sum(-1, keepdim=True)
    far = squared > longest * longest
    return torch.where(far, x * (longest * torch.where(far, squared, 1.0).rsqrt()), x)
