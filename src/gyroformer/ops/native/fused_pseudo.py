"""The C++ sums over all pairs of a pseudo-hyperboloid as a torch operator: it differentiates once, and compiles."""

import torch
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.geometry.quadric import UNRESOLVED
from gyroformer.operators import operator
from gyroformer.ops.native.calls import call, contiguous, like, no_setup

#: rounding of a product of two points of length 1
UNIT = UNRESOLVED * torch.finfo(torch.float64).eps


@operator("pseudo_sums")
def pseudo_sums(
    points: Tensor, radius_squared: Tensor, indptr: Tensor, indices: Tensor, time: int, squared: bool
) -> Tensor:
    """Return the sums ``(N,)`` in float32 for ambient vectors ``(N, D)`` in float64.

    The lists are those of an undirected graph; see :func:`gyroformer.ops.pseudo_pairs.pair_sums`.
    """
    out = points.new_empty(len(points), dtype=torch.float32)
    inputs = contiguous(points, radius_squared, indptr, indices)
    call("gyroformer_pseudo_sums", [*inputs, out], *_sizes(points, time, squared), UNIT)
    return out


@pseudo_sums.register_fake
def _(points: Tensor, *_: object) -> Tensor:
    return points.new_empty(len(points), dtype=torch.float32)


@operator("pseudo_sums_backward")
def _backward(
    points: Tensor,
    radius_squared: Tensor,
    indptr: Tensor,
    indices: Tensor,
    time: int,
    squared: bool,
    grad: Tensor,
) -> tuple[Tensor, Tensor]:
    inputs = contiguous(points, radius_squared, indptr, indices, grad)
    grads = like(points), like(radius_squared)
    call("gyroformer_pseudo_sums_backward", [*inputs, *grads], *_sizes(points, time, squared), UNIT)
    return grads


@_backward.register_fake
def _(points: Tensor, radius_squared: Tensor, *_: object) -> tuple[Tensor, Tensor]:
    return like(points), like(radius_squared)


def _sizes(points: Tensor, time: int, squared: bool) -> tuple[list[int], list[int]]:
    return [len(points)], [points.shape[1], time, int(not squared)]


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    *tensors, ctx.time, ctx.squared = inputs
    ctx.save_for_backward(*tensors)


def _vjp(ctx, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[no-untyped-def]
    return *_backward(*ctx.saved_tensors, ctx.time, ctx.squared, grad), None, None, None, None


def _refuse(ctx, *grads: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[no-untyped-def]
    raise UsageError("the sums over a pseudo-hyperboloid have no second derivative")


pseudo_sums.register_autograd(_vjp, setup_context=_setup)
_backward.register_autograd(_refuse, setup_context=no_setup)
