"""The two parts of a wide block as one operator each, of torch's matrix products and the curved kernels.

At such widths the products are torch's own either way. As operators the parts are the same for eager and for compiled
code, whose layer norms and column sums torch's kernels are ahead of; and what is normalised is formed again in the
backward pass instead of being kept, which takes a hundredth of the time and a tenth of the memory.
"""

import functools
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gyroformer.operators import operator
from gyroformer.ops.native import fused
from gyroformer.ops.native.calls import like
from gyroformer.ops.native.fused_block import Weights, of_all

#: layer norms as torch's operators return them: the normalised tokens, their means and inverse deviations
Normed = tuple[Tensor, Tensor, Tensor]


def usable(u: Tensor, k: Tensor, weights: Weights, eps: float) -> bool:
    """Return whether the operators can take tokens ``(..., dim)``, curvatures and these weights."""
    # an exported program should run where gyroformer is not
    return eps > 0 and not torch.compiler.is_exporting() and fused.usable(u, k, *weights)


def attention_step(
    u: Tensor, k: Tensor, weights: Weights, eps: float, mask: Tensor | None, read: int | None
) -> Tensor:
    """Return the step of linear attention added to the first ``read`` tokens, ``(B, R, dim)``; None for all."""
    found: Tensor = _attend(u, k, list(weights), mask, u.shape[1] if read is None else read, eps)[0]
    return found


def feed_forward(u: Tensor, k: Tensor, weights: Weights, eps: float) -> Tensor:
    """Return the feed-forward step with ReLU added to tokens ``(..., dim)``."""
    found: Tensor = _feed(u, k, list(weights), eps)[0]
    return found


def _normed(u: Tensor, weights: Weights, eps: float) -> Normed:
    return torch.native_layer_norm(u, u.shape[-1:], weights.norm, weights.norm_bias, eps)


def _joined(step: Tensor, u: Tensor, k: Tensor) -> Tensor:
    heads = (len(k), -1)
    found: Tensor = fused.gyro_sum(step.unflatten(-1, heads), u.unflatten(-1, heads), k).flatten(-2)
    return found


