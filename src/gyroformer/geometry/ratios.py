"""Functions of each number, as C++ kernels where these can serve and as torch elsewhere.

:func:`by_kernel` puts the kernel of the same name before a torch form: one pass that leaves the derivative beside the
value, in place of the two dozen operations that choosing between series and closed forms takes.
"""

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gyroformer import compiled
from gyroformer.geometry.kernels import FORMATS, KERNELS, Arguments, is_plain, outside_transforms

ARGUMENTS: Arguments = [ctypes.c_int, ctypes.c_int64, ctypes.c_int, *[ctypes.c_void_p] * 4]

Form = Callable[[Tensor], Any]


@functools.cache
def _kernel(name: str) -> Callable[..., None] | None:
    library = KERNELS.library()
    if library is None:
        return None
    found = library[f"gyroformer_{name}"]
    found.argtypes, found.restype = ARGUMENTS, None
    return found


def _usable(name: str, z: Tensor) -> bool:
    return (
        not torch.compiler.is_compiling()
        and outside_transforms()
        and is_plain(z)
        and z.dtype in FORMATS
        and z.numel() > 0
        and _kernel(name) is not None
    )


def _evaluate(name: str, z: Tensor, pair: bool) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the value, its derivative, and the second value of a pair."""
    kernel = _kernel(name)
    assert kernel is not None
    held = z.detach().contiguous()
    value, slope = torch.empty_like(held), torch.empty_like(held)
    other = torch.empty_like(held) if pair else None
    sizes = held.dtype == torch.float64, held.numel(), compiled.threads()
    kernel(*sizes, *(None if t is None else t.data_ptr() for t in (held, value, slope, other)))
    return value, slope, other


def by_kernel(form: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return a function of each number that calls the C++ kernel of the form's name wherever that can serve."""
    name = form.__name__

    @functools.wraps(form)
    def run(z: Tensor) -> Tensor:
        if not _usable(name, z):
            return form(z)
        if torch.is_grad_enabled() and z.requires_grad:
            return _One.apply(z, name, form)
        return _evaluate(name, z, False)[0]

    return run


def sine_and_cosine_by_kernel(
    form: Callable[[Tensor], tuple[Tensor, Tensor]],
) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Return the same for the pair sin √z/√z and cos √z, of which the second falls by half the first."""
    name = form.__name__

    @functools.wraps(form)
    def run(z: Tensor) -> tuple[Tensor, Tensor]:
        if not _usable(name, z):
            return form(z)
        if torch.is_grad_enabled() and z.requires_grad:
            return _Pair.apply(z, name, form)
        sine, _, cosine = _evaluate(name, z, True)
        assert cosine is not None
        return sine, cosine

    return run


def _torch_gradient(form: Form, z: Tensor, grads: tuple[Tensor, ...]) -> Tensor:
    """Return the gradient of the torch form, which can be differentiated again."""
    with compiled.torch_forms():
        fresh = z.view_as(z)
        values = form(fresh)
        return torch.autograd.grad(values, fresh, grads, create_graph=True)[0]


class _One(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, name: str, form: Form) -> Tensor:
        value, slope, _ = _evaluate(name, z, False)
        ctx.form = form
        ctx.save_for_backward(z, slope)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        z, slope = ctx.saved_tensors
        again = torch.is_grad_enabled()
        return _torch_gradient(ctx.form, z, (grad,)) if again else grad * slope, None, None


class _Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, name: str, form: Form) -> tuple[Tensor, Tensor]:
        sine, slope, cosine = _evaluate(name, z, True)
        assert cosine is not None
        ctx.form = form
        ctx.save_for_backward(z, sine, slope)
        return sine, cosine

    @staticmethod
    def backward(ctx: Any, by_sine: Tensor, by_cosine: Tensor) -> tuple[Tensor, None, None]:
        z, sine, slope = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _torch_gradient(ctx.form, z, (by_sine, by_cosine)), None, None
        return torch.addcmul(by_sine * slope, by_cosine, sine, value=-0.5), None, None
