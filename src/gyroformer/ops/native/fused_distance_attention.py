"""The C++ attention by distance as a torch operator: it differentiates, compiles, and exports."""

import functools

import torch
from torch import Tensor

from gyroformer.operators import operator
from gyroformer.ops.native.calls import call, contiguous, like
from gyroformer.ops.native.fused import torch_gradients


@operator("distance_attention")
def attend(
    query_sine: Tensor,
    query_cosine: Tensor,
    key_sine: Tensor,
    key_cosine: Tensor,
    values: Tensor,
    k: Tensor,
    sharpness: Tensor,
    threshold: Tensor | None,
    segment: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return the means ``(N, H, D)`` and the logarithms of the sums of weights ``(N, H)``.

    The arguments are those of :func:`gyroformer.ops.distance_attention.distance_attention`.
    """
    out, logs = like(values), values.new_empty(values.shape[:2])
    points = (query_sine, query_cosine, key_sine, key_cosine)
    inputs = contiguous(*points, values, k, sharpness, threshold, segment)
    call("gyroformer_distance_attention", [*inputs, out, logs], values.shape[:1], _sizes(query_sine, values))
    return out, logs


@attend.register_fake
def _(query_sine: Tensor, *others: Tensor) -> tuple[Tensor, Tensor]:
    values = others[3]
    return like(values), values.new_empty(values.shape[:2])


@operator("distance_attention_backward")
def _backward(
    query_sine: Tensor,
    query_cosine: Tensor,
    key_sine: Tensor,
    key_cosine: Tensor,
    values: Tensor,
    k: Tensor,
    sharpness: Tensor,
    threshold: Tensor | None,
    segment: Tensor,
    out: Tensor,
    logs: Tensor,
    grad: Tensor,
) -> list[Tensor]:
    learned = (query_sine, query_cosine, key_sine, key_cosine, values, k, sharpness, threshold)
    inputs = contiguous(*learned, segment, out, logs, grad)
    grads = [like(one) for one in learned if one is not None]
    outputs = [*grads, None] if threshold is None else grads
    call(
        "gyroformer_distance_attention_backward",
        [*inputs, *outputs],
        values.shape[:1],
        _sizes(query_sine, values),
    )
    return grads


@_backward.register_fake
def _(*inputs: Tensor) -> list[Tensor]:
    return [like(one) for one in inputs[:8] if one is not None]


def _sizes(query_sine: Tensor, values: Tensor) -> list[int]:
    return [*query_sine.shape[1:], values.shape[-1]]


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    ctx.save_for_backward(*inputs, *output)


def _vjp(ctx, grad: Tensor, grad_logs: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[no-untyped-def]
    *learned, threshold, segment, out, logs = ctx.saved_tensors
    if torch.is_grad_enabled():
        from gyroformer.ops.distance_attention import torch_form

        inputs = (*learned, *(() if threshold is None else (threshold,)))
        found = torch_gradients(functools.partial(torch_form, segment=segment, keep=True), inputs, grad)
    else:
        found = tuple(_backward(*learned, threshold, segment, out, logs, grad))
    return (*found, *[None] * (9 - len(found)))


attend.register_autograd(_vjp, setup_context=_setup)
