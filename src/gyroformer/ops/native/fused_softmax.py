"""The C++ softmax attention as a torch operator: it differentiates, compiles, and exports."""

import functools

import torch
from torch import Tensor

from gyroformer.operators import operator
from gyroformer.ops.native import calls
from gyroformer.ops.native.calls import contiguous, like
from gyroformer.ops.native.fused import as_bytes, torch_gradients


@operator("softmax_attention")
def attend(
    query: Tensor, key: Tensor, lifted: Tensor, keep: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor]:
    """Return the means ``(B, H, R, v)`` and the logarithms, to base 2, of the sums of weights ``(B, H, R)``.

    The arguments are those of :func:`gyroformer.ops.softmax.softmax_attention`.
    """
    out, logs = _outputs(query, lifted)
    inputs = [*contiguous(query, key, lifted), as_bytes(keep)]
    _call("gyroformer_softmax_attention", [*inputs, out, logs], query, lifted, causal)
    return out, logs


@attend.register_fake
def _(query: Tensor, key: Tensor, lifted: Tensor, keep: Tensor | None, causal: bool) -> tuple[Tensor, Tensor]:
    return _outputs(query, lifted)


@operator("softmax_attention_backward")
def _backward(
    query: Tensor,
    key: Tensor,
    lifted: Tensor,
    keep: Tensor | None,
    causal: bool,
    out: Tensor,
    logs: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    found = like(query), like(key), like(lifted)
    inputs = [*contiguous(query, key, lifted), as_bytes(keep), out, logs, grad.contiguous()]
    _call("gyroformer_softmax_attention_backward", [*inputs, *found], query, lifted, causal)
    return found


@_backward.register_fake
def _(query: Tensor, key: Tensor, lifted: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return like(query), like(key), like(lifted)


def _outputs(query: Tensor, lifted: Tensor) -> tuple[Tensor, Tensor]:
    rows = query.shape[:3]
    return query.new_empty(*rows, lifted.shape[-1]), query.new_empty(rows)


def _call(name: str, tensors: list[Tensor | None], query: Tensor, lifted: Tensor, causal: bool) -> None:
    batch, heads, queries, width = query.shape
    keys, columns = lifted.shape[2:]
    calls.call(name, tensors, [batch, queries, keys], [heads, width, columns, int(causal)], width**-0.5)


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    *tensors, ctx.causal = inputs
    ctx.save_for_backward(*tensors, *output)


def _vjp(ctx, grad: Tensor, grad_logs: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[no-untyped-def]
    query, key, lifted, keep, out, logs = ctx.saved_tensors
    if torch.is_grad_enabled():
        from gyroformer.ops.softmax import explicit

        form = functools.partial(explicit, keep=keep, causal=ctx.causal)
        return (*torch_gradients(form, (query, key, lifted), grad), None, None)
    return (*_backward(query, key, lifted, keep, ctx.causal, out, logs, grad), None, None)


attend.register_autograd(_vjp, setup_context=_setup)
