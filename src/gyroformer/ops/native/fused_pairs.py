"""The C++ sums over all pairs of nodes as a torch operator: it differentiates once, compiles, and exports."""

from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.operators import operator
from gyroformer.ops.native.calls import call, contiguous, like, no_setup
from gyroformer.ops.neighbours import Neighbours


def sizes(
    sine: Tensor, columns: Tensor | None, squared: bool, share: tuple[int, int] = (0, 1)
) -> tuple[list[int], list[int]]:
    """Return the sizes that the kernels ask for, and which of several shares of the pairs they take."""
    nodes, heads, width = sine.shape
    return [nodes, nodes if columns is None else columns.numel()], [heads, width, int(not squared), *share]


@operator("log_partition")
def _log_partition(
    sine: Tensor,
    cosine: Tensor,
    k: Tensor,
    rise: Tensor | None,
    pull: Tensor | None,
    indptr: Tensor,
    indices: Tensor,
    back_indptr: Tensor,
    back_indices: Tensor,
    columns: Tensor | None,
    scale: float,
    squared: bool,
) -> Tensor:
    out = sine.new_empty(sine.shape[0])
    inputs = contiguous(sine, cosine, k, rise, pull, indptr, indices, back_indptr, back_indices, columns)
    call("gyroformer_log_partition", [*inputs, out], *sizes(sine, columns, squared), scale)
    return out


@_log_partition.register_fake
def _(sine: Tensor, *_: object) -> Tensor:
    return sine.new_empty(sine.shape[0])


@operator("log_partition_backward")
def _log_partition_backward(
    sine: Tensor,
    cosine: Tensor,
    k: Tensor,
    rise: Tensor | None,
    pull: Tensor | None,
    indptr: Tensor,
    indices: Tensor,
    back_indptr: Tensor,
    back_indices: Tensor,
    columns: Tensor | None,
    scale: float,
    squared: bool,
    logs: Tensor,
    grad: Tensor,
) -> list[Tensor]:
    lists = (indptr, indices, back_indptr, back_indices, columns)
    inputs = contiguous(sine, cosine, k, rise, pull, *lists, logs, grad)
    grads = [like(tensor) for tensor in (sine, cosine, k, rise, pull) if tensor is not None]
    outputs = [*grads, None, None] if rise is None else grads
    call("gyroformer_log_partition_backward", [*inputs, *outputs], *sizes(sine, columns, squared), scale)
    return grads


@_log_partition_backward.register_fake
def _(
    sine: Tensor, cosine: Tensor, k: Tensor, rise: Tensor | None, pull: Tensor | None, *_: object
) -> list[Tensor]:
    return [like(tensor) for tensor in (sine, cosine, k, rise, pull) if tensor is not None]


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    *tensors, ctx.scale, ctx.squared = inputs
    ctx.save_for_backward(*tensors, output)


def _vjp(ctx, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[no-untyped-def]
    *tensors, logs = ctx.saved_tensors
    grads = _log_partition_backward(*tensors, ctx.scale, ctx.squared, logs, grad)
    # nothing flows to biases that are not there, nor to the graph, the columns and the two options
    return (*grads, *[None] * (len(tensors) + 2 - len(grads)))


def _refuse(ctx, grads: list[Tensor]) -> tuple[Tensor | None, ...]:  # type: ignore[no-untyped-def]
    raise UsageError(
        "the C++ form of log_partition has no second derivative: use form='eager' where you need one"
    )


_log_partition.register_autograd(_vjp, setup_context=_setup)
_log_partition_backward.register_autograd(_refuse, setup_context=no_setup)


def log_partition(
    points: tuple[Tensor, Tensor, Tensor],
    bias: tuple[Tensor, Tensor] | None,
    neighbours: Neighbours,
    columns: Tensor | None,
    *,
    scale: float,
    squared: bool,
) -> Tensor:
    """Return log(1 + scale Σ exp(−d²)) for each node, ``(N,)``; see :func:`gyroformer.ops.pairs.log_partition`.

    Args:
        points: sine ``(N, H, d)``, cosine ``(N, H, 1)`` and curvatures ``(H,)``.
        bias: of nodes as rows and as columns, ``(N,)`` each, or None.
        neighbours: the graph.
        columns: nodes to sum over, in ascending order, or None for all.
        scale: factor of the sum.
        squared: whether the exponent is the squared distance.
    """
    return _log_partition(*points, *(bias or (None, None)), *neighbours.lists, columns, scale, squared)
