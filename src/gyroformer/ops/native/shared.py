"""The C++ kernels where several processes have a part of the work each: attention over tokens, sums over pairs.

Between the two passes of attention, and behind the sums over pairs, the processes add up what each has found; near
lists are renewed by rows.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gyroformer.ops.native import fused, fused_near, fused_pairs
from gyroformer.ops.native.calls import call, contiguous, like
from gyroformer.ops.native.fused_block import Weights
from gyroformer.ops.near_field import Bias, NearField
from gyroformer.ops.neighbours import Neighbours
from gyroformer.processes.group import World, joined
from gyroformer.processes.tensors import gathered, share, summed


def attention(qkv: Tensor, k: Tensor, read: int | None = None) -> Tensor:
    """Return :func:`gyroformer.ops.native.fused.attention` of this process's tokens among those of all processes.

    Args:
        qkv: queries, keys and values of these tokens in the tangent space, ``(1, N, 3, H, d)``.
        k: curvatures ``(H,)``.
        read: how many of these tokens, the first ones, are asked for; None for all.
    """
    return _Attention.apply(qkv, k, qkv.shape[1] if read is None else read, joined())


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qkv: Tensor, k: Tensor, read: int, world: World | None) -> Tensor:
        qkv, k = qkv.contiguous(), k.contiguous()
        _, tokens, _, heads, width = qkv.shape
        sizes = [1, tokens, read, heads, width]
        out, sums = qkv.new_empty(1, read, heads, width), qkv.new_empty(1, heads, width, width + 1)
        fused.call("gyroformer_attention", [qkv, k, None, None, sums], sizes, passes=fused.FIRST)
        sums = summed(sums, world)
        fused.call("gyroformer_attention", [qkv, k, None, out, sums], sizes, passes=fused.SECOND)
        ctx.save_for_backward(qkv, k, sums)
        ctx.world = world
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        qkv, k, sums = ctx.saved_tensors
        _, tokens, _, heads, width = qkv.shape
        grad_qkv, grad_k, grad = torch.empty_like(qkv), torch.zeros_like(k), grad.contiguous()
        read = grad.shape[1]
        grad_sums, transport = torch.empty_like(sums), qkv.new_empty(read, heads)
        for passes in (fused.FIRST, fused.SECOND):
            tensors = [qkv, k, None, sums, grad, grad_qkv, grad_k, grad_sums, transport]
            sizes = [1, tokens, read, heads, width]
            fused.call("gyroformer_attention_backward", tensors, sizes, passes=passes)
            if passes == fused.FIRST:
                grad_sums = summed(grad_sums, ctx.world)
        return grad_qkv, grad_k, None, None


def attention_step(u: Tensor, k: Tensor, weights: Weights, eps: float, read: int | None) -> Tensor:
    """Return :func:`gyroformer.ops.native.fused_block.attention_step` of this process's tokens among those of all.

    Args:
        u: these tokens, ``(1, N, dim)``.
        k: curvatures ``(H,)``.
        weights: of the block's attention part.
        eps: of its layer norm.
        read: how many of these tokens, the first ones, are asked for; None for all.
    """
    what = (u.shape[1] if read is None else read, eps, joined())
    return _AttentionStep.apply(what, u, k, *weights)


class _AttentionStep(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, what: tuple[int, float, World | None], u: Tensor, k: Tensor, *weights: Tensor
    ) -> Tensor:
        read, eps, world = what
        inputs = contiguous(u, *weights, k)
        (_, tokens, dim), heads = u.shape, k.shape[0]
        out, sums = u.new_empty(1, read, dim), u.new_empty(1, heads, dim // heads, dim // heads + 1)
        for passes in (fused.FIRST, fused.SECOND):
            sizes = [1, tokens, read], [passes, heads, dim]
            call("gyroformer_attention_step", [*inputs, None, out, sums], *sizes, eps)
            if passes == fused.FIRST:
                sums = summed(sums, world)
        ctx.save_for_backward(*inputs, sums)
        ctx.what = what
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (read, eps, world), (*inputs, sums) = ctx.what, ctx.saved_tensors
        (_, tokens, dim), heads = inputs[0].shape, inputs[-1].shape[0]
        grads, grad = [like(one) for one in inputs], grad.contiguous()
        by_sums, transport = torch.empty_like(sums), grad.new_empty(read, heads)
        for passes in (fused.FIRST, fused.SECOND):
            tensors, sizes = [*inputs, None, sums, grad, *grads, by_sums, transport], [passes, heads, dim]
            call("gyroformer_attention_step_backward", tensors, [1, tokens, read], sizes, eps)
            if passes == fused.FIRST:
                by_sums = summed(by_sums, world)
        by_u, *by_weights, by_k = grads
        return None, by_u, by_k, *by_weights


def log_partition(
    points: tuple[Tensor, Tensor, Tensor],
    bias: tuple[Tensor, Tensor] | None,
    neighbours: Neighbours,
    columns: Tensor | None,
    *,
    scale: float,
    squared: bool,
) -> Tensor:
    """Return :func:`gyroformer.ops.native.fused_pairs.log_partition`, each pair being met by one process only."""
    world = joined()
    assert world is not None
    what = (neighbours, columns, scale, squared, (world.rank, world.count))
    part: Tensor = _PairSums.apply(*points, *(bias or (None, None)), what)
    return torch.log1p(summed(part, world))


class _PairSums(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, sine: Tensor, cosine: Tensor, k: Tensor, rise: Tensor | None, pull: Tensor | None, what: Any
    ) -> Tensor:
        ctx.save_for_backward(sine, cosine, k, rise, pull)
        ctx.what = what
        neighbours, columns, scale, squared, share = what
        out = sine.new_empty(sine.shape[0])
        inputs = contiguous(sine, cosine, k, rise, pull, *neighbours.lists, columns)
        sizes = fused_pairs.sizes(sine, columns, squared, share)
        call("gyroformer_log_partition", [*inputs, out], *sizes, scale)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        neighbours, columns, scale, squared, share = ctx.what
        sine = tensors[0]
        inputs = contiguous(*tensors, *neighbours.lists, columns, torch.zeros_like(grad), grad)
        grads = [
            None if t is None else torch.zeros_like(t, memory_format=torch.contiguous_format) for t in tensors
        ]
        sizes = fused_pairs.sizes(sine, columns, squared, share)
        call("gyroformer_log_partition_backward", [*inputs, *grads], *sizes, scale)
        return (*grads, None)


def near_log_partition(points: Tensor, k: Tensor, bias: Bias, field: NearField, *, squared: bool) -> Tensor:
    """Return :func:`gyroformer.ops.native.fused_near.near_log_partition`, each term being met by one process only."""
    world = joined()
    assert world is not None
    what = (field, squared, (world.rank, world.count))
    part: Tensor = _NearSums.apply(points, k, *(bias or (None, None)), what)
    return torch.log1p(summed(part, world))


class _NearSums(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, points: Tensor, k: Tensor, rise: Tensor | None, pull: Tensor | None, what: Any
    ) -> Tensor:
        ctx.save_for_backward(points, k, rise, pull)
        ctx.what = what
        out = points.new_empty(points.shape[0])
        _call_near("gyroformer_near_partition", (points, k, rise, pull), what, [out])
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        grads = [None if t is None else like(t) for t in tensors]
        # the logarithm 0 of a sum that has none: its derivative is 1
        more = [torch.zeros_like(grad), grad.contiguous(), *grads]
        _call_near("gyroformer_near_partition_backward", tensors, ctx.what, more)
        return (*grads, None)


def _call_near(name: str, tensors: tuple[Tensor | None, ...], what: Any, more: list[Tensor | None]) -> None:
    field, squared, mine = what
    points, k = tensors[:2]
    assert points is not None
    assert k is not None
    graph = field.neighbours.indptr, field.neighbours.indices
    inputs = contiguous(*tensors, *graph, field.near, field.ring)
    sizes = fused_near.sizes(points, k, field.near, field.reach, squared, mine)
    call(name, [*inputs, *more], *sizes, field.scale)


def renewed_lists(
    points: Tensor, k: Tensor, pull: Tensor | None, neighbours: Neighbours, lists: Tensor, **drawn: Any
) -> Tensor:
    """Return :func:`gyroformer.ops.native.fused_near.renewed_lists`, each row being made by one process only."""
    world = joined()
    assert world is not None
    mine = (world.rank, world.count)
    found = fused_near.renewed_lists(points, k, pull, neighbours, lists, **drawn, share=mine)
    return gathered(found[share(len(found))], len(found))
