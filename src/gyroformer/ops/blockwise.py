"""The two curved steps of a block, on tangent vectors: attention and sum. C++ where it can be, torch elsewhere."""

import torch
from jaxtyping import Float
from torch import Tensor

from gyroformer.ops.attention import ONE_SEQUENCE, TokenLayout, attend_within, attended
from gyroformer.ops.lifted import lift, sine_cosine, translate, unlift
from gyroformer.ops.native import fused


def tangent_attention(
    qkv: Float[Tensor, "B N 3 H d"],
    k: Float[Tensor, " H"],
    *,
    kind: str,
    layout: TokenLayout = ONE_SEQUENCE,
) -> Float[Tensor, "B R H d"]:
    """Return attention between points, all as tangent vectors: ``(B, N, 3, H, d)`` to ``(B, R, H, d)``.

    Args:
        qkv: queries and keys at the values' points, and the values' own tangent vectors at the origin.
        k: curvatures ``(H,)``.
        kind: ``"softmax"`` or ``"linear"``.
        layout: which tokens attend to each other, and which R of the N are asked for.
    """
    if kind == "linear" and layout.segment is None and not layout.causal and fused.usable(qkv, k):
        return fused.attention(qkv, k, attended(layout.mask), layout.read)
    query, key, value = qkv.permute(2, 0, 3, 1, 4)  # (B, H, N, d)
    curvature = k[:, None, None]
    sine, cosine = sine_cosine(value, curvature)
    transport = cosine * cosine
    query, key, lifted = query * transport, key * transport, lift(sine, cosine)
    query = query[:, :, : layout.read]
    mixed = unlift(attend_within(query, key, lifted, kind=kind, layout=layout), curvature)
    if layout.alone is not None:
        mixed = torch.where(layout.alone.unsqueeze(-1), 0.0, mixed)
    return mixed.transpose(1, 2)


def tangent_sum(
    p: Float[Tensor, "*B H d"], x: Float[Tensor, "*B H d"], k: Float[Tensor, " H"]
) -> Float[Tensor, "*B H d"]:
    """Return the Möbius sum p ⊕ x of points given and returned as tangent vectors ``(..., H, d)``; ``k (H,)``."""
    if fused.usable(p, x, k):
        return fused.gyro_sum(p, x, k)
    curvature = k[:, None]
    return translate(sine_cosine(p, curvature), *sine_cosine(x, curvature), curvature)[0]
