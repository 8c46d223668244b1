"""The C++ distances of listed pairs of nodes as a torch operator: it differentiates, compiles, and exports."""

import torch
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.operators import operator
from gyroformer.ops.native.calls import check_nodes
from gyroformer.ops.native.fused import call, torch_gradients


@operator("pair_distances")
def pair_squared_dist(sine: Tensor, cosine: Tensor, k: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """Return the squared distances ``(M,)``; see :func:`gyroformer.ops.pairs.pair_squared_dist`."""
    if source.dim() != 1 or source.shape != target.shape:
        raise UsageError(
            f"pairs must be two vectors, as long, got {tuple(source.shape)} and {tuple(target.shape)}"
        )
    for nodes in (source, target):
        check_nodes(nodes, sine.shape[0])
    out = sine.new_empty(source.shape[0])
    inputs = [t.contiguous() for t in (sine, cosine, k, source, target)]
    call("gyroformer_pair_distances", [*inputs, out], _sizes(sine, source))
    return out


@pair_squared_dist.register_fake
def _(sine: Tensor, cosine: Tensor, k: Tensor, source: Tensor, target: Tensor) -> Tensor:
    return sine.new_empty(source.shape[0])


@operator("pair_distances_backward")
def _backward(
    sine: Tensor, cosine: Tensor, k: Tensor, source: Tensor, target: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    by_sine, by_cosine, by_k = (
        torch.empty_like(t, memory_format=torch.contiguous_format) for t in (sine, cosine, k)
    )
    inputs = [t.contiguous() for t in (sine, cosine, k, source, target, grad)]
    call("gyroformer_pair_distances_backward", [*inputs, by_sine, by_cosine, by_k], _sizes(sine, source))
    return by_sine, by_cosine, by_k


@_backward.register_fake
def _(
    sine: Tensor, cosine: Tensor, k: Tensor, source: Tensor, target: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return tuple(torch.empty_like(t, memory_format=torch.contiguous_format) for t in (sine, cosine, k))  # type: ignore[return-value]


def _sizes(sine: Tensor, source: Tensor) -> list[int]:
    nodes, heads, width = sine.shape
    return [nodes, source.shape[0], heads, width]


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    ctx.save_for_backward(*inputs)


def _vjp(ctx, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[no-untyped-def]
    *points, source, target = ctx.saved_tensors
    if torch.is_grad_enabled():
        from gyroformer.ops import pairs

        def form(sine: Tensor, cosine: Tensor, k: Tensor) -> Tensor:
            return pairs.pair_squared_dist(sine, cosine, k, source, target)

        return *torch_gradients(form, tuple(points), grad), None, None
    return *_backward(*points, source, target, grad), None, None


pair_squared_dist.register_autograd(_vjp, setup_context=_setup)
