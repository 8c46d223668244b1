"""The C++ sums over near lists and a random rest as a torch operator, and the choice of the nearest nodes."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.operators import operator
from gyroformer.ops.native.calls import call, contiguous, like, no_setup
from gyroformer.ops.near_field import Bias, NearField
from gyroformer.ops.neighbours import Neighbours


def packed(sine: Tensor, cosine: Tensor) -> Tensor:
    """Return the points as rows: sines ``(N, H, d)``, then cosines ``(N, H, 1)``."""
    return torch.cat((sine.flatten(1), cosine.flatten(1)), 1)


@operator("near_partition")
def _near_partition(
    points: Tensor,
    k: Tensor,
    rise: Tensor | None,
    pull: Tensor | None,
    indptr: Tensor,
    indices: Tensor,
    near: Tensor,
    ring: Tensor,
    reach: int,
    scale: float,
    squared: bool,
) -> Tensor:
    out = points.new_empty(points.shape[0])
    tensors = contiguous(points, k, rise, pull, indptr, indices, near, ring)
    call("gyroformer_near_partition", [*tensors, out], *sizes(points, k, near, reach, squared), scale)
    return out


@_near_partition.register_fake
def _(points: Tensor, *_: object) -> Tensor:
    return points.new_empty(points.shape[0])


@operator("near_partition_backward")
def _near_partition_backward(
    points: Tensor,
    k: Tensor,
    rise: Tensor | None,
    pull: Tensor | None,
    indptr: Tensor,
    indices: Tensor,
    near: Tensor,
    ring: Tensor,
    reach: int,
    scale: float,
    squared: bool,
    logs: Tensor,
    grad: Tensor,
) -> list[Tensor]:
    tensors = contiguous(points, k, rise, pull, indptr, indices, near, ring, logs, grad)
    grads = [like(tensor) for tensor in (points, k, rise, pull) if tensor is not None]
    outputs = [*grads, None, None] if rise is None else grads
    call(
        "gyroformer_near_partition_backward",
        [*tensors, *outputs],
        *sizes(points, k, near, reach, squared),
        scale,
    )
    return grads


@_near_partition_backward.register_fake
def _(points: Tensor, k: Tensor, rise: Tensor | None, pull: Tensor | None, *_: object) -> list[Tensor]:
    return [like(tensor) for tensor in (points, k, rise, pull) if tensor is not None]


def sizes(
    points: Tensor, k: Tensor, near: Tensor, reach: int, squared: bool, share: tuple[int, int] = (0, 1)
) -> tuple[list[int], list[int]]:
    """Return the sizes that the kernels ask for, and which of several shares of the sums they take."""
    nodes, size = points.shape
    heads = k.numel()
    return [nodes], [near.shape[1], reach, heads, size // heads - 1, int(not squared), *share]


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    *tensors, ctx.reach, ctx.scale, ctx.squared = inputs
    ctx.save_for_backward(*tensors, output)


def _vjp(ctx, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[no-untyped-def]
    *tensors, logs = ctx.saved_tensors
    grads = _near_partition_backward(*tensors, ctx.reach, ctx.scale, ctx.squared, logs, grad)
    # nothing flows to biases that are not there, nor to the graph, the lists and the three options
    return (*grads, *[None] * (len(tensors) + 3 - len(grads)))


def _refuse(ctx, grads: list[Tensor]) -> tuple[Tensor | None, ...]:  # type: ignore[no-untyped-def]
    raise UsageError(
        "the C++ form of near_log_partition has no second derivative: use form='eager' where you need one"
    )


_near_partition.register_autograd(_vjp, setup_context=_setup)
_near_partition_backward.register_autograd(_refuse, setup_context=no_setup)


def near_log_partition(points: Tensor, k: Tensor, bias: Bias, field: NearField, *, squared: bool) -> Tensor:
    """Return log S ``(N,)`` of :mod:`gyroformer.ops.near_field`.

    Args:
        points: of :func:`packed`.
        k: curvatures ``(H,)``.
        bias: of nodes as rows and as columns, ``(N,)`` each, or None.
        field: what is summed.
        squared: whether the exponent is the squared distance.
    """
    graph = field.neighbours.indptr, field.neighbours.indices
    lists = (*graph, field.near, field.ring, field.reach, field.scale)
    return _near_partition(points, k, *(bias or (None, None)), *lists, squared)


def renewed_lists(
    points: Tensor,
    k: Tensor,
    pull: Tensor | None,
    neighbours: Neighbours,
    lists: Tensor,
    *,
    draws: Sequence[int] | None,
    seed: int,
    share: tuple[int, int] = (0, 1),
) -> Tensor:
    """Return lists ``(N, K)`` for where the points are now; see :func:`gyroformer.ops.near_lists.renewed_lists`.

    Args:
        points: of :func:`packed`.
        k: curvatures ``(H,)``.
        pull: of each node, ``(N,)``, or None.
        neighbours: the graph.
        lists: as they were, int32 ``(N, K)``.
        draws: how many candidates of each kind a node has; None to look at every node.
        seed: of the draws, the same whatever the number of threads.
        share: which of how many shares of the rows is written.
    """
    out = like(lists)
    ahead = neighbours.indptr, neighbours.indices
    tensors = contiguous(points, k, pull, *ahead, *(neighbours.back or ahead), lists)
    heads = k.numel()
    small = [lists.shape[1], heads, points.shape[1] // heads - 1, int(draws is None), *(draws or [0] * 6)]
    call("gyroformer_renewed_lists", [*tensors, out], [points.shape[0], seed], [*small, *share])
    return out
