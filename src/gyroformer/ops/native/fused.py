"""The C++ kernels as torch operators: they differentiate, compile, and export.

A kernel knows its first derivative. Where that is to be differentiated again (``create_graph``), it is taken from the
torch form; forward mode needs the torch forms altogether, which ``torch_forms()`` selects.
"""

import functools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from gyroformer.compiled import switched_off, torch_forms
from gyroformer.geometry.kernels import outside_functorch
from gyroformer.operators import constant, operator
from gyroformer.ops.native import build, calls

#: the two passes of attention over the tokens; the sums over all tokens lie between them
FIRST, SECOND = 1, 2


@constant
def _available() -> bool:
    return not switched_off() and build.library() is not None


def usable(*tensors: Tensor) -> bool:
    """Return whether the kernels can take these tensors: float32 on the CPU, outside autocast and functorch."""
    plain = all(t.dtype == torch.float32 and t.device.type == "cpu" for t in tensors)
    return plain and not torch.is_autocast_enabled("cpu") and outside_functorch() and _available()


def call(name: str, tensors: Sequence[Tensor | None], sizes: list[int], *, passes: int | None = None) -> None:
    """Call a kernel with pointers to contiguous tensors, and with sizes, the last two of which are heads and width.

    ``passes`` are those of attention.
    """
    *long, heads, width = sizes
    which = [] if passes is None else [passes]
    calls.call(name, tensors, long, [*which, heads, width])


@operator("attention")
def _attention(qkv: Tensor, k: Tensor, mask: Tensor | None, read: int) -> tuple[Tensor, Tensor]:
    batch, tokens, _, heads, width = qkv.shape
    out = qkv.new_empty(batch, read, heads, width)
    sums = qkv.new_empty(batch, heads, width, width + 1)
    sizes = [batch, tokens, read, heads, width]
    tensors = [qkv.contiguous(), k.contiguous(), as_bytes(mask), out, sums]
    call("gyroformer_attention", tensors, sizes, passes=FIRST | SECOND)
    return out, sums


@_attention.register_fake
def _(qkv: Tensor, k: Tensor, mask: Tensor | None, read: int) -> tuple[Tensor, Tensor]:
    batch, _, _, heads, width = qkv.shape
    return qkv.new_empty(batch, read, heads, width), qkv.new_empty(batch, heads, width, width + 1)


