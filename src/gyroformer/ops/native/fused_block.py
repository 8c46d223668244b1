"""The two parts of a narrow block as one operator each: layer norm, linear maps, and the curved steps between them.

At small widths the flat parts of a block cost more in reading and writing tokens than in arithmetic. Here a token is
read once a pass, and nothing is kept for the backward pass but the tokens themselves. Wide linear maps are better left
to torch's matrix products, see :data:`MOST_WIDTH`.
"""

import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gyroformer.operators import operator
from gyroformer.ops.native import fused
from gyroformer.ops.native.calls import call, contiguous, like

#: width of tokens up to which these kernels are ahead of torch's matrix products
MOST_WIDTH = 64


class Weights(NamedTuple):
    """The weights of a part of a block: layer norm, a linear map in and one out."""

    norm: Tensor
    norm_bias: Tensor
    first: Tensor
    first_bias: Tensor
    second: Tensor
    second_bias: Tensor


def usable(u: Tensor, k: Tensor, weights: Weights, eps: float) -> bool:
    """Return whether the kernels can take tokens ``u (B, N, dim)``, curvatures and these weights."""
    narrow = u.shape[-1] <= MOST_WIDTH and weights.second.shape[1] <= MOST_WIDTH
    # an exported program should run where gyroformer is not
    return narrow and eps > 0 and not torch.compiler.is_exporting() and fused.usable(u, k, *weights)


def attention_step(
    u: Tensor, k: Tensor, weights: Weights, eps: float, mask: Tensor | None, read: int | None
) -> Tensor:
    """Return the step of linear attention added to the first ``read`` tokens, ``(B, R, dim)``; None for all."""
    return _attention_step(u, k, list(weights), mask, u.shape[1] if read is None else read, eps)[0]


def feed_forward(u: Tensor, k: Tensor, weights: Weights, eps: float) -> Tensor:
    """Return the feed-forward step with ReLU added to tokens ``(..., dim)``."""
    return _feed_forward(u, k, list(weights), eps)


@operator("attention_step")
def _attention_step(
    u: Tensor, k: Tensor, weights: list[Tensor], mask: Tensor | None, read: int, eps: float
) -> tuple[Tensor, Tensor]:
    batch, tokens, dim = u.shape
    out, sums = _attention_step_like(u, k, read)
    inputs = contiguous(u, *weights, k, fused.as_bytes(mask))
    sizes = [batch, tokens, read], [fused.FIRST | fused.SECOND, k.shape[0], dim]
    call("gyroformer_attention_step", [*inputs, out, sums], *sizes, eps)
    return out, sums


@_attention_step.register_fake
def _(
    u: Tensor, k: Tensor, weights: list[Tensor], mask: Tensor | None, read: int, eps: float
) -> tuple[Tensor, Tensor]:
    return _attention_step_like(u, k, read)


def _attention_step_like(u: Tensor, k: Tensor, read: int) -> tuple[Tensor, Tensor]:
    width = u.shape[2] // k.shape[0]
    return u.new_empty(u.shape[0], read, u.shape[2]), u.new_empty(u.shape[0], k.shape[0], width, width + 1)


@operator("attention_step_backward")
def _attention_step_backward(
    u: Tensor, k: Tensor, weights: list[Tensor], mask: Tensor | None, sums: Tensor, grad: Tensor, eps: float
) -> list[Tensor]:
    (batch, tokens, dim), read, heads = u.shape, grad.shape[1], k.shape[0]
    inputs = contiguous(u, *weights, k, fused.as_bytes(mask), sums, grad)
    grads = [like(one) for one in (u, *weights, k)]
    between = torch.empty_like(sums[0]), u.new_empty(read, heads)
    sizes = [batch, tokens, read], [fused.FIRST | fused.SECOND, heads, dim]
    call("gyroformer_attention_step_backward", [*inputs, *grads, *between], *sizes, eps)
    return grads


@_attention_step_backward.register_fake
def _(
    u: Tensor, k: Tensor, weights: list[Tensor], mask: Tensor | None, sums: Tensor, grad: Tensor, eps: float
) -> list[Tensor]:
    return [like(one) for one in (u, *weights, k)]


@operator("feed_forward")
def _feed_forward(u: Tensor, k: Tensor, weights: list[Tensor], eps: float) -> Tensor:
    out = like(u)
    call("gyroformer_feed_forward", [*contiguous(u, *weights, k), out], *_sizes(u, k, weights), eps)
    return out


@_feed_forward.register_fake
def _(u: Tensor, k: Tensor, weights: list[Tensor], eps: float) -> Tensor:
    return like(u)


@operator("feed_forward_backward")
def _feed_forward_backward(
    u: Tensor, k: Tensor, weights: list[Tensor], grad: Tensor, eps: float
) -> list[Tensor]:
    grads = [like(one) for one in (u, *weights, k)]
    tensors = [*contiguous(u, *weights, k, grad), *grads]
    call("gyroformer_feed_forward_backward", tensors, *_sizes(u, k, weights), eps)
    return grads


@_feed_forward_backward.register_fake
def _(u: Tensor, k: Tensor, weights: list[Tensor], grad: Tensor, eps: float) -> list[Tensor]:
    return [like(one) for one in (u, *weights, k)]


def _sizes(u: Tensor, k: Tensor, weights: list[Tensor]) -> tuple[list[int], list[int]]:
    dim = u.shape[-1]
    return [u.numel() // dim], [Weights(*weights).first.shape[0], k.shape[0], dim]


def _attention_step_setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    u, k, weights, mask, ctx.read, ctx.eps = inputs
    ctx.save_for_backward(u, k, mask, output[1], *weights)


def _attention_step_vjp(ctx: Any, grad: Tensor, grad_sums: Tensor | None) -> tuple[Any, ...]:
    u, k, mask, sums, *weights = ctx.saved_tensors
    if torch.is_grad_enabled():
        from gyroformer.ops.attention import TokenLayout
        from gyroformer.ops.blockwise import attention_step

        layout = TokenLayout(mask, read=ctx.read)
        form = functools.partial(of_all, attention_step, eps=ctx.eps, layout=layout)
        by_u, by_k, *by_weights = fused.torch_gradients(form, (u, k, *weights), grad)
    else:
        by_u, *by_weights, by_k = _attention_step_backward(u, k, weights, mask, sums, grad, ctx.eps)
    return by_u, by_k, by_weights, None, None, None


def _feed_forward_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    u, k, weights, ctx.eps = inputs
    ctx.save_for_backward(u, k, *weights)


def _feed_forward_vjp(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    u, k, *weights = ctx.saved_tensors
    if torch.is_grad_enabled():
        from gyroformer.ops.blockwise import feed_forward

        form = functools.partial(of_all, feed_forward, eps=ctx.eps)
        by_u, by_k, *by_weights = fused.torch_gradients(form, (u, k, *weights), grad)
    else:
        by_u, *by_weights, by_k = _feed_forward_backward(u, k, weights, grad, ctx.eps)
    return by_u, by_k, by_weights, None


def of_all(form: Any, u: Tensor, k: Tensor, *weights: Tensor, **options: Any) -> Tensor:
    """Return a form of a part of a block for weights that are given one by one."""
    found: Tensor = form(u, k, Weights(*weights), **options)
    return found


_attention_step.register_autograd(_attention_step_vjp, setup_context=_attention_step_setup)
_feed_forward.register_autograd(_feed_forward_vjp, setup_context=_feed_forward_setup)
