r"""Attention to all nodes by distance in products of stereographic spaces.

For each head, with queries and keys as points in half-angle coordinates (:mod:`gyroformer.ops.lifted`),

.. math:: o_i = \frac{\sum_j e^{s_{ij}} v_j}{\sum_j e^{s_{ij}}}, \qquad s_{ij} = -\beta\,d(q_i, k_j)
          \quad\text{or}\quad \log\sigma(-\beta\,d(q_i, k_j) - c),

over the nodes j of the graph of i. No matrix of all pairs is kept: a C++ kernel for float32 on a CPU, else blocks of
rows, which the backward pass forms again.
"""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from gyroformer.geometry.trig import arsin_ratio, safe_sqrt
from gyroformer.ops.native import fused, fused_distance_attention
from gyroformer.ops.pair_blocks import Points, laid_out, quotients

#: pairs times heads at a time: each block's backward pass adds to the gradients of all keys, so that many small ones
#: would cost more than their pairs do
BLOCK_NUMBERS = 1 << 21


def distance_attention(
    query: Points,
    key: Points,
    values: Tensor,
    k: Tensor,
    sharpness: Tensor,
    threshold: Tensor | None,
    segment: Tensor,
) -> Tensor:
    """Return the means of the values, ``(N, H, D)``.

    Args:
        query: half-angle sines ``(N, H, d)`` and cosines ``(N, H, 1)``.
        key: the same of the keys.
        values: ``(N, H, D)``.
        k: curvatures ``(H,)``.
        sharpness: β, ``(H,)``.
        threshold: c, ``(H,)``; None for the softmax.
        segment: the graph of each node, ``(N,)``; nodes attend to those of their own.
    """
    inputs = (*query, *key, values, k, sharpness, *(() if threshold is None else (threshold,)))
    if fused.usable(*inputs):
        return fused_distance_attention.attend(*query, *key, values, k, sharpness, threshold, segment)[0]
    return torch_form(*query, *key, values, k, sharpness, threshold, segment=segment)


def score(distance: Tensor, sharpness: Tensor, threshold: Tensor | None) -> Tensor:
    """Return the logarithm of a weight, up to a constant of each query, of distances ``(..., H)``."""
    found = -sharpness * distance
    return found if threshold is None else F.logsigmoid(found - threshold)


def torch_form(
    query_sine: Tensor,
    query_cosine: Tensor,
    key_sine: Tensor,
    key_cosine: Tensor,
    values: Tensor,
    k: Tensor,
    sharpness: Tensor,
    threshold: Tensor | None = None,
    *,
    segment: Tensor,
    keep: bool = False,
) -> Tensor:
    """Return the same by blocks of rows; ``keep``: what the backward pass needs of them, which is all pairs."""
    (sine, cosine), others = (
        laid_out(*part, None)[0] for part in ((query_sine, query_cosine), (key_sine, key_cosine))
    )
    each = values.transpose(0, 1)

    def block(p: Tensor, c: Tensor, mine: Tensor) -> Tensor:
        q = quotients((p, c), others)
        distance = 2 * safe_sqrt(q) * arsin_ratio(k[:, None, None] * q)
        found = score(distance.movedim(0, -1), sharpness, threshold).movedim(-1, 0)
        return found.masked_fill(mine[:, None] != segment, -torch.inf).softmax(-1) @ each

    rows = max(1, BLOCK_NUMBERS // max(1, k.numel() * segment.numel()))
    blocks = zip(sine.split(rows, -1), cosine.split(rows, -1), segment.split(rows), strict=True)
    parts = [block(*one) if keep else checkpoint(block, *one, use_reentrant=False) for one in blocks]
    return torch.cat(parts, 1).transpose(0, 1)