def _parted(step: Tensor, u: Tensor, k: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of :func:`_joined` in the step, the tokens and the curvatures."""
    by_step, by_u, by_k = fused.gyro_sum_gradients(
        *(x.unflatten(-1, (len(k), -1)) for x in (step, u)), k, grad
    )
    return by_step.flatten(-2), by_u.flatten(-2), by_k


def _through(weight: Tensor, x: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of a linear map in its input, weight and bias."""
    flat = grad.flatten(0, -2)
    return grad @ weight, flat.mT @ x.flatten(0, -2), flat.sum(0)


def _through_norm(
    u: Tensor, weights: Weights, eps: float, by_hidden: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients in the tokens and in the weights of layer norm and first map."""
    normal, mean, inverse = _normed(u, weights, eps)
    by_normal, by_first, by_first_bias = _through(weights.first, normal, by_hidden)
    del normal, by_hidden  # of which callers keep no name either: the peak of a step's memory is here
    by_u, by_norm, by_norm_bias = torch.ops.aten.native_layer_norm_backward(
        by_normal, u, u.shape[-1:], mean, inverse, weights.norm, weights.norm_bias, [True, True, True]
    )
    return by_u, by_norm, by_norm_bias, by_first, by_first_bias


@operator("wide_attention_step")
def _attend(
    u: Tensor, k: Tensor, weights: list[Tensor], mask: Tensor | None, read: int, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    w = Weights(*weights)
    qkv = F.linear(_normed(u, w, eps)[0], w.first, w.first_bias)
    mixed, sums = fused.attention_and_sums(qkv.unflatten(-1, (3, len(k), -1)), k, mask, read)
    mixed = mixed.flatten(-2)
    step = F.linear(mixed, w.second, w.second_bias)
    return _joined(step, u[:, :read], k), qkv, mixed, sums, step


@_attend.register_fake
def _(
    u: Tensor, k: Tensor, weights: list[Tensor], mask: Tensor | None, read: int, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    (batch, tokens, dim), width = u.shape, u.shape[2] // k.shape[0]
    out, mixed, step = (u.new_empty(batch, read, dim) for _ in range(3))
    sums = u.new_empty(batch, k.shape[0], width, width + 1)
    return out, u.new_empty(batch, tokens, 3 * dim), mixed, sums, step


@operator("wide_attention_step_backward")
def _attend_backward(
    u: Tensor,
    k: Tensor,
    weights: list[Tensor],
    mask: Tensor | None,
    kept: list[Tensor],
    grad: Tensor,
    eps: float,
) -> list[Tensor]:
    w, (qkv, mixed, sums, step), read = Weights(*weights), kept, grad.shape[1]
    by_step, by_own, by_k = _parted(step, u[:, :read], k, grad)
    by_mixed, *by_second = _through(w.second, mixed, by_step)
    del by_step
    heads = (len(k), -1)
    found = [
        *fused.attention_gradients(
            qkv.unflatten(-1, (3, *heads)), k, mask, sums, by_mixed.unflatten(-1, heads)
        )
    ]
    del by_mixed
    by_u, *by_first = _through_norm(u, w, eps, found.pop(0).flatten(-3))
    by_u[:, :read] += by_own
    return [by_u, by_k + found[0], *by_first, *by_second]


@operator("wide_feed_forward")
def _feed(u: Tensor, k: Tensor, weights: list[Tensor], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    w = Weights(*weights)
    hidden = F.linear(_normed(u, w, eps)[0], w.first, w.first_bias).relu_()
    step = F.linear(hidden, w.second, w.second_bias)
    return _joined(step, u, k), hidden, step


@_feed.register_fake
def _(u: Tensor, k: Tensor, weights: list[Tensor], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    return like(u), u.new_empty(*u.shape[:-1], Weights(*weights).first.shape[0]), like(u)


@operator("wide_feed_forward_backward")
def _feed_backward(
    u: Tensor, k: Tensor, weights: list[Tensor], kept: list[Tensor], grad: Tensor, eps: float
) -> list[Tensor]:
    w, (hidden, step) = Weights(*weights), kept
    by_step, by_own, by_k = _parted(step, u, k, grad)
    found = [*_through(w.second, hidden, by_step)]
    del by_step
    by_u, *by_first = _through_norm(u, w, eps, torch.ops.aten.threshold_backward(found.pop(0), hidden, 0))
    return [by_u.add_(by_own), by_k, *by_first, *found]


@_attend_backward.register_fake
def _(u: Tensor, k: Tensor, weights: list[Tensor], *_: object) -> list[Tensor]:
    return [like(one) for one in (u, k, *weights)]


@_feed_backward.register_fake
def _(u: Tensor, k: Tensor, weights: list[Tensor], *_: object) -> list[Tensor]:
    return [like(one) for one in (u, k, *weights)]


def _attend_setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.set_materialize_grads(False)  # what is kept is handed out for no other use
    u, k, weights, mask, ctx.read, ctx.eps = inputs
    ctx.save_for_backward(u, k, mask, *output[1:], *weights)


def _attend_vjp(ctx: Any, grad: Tensor, *others: Tensor | None) -> tuple[Any, ...]:
    u, k, mask, *rest = ctx.saved_tensors
    kept, weights = rest[:4], rest[4:]
    if torch.is_grad_enabled():
        from gyroformer.ops.attention import TokenLayout
        from gyroformer.ops.blockwise import attention_step as form

        layout = TokenLayout(mask, read=ctx.read)
        whole = functools.partial(of_all, form, eps=ctx.eps, layout=layout)
        by_u, by_k, *by_weights = fused.torch_gradients(whole, (u, k, *weights), grad)
    else:
        by_u, by_k, *by_weights = _attend_backward(u, k, weights, mask, kept, grad, ctx.eps)
    return by_u, by_k, by_weights, None, None, None


def _feed_setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.set_materialize_grads(False)
    u, k, weights, ctx.eps = inputs
    ctx.save_for_backward(u, k, *output[1:], *weights)


def _feed_vjp(ctx: Any, grad: Tensor, *others: Tensor | None) -> tuple[Any, ...]:
    u, k, *rest = ctx.saved_tensors
    kept, weights = rest[:2], rest[2:]
    if torch.is_grad_enabled():
        from gyroformer.ops.blockwise import feed_forward as form

        whole = functools.partial(of_all, form, eps=ctx.eps)
        by_u, by_k, *by_weights = fused.torch_gradients(whole, (u, k, *weights), grad)
    else:
        by_u, by_k, *by_weights = _feed_backward(u, k, weights, kept, grad, ctx.eps)
    return by_u, by_k, by_weights, None


_attend.register_autograd(_attend_vjp, setup_context=_attend_setup)
_feed.register_autograd(_feed_vjp, setup_context=_feed_setup)
