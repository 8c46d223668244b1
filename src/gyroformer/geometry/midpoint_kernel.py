"""The C++ kernel of the weighted midpoint, and when it can serve (see :mod:`gyroformer.geometry.kernels`)."""

import ctypes
import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gyroformer import compiled
from gyroformer.geometry.kernels import FORMATS, KERNELS, is_plain, outside_transforms
from gyroformer.geometry.precision import Curvature

Form = Callable[..., Tensor]
POINTER, SIZE = ctypes.c_void_p, ctypes.c_int64


def by_kernel(
    xs: Tensor, weight: Tensor | None, *, k: Curvature, dims: list[int], dim: int, form: Form
) -> Tensor | None:
    """Return the midpoints over ``dims``, which are kept with size 1; None where the kernel cannot serve.

    Args:
        xs: points.
        weight: broadcasts to the points' shape with size 1 at ``dim``; None for all 1.
        k: curvature; one that differs between points of one midpoint is the torch form's.
        dims: the dimensions to reduce, not negative.
        dim: that of the coordinates, not negative.
        form: the torch form, for second derivatives.
    """
    if (
        torch.compiler.is_compiling()
        or not outside_transforms()
        or not _pointed(xs, weight)
        or _kernels() is None
    ):
        return None
    kept = [d for d in range(xs.dim()) if d != dim and d not in dims]
    curvature = _curvatures(k, xs, kept)
    if curvature is None:
        return None
    outer, number = (math.prod(xs.shape[d] for d in part) for part in (kept, dims))
    order = [*kept, *dims, dim]
    points = xs.permute(order).reshape(outer, number, xs.shape[dim])
    if weight is not None:
        weight = weight.expand_as(xs.narrow(dim, 0, 1)).permute(order).reshape(outer, number)
    out: Tensor = _Midpoint.apply(form, points, weight, curvature)
    shape = [*(xs.shape[d] for d in kept), *[1] * len(dims), xs.shape[dim]]
    return out.reshape(shape).permute([order.index(d) for d in range(xs.dim())])


def _pointed(xs: Tensor, weight: Tensor | None) -> bool:
    fits = is_plain(xs) and xs.dtype in FORMATS and xs.numel() > 0
    return fits and (weight is None or (is_plain(weight) and weight.dtype == xs.dtype))


def _curvatures(k: Curvature, xs: Tensor, kept: list[int]) -> Tensor | None:
    """Return a curvature in double for each midpoint; None if ``k`` is none that the kernel takes."""
    sizes = [xs.shape[d] for d in kept]
    if isinstance(k, (int, float)):
        return torch.full((math.prod(sizes),), float(k), dtype=torch.float64, device=xs.device)
    if (
        not is_plain(k)
        or k.dim() > xs.dim()
        or not (k.dtype == xs.dtype if k.dim() else k.is_floating_point())
    ):
        return None
    shape = (*(1,) * (xs.dim() - k.dim()), *k.shape)
    if any(size != 1 and (d not in kept or size != xs.shape[d]) for d, size in enumerate(shape)):
        return None
    return k.to(torch.float64).reshape([shape[d] for d in kept]).expand(sizes).reshape(-1)


@functools.cache
def _kernels() -> tuple[Callable[..., None], Callable[..., None]] | None:
    library = KERNELS.library()
    if library is None:
        return None
    forward, backward = library["gyroformer_midpoint"], library["gyroformer_midpoint_backward"]
    for function, pointers in ((forward, 4), (backward, 7)):
        function.argtypes = [ctypes.c_int, *[POINTER] * pointers, *[SIZE] * 3, ctypes.c_int]
        function.restype = None
    return forward, backward


def _call(which: int, points: Tensor, *tensors: Tensor | None) -> None:
    found = _kernels()
    assert found is not None
    pointers = [None if one is None else one.data_ptr() for one in (points, *tensors)]
    found[which](points.dtype == torch.float64, *pointers, *points.shape, compiled.threads())


class _Midpoint(torch.autograd.Function):
    """Midpoints ``(outer, width)`` of points ``(outer, number, width)``; the gradient's own is the torch form's."""

    @staticmethod
    def forward(ctx: Any, form: Form, points: Tensor, weight: Tensor | None, k: Tensor) -> Tensor:
        ctx.form = form
        ctx.save_for_backward(points, weight, k)
        out = points.new_empty(points.shape[0], points.shape[2])
        _call(0, *_contiguous(points, weight, k), out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        points, weight, k = ctx.saved_tensors
        if not torch.is_grad_enabled():
            found = [None if one is None else one.new_empty(one.shape) for one in (points, weight, k)]
            _call(1, *_contiguous(points, weight, k, grad), *found)
            return None, *found
        return None, *_torch_gradients(ctx.form, (points, weight, k), grad, ctx.needs_input_grad[1:])


def _contiguous(points: Tensor, *others: Tensor | None) -> Any:
    return [None if one is None else one.detach().contiguous() for one in (points, *others)]


def _torch_gradients(
    form: Form, inputs: tuple[Tensor, Tensor | None, Tensor], grad: Tensor, wanted: tuple[bool, ...]
) -> list[Tensor | None]:
    # views: one input may have been made from another, and only the direct way is meant
    points, weight, k = fresh = [None if one is None else one.view_as(one) for one in inputs]
    assert points is not None
    assert k is not None
    every = points.new_ones(()) if weight is None else weight.unsqueeze(-1)
    out = form(points, every, k=k[:, None, None], dims=[1], dim=2).squeeze(1).to(points.dtype)
    leaves = [one for one, want in zip(fresh, wanted, strict=True) if want and one is not None]
    found = iter(torch.autograd.grad(out, leaves, grad, create_graph=True))
    return [
        next(found) if want and one is not None else None for one, want in zip(fresh, wanted, strict=True)
    ]
