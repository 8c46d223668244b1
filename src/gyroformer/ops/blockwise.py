"""The two curved steps of a block, on tangent vectors: attention and sum. C++ where it can be, torch elsewhere."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from gyroformer.ops.attention import ONE_SEQUENCE, TokenLayout, attend_within, attended
from gyroformer.ops.lifted import lift, sine_cosine, translate, unlift
from gyroformer.ops.native import fused, fused_block, shared, wide_block
from gyroformer.ops.native.fused_block import Weights


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
        if layout.part is not None:
            return shared.attention(qkv, k, layout.read)
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


def attention_step(
    u: Float[Tensor, "B N dim"],
    k: Float[Tensor, " H"],
    weights: Weights,
    *,
    eps: float,
    layout: TokenLayout = ONE_SEQUENCE,
) -> Float[Tensor, "B R dim"]:
    """Return the attention part of a pre-norm block, its step added to the tokens; linear attention.

    Args:
        u: tangent vectors at the origin.
        k: curvatures ``(H,)``.
        weights: layer norm, the map to queries, keys and values, and the one that joins the heads.
        eps: of the layer norm.
        layout: which tokens attend to each other, and which R of the N are asked for.
    """
    whole = layout.segment is None and not layout.causal
    if whole and fused_block.usable(u, k, weights, eps):
        if layout.part is not None:
            return shared.attention_step(u, k, weights, eps, layout.read)
        return fused_block.attention_step(u, k, weights, eps, attended(layout.mask), layout.read)
    if whole and layout.part is None and wide_block.usable(u, k, weights, eps):
        return wide_block.attention_step(u, k, weights, eps, attended(layout.mask), layout.read)
    qkv = F.linear(_normalised(u, weights, eps), weights.first, weights.first_bias)
    mixed = tangent_attention(qkv.unflatten(-1, (3, len(k), -1)), k, kind="linear", layout=layout)
    step = F.linear(mixed.flatten(-2).to(u.dtype), weights.second, weights.second_bias)
    return added(step, layout.asked_for(u), k)


def feed_forward(
    u: Float[Tensor, "*B dim"], k: Float[Tensor, " H"], weights: Weights, *, eps: float
) -> Float[Tensor, "*B dim"]:
    """Return the feed-forward part of a pre-norm block with ReLU, its step added to the tokens ``(..., dim)``.

    Args:
        u: tangent vectors at the origin.
        k: curvatures ``(H,)``.
        weights: layer norm and the two linear maps.
        eps: of the layer norm.
    """
    if fused_block.usable(u, k, weights, eps):
        return fused_block.feed_forward(u, k, weights, eps)
    if wide_block.usable(u, k, weights, eps):
        return wide_block.feed_forward(u, k, weights, eps)
    hidden = F.relu(F.linear(_normalised(u, weights, eps), weights.first, weights.first_bias))
    return added(F.linear(hidden, weights.second, weights.second_bias), u, k)


def _normalised(u: Tensor, weights: Weights, eps: float) -> Tensor:
    return F.layer_norm(u, u.shape[-1:], weights.norm, weights.norm_bias, eps)


def added(step: Tensor, u: Tensor, k: Tensor) -> Tensor:
    """Return the Möbius sum of a step and tokens in each head's space, both with the heads joined, ``(..., dim)``."""
    step, own = (x.unflatten(-1, (len(k), -1)) for x in (step, u))
    return tangent_sum(step, own, k).flatten(-2).to(u.dtype)
