"""The C++ kernel of Möbius matrices, and when it can serve (see :mod:`gyroformer.geometry.kernels`)."""

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gyroformer import compiled
from gyroformer.geometry.kernels import FORMATS, KERNELS, is_plain, outside_transforms
from gyroformer.geometry.precision import Curvature

Form = Callable[..., Tensor]
POINTER, SIZE, FLAG = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int


def by_kernel(m: Tensor, x: Tensor, *, k: Curvature, dim: int, form: Form) -> Tensor | None:
    """Return the images of x under one matrix, None where the kernel cannot serve.

    Args:
        m: matrix ``(e, d)``.
        x: points ``(..., d)``.
        k: one curvature, or one for each point.
        dim: that of the coordinates.
        form: the torch form, for second derivatives and for numbers so large that the kernel may find NaN.
    """
    if (
        torch.compiler.is_compiling()
        or not outside_transforms()
        or not _pointed(m, x, dim)
        or _kernels() is None
    ):
        return None
    if isinstance(k, (int, float)):
        k = torch.tensor(float(k), dtype=torch.float64, device="cpu")
    one = is_plain(k) and k.dim() == 0 and k.is_floating_point()
    if not one and not (is_plain(k) and k.dtype == x.dtype and k.shape == (*x.shape[:-1], 1)):
        return None
    said: list[bool] = []
    if torch.is_grad_enabled() and any(t.requires_grad for t in (m, x, k)):
        out: Tensor = _MatVec.apply(form, said, m, x, k)
    else:
        out = _forward(said, m, x, k)
    return None if said[0] else out


def _pointed(m: Tensor, x: Tensor, dim: int) -> bool:
    """Return whether these are a matrix and points that the kernel can take."""
    return (
        is_plain(m)
        and is_plain(x)
        and x.dtype in FORMATS
        and m.dtype == x.dtype
        and m.dim() == 2
        and x.dim() > 0
        and dim in (-1, x.dim() - 1)
        and m.shape[1] == x.shape[-1]
        and m.numel() > 0
        and x.numel() > 0
    )


@functools.cache
def _kernels() -> tuple[Callable[..., int], Callable[..., int]] | None:
    library = KERNELS.library()
    if library is None:
        return None
    forward, backward = library["gyroformer_matvec"], library["gyroformer_matvec_backward"]
    for function, pointers in ((forward, 4), (backward, 7)):
        function.argtypes = [FLAG, FLAG, *[SIZE] * 4, *[POINTER] * pointers]
        function.restype = ctypes.c_int
    return forward, backward


def _call(which: int, m: Tensor, x: Tensor, k: Tensor, *others: Tensor | None) -> bool:
    """Call a kernel; return whether it may have found NaN."""
    found = _kernels()
    assert found is not None
    held = [
        k.detach().to(torch.float64).contiguous(),
        m.detach().to(torch.float64).contiguous(),
        x.detach().contiguous(),
    ]
    pointers = [None if one is None else one.data_ptr() for one in (*held, *others)]
    sizes = x.numel() // x.shape[-1], x.shape[-1], m.shape[0], compiled.threads()
    return bool(found[which](x.dtype == torch.float64, k.dim() > 0, *sizes, *pointers))


def _forward(said: list[bool], m: Tensor, x: Tensor, k: Tensor) -> Tensor:
    out = torch.empty((*x.shape[:-1], m.shape[0]), dtype=x.dtype, device="cpu")
    said.append(_call(0, m, x, k, out))
    return out


class _MatVec(torch.autograd.Function):
    """The kernel with its gradient; the gradient of that is the torch form's."""

    @staticmethod
    def forward(ctx: Any, form: Form, said: list[bool], m: Tensor, x: Tensor, k: Tensor) -> Tensor:
        ctx.form = form
        ctx.save_for_backward(m, x, k)
        return _forward(said, m, x, k)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        inputs, wanted = ctx.saved_tensors, ctx.needs_input_grad[2:]
        if not torch.is_grad_enabled():
            m, x, k = inputs
            formats = torch.float64, x.dtype, torch.float64  # sums over points are in double
            by_m, by_x, by_k = found = [
                torch.empty(one.shape, dtype=dtype, device="cpu") if want else None
                for one, dtype, want in zip(inputs, formats, wanted, strict=True)
            ]
            if not _call(1, m, x, k, grad.contiguous(), by_x, by_m, by_k):
                return (
                    None,
                    None,
                    *(
                        None if one is None else one.to(given.dtype)
                        for one, given in zip(found, inputs, strict=True)
                    ),
                )
        with torch.enable_grad():
            return None, None, *_torch_gradients(ctx.form, inputs, grad, wanted)


def _torch_gradients(
    form: Form, inputs: tuple[Tensor, ...], grad: Tensor, wanted: tuple[bool, ...]
) -> list[Tensor | None]:
    # views: one input may have been made from another, and only the direct way is meant
    m, x, k = fresh = [one.view_as(one) for one in inputs]
    out = form(m, x, k=k, dim=-1)
    leaves = [one for one, want in zip(fresh, wanted, strict=True) if want]
    found = iter(torch.autograd.grad(out, leaves, grad, create_graph=True))
    return [next(found) if want else None for want in wanted]
