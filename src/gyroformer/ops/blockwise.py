"""The two curved steps of a block, on tangent vectors: attention and sum. C++ where it can be, torch elsewhere."""

from jaxtyping import Bool, Float, Int
from torch import Tensor

from gyroformer.ops.attention import attend, ragged_linear_attention
from gyroformer.ops.lifted import lift, sine_cosine, translate, unlift
from gyroformer.ops.native import fused


def tangent_attention(
    qkv: Float[Tensor, "B N 3 H d"],
    k: Float[Tensor, " H"],
    *,
    kind: str,
    mask: Bool[Tensor, "B N"] | None = None,
    segment: Int[Tensor, " N"] | None = None,
    count: int | None = None,
) -> Float[Tensor, "B N H d"]:
    """Return attention between points, all as tangent vectors: ``(B, N, 3, H, d)`` to ``(B, N, H, d)``.

    Args:
        qkv: queries and keys at the values' points, and the values' own tangent vectors at the origin.
        k: curvatures ``(H,)``.
        kind: ``"softmax"`` or ``"linear"``.
        mask: ``(B, N)``, True for real tokens.
        segment: ``(N,)``, the sequence of each token of one long row (B = 1, linear attention).
        count: number of sequences in ``segment``.
    """
    if kind == "linear" and segment is None and fused.usable(qkv, k):
        return fused.attention(qkv, k, mask)
    query, key, value = qkv.permute(2, 0, 3, 1, 4)  # (B, H, N, d)
    curvature = k[:, None, None]
    sine, cosine = sine_cosine(value, curvature)
    transport = cosine * cosine
    query, key, lifted = query * transport, key * transport, lift(sine, cosine)
    if segment is None:
        ambient = attend(query, key, lifted, kind=kind, mask=mask)
    else:
        assert count is not None
        ambient = ragged_linear_attention(query[0], key[0], lifted[0], segment, count).unsqueeze(0)
    return unlift(ambient, curvature).transpose(1, 2)


def tangent_sum(
    p: Float[Tensor, "*B H d"], x: Float[Tensor, "*B H d"], k: Float[Tensor, " H"]
) -> Float[Tensor, "*B H d"]:
    """Return the Möbius sum p ⊕ x of points given and returned as tangent vectors ``(..., H, d)``; ``k (H,)``."""
    if fused.usable(p, x, k):
        return fused.gyro_sum(p, x, k)
    curvature = k[:, None]
    return translate(sine_cosine(p, curvature), *sine_cosine(x, curvature), curvature)[0]