@operator("attention_backward")
def _attention_backward(
    qkv: Tensor, k: Tensor, mask: Tensor | None, sums: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    batch, tokens, _, heads, width = qkv.shape
    grad_qkv, grad_k = torch.empty_like(qkv, memory_format=torch.contiguous_format), torch.zeros_like(k)
    between = qkv.new_empty(heads, width, width + 1), qkv.new_empty(grad.shape[1], heads)
    inputs = [qkv.contiguous(), k.contiguous(), as_bytes(mask), sums, grad.contiguous()]
    sizes = [batch, tokens, grad.shape[1], heads, width]
    call("gyroformer_attention_backward", [*inputs, grad_qkv, grad_k, *between], sizes, passes=FIRST | SECOND)
    return grad_qkv, grad_k


@_attention_backward.register_fake
def _(qkv: Tensor, k: Tensor, mask: Tensor | None, sums: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(qkv, memory_format=torch.contiguous_format), torch.empty_like(k)


def torch_gradients(
    form: Callable[..., Tensor], inputs: tuple[Tensor, ...], grad: Tensor
) -> tuple[Tensor | None, ...]:
    """Return the gradients of a torch form, which can be differentiated again."""
    # views: one input may have been made from another (points from a curvature), and only the direct way is meant
    fresh = tuple(one.view_as(one) for one in inputs)
    wanted = [one for one in fresh if one.requires_grad]
    with torch_forms():
        found = iter(torch.autograd.grad(form(*fresh), wanted, grad, create_graph=True))
    return tuple(next(found) if one.requires_grad else None for one in fresh)


def _attention_setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    qkv, k, mask, ctx.read = inputs
    ctx.save_for_backward(qkv, k, mask, output[1])


def _attention_vjp(ctx, grad: Tensor, grad_sums: Tensor | None) -> tuple[Tensor, Tensor, None, None]:  # type: ignore[no-untyped-def]
    qkv, k, mask, sums = ctx.saved_tensors
    if torch.is_grad_enabled():
        from gyroformer.ops.attention import TokenLayout
        from gyroformer.ops.blockwise import tangent_attention

        form = functools.partial(tangent_attention, kind="linear", layout=TokenLayout(mask, read=ctx.read))
        found = torch_gradients(form, (qkv, k), grad)
        return *found, None, None  # type: ignore[return-value]
    grad_qkv, grad_k = _attention_backward(qkv, k, mask, sums, grad)
    return grad_qkv, grad_k, None, None


_attention.register_autograd(_attention_vjp, setup_context=_attention_setup)


@operator("gyro_sum")
def _gyro_sum(p: Tensor, x: Tensor, k: Tensor) -> Tensor:
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    call("gyroformer_sum", [p.contiguous(), x.contiguous(), k.contiguous(), out], _rows(x))
    return out


@_gyro_sum.register_fake
def _(p: Tensor, x: Tensor, k: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@operator("gyro_sum_backward")
def _gyro_sum_backward(p: Tensor, x: Tensor, k: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    grad_p, grad_x, grad_k = (torch.empty_like(t, memory_format=torch.contiguous_format) for t in (p, x, k))
    inputs: list[Tensor | None] = [t.contiguous() for t in (p, x, k, grad)]
    call("gyroformer_sum_backward", [*inputs, grad_p, grad_x, grad_k], _rows(x))
    return grad_p, grad_x, grad_k


@_gyro_sum_backward.register_fake
def _(p: Tensor, x: Tensor, k: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return tuple(torch.empty_like(t, memory_format=torch.contiguous_format) for t in (p, x, k))  # type: ignore[return-value]


def _sum_setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    ctx.save_for_backward(*inputs)


def _sum_vjp(ctx, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # type: ignore[no-untyped-def]
    p, x, k = ctx.saved_tensors
    if torch.is_grad_enabled():
        from gyroformer.ops.blockwise import tangent_sum

        return torch_gradients(tangent_sum, (p, x, k), grad)  # type: ignore[return-value]
    return _gyro_sum_backward(p, x, k, grad)


_gyro_sum.register_autograd(_sum_vjp, setup_context=_sum_setup)


def _rows(x: Tensor) -> list[int]:
    heads, width = x.shape[-2:]
    return [x.numel() // (heads * width), heads, width]


def as_bytes(mask: Tensor | None) -> Tensor | None:
    """Return a mask as the kernels read it."""
    return None if mask is None else mask.contiguous().view(torch.uint8)


def attention(qkv: Tensor, k: Tensor, mask: Tensor | None, read: int | None = None) -> Tensor:
    """Return linear attention as tangent vectors ``(B, R, H, d)``.

    Args:
        qkv: queries, keys and values in the tangent space, ``(B, N, 3, H, d)``.
        k: curvatures ``(H,)``.
        mask: ``(B, N)``, True for real tokens.
        read: R, how many tokens, the first ones, are asked for; None for all N.
    """
    return _attention(qkv, k, mask, qkv.shape[1] if read is None else read)[0]


def gyro_sum(p: Tensor, x: Tensor, k: Tensor) -> Tensor:
    """Return the Möbius sum p ⊕ x of points given and returned as tangent vectors ``(..., H, d)``; ``k (H,)``."""
    return _gyro_sum(p, x, k)


#: what the operators of wide blocks are made of: attention with the sums that its gradient needs, and the gradients
attention_and_sums, attention_gradients, gyro_sum_gradients = (
    _attention,
    _attention_backward,
    _gyro_sum_backward,
)
