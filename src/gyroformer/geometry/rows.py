"""Functions that act row by row, as C++ kernels where these can serve and as torch elsewhere.

:func:`by_rows` puts the kernel of the same name before a torch form. The kernels (``native/``) take contiguous float32
and float64 points on the CPU, compute in double, and know their first derivatives in the points and the curvature.
Everything else is the torch form's: second derivatives, forward mode, ``vmap`` and the other function transforms,
tracing, half precision, other devices, tensor subclasses, coordinates that are not in the last dimension, shapes that
do not broadcast as outer × inner rows, and numbers so large that the kernel finds NaN.

In ``torch.compile`` the kernels of one float32 vector (``expmap0``, which every model ends with) are operators that the
code generator does not look into: the torch form computes in double, and fused it still takes several times as long.
Functions of more vectors are the torch form's there, for where a kernel finds NaN a compiled graph cannot ask it.
"""

import ctypes
import dataclasses as dc
import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import torch
from torch import Tensor

from gyroformer import compiled
from gyroformer.geometry.kernels import (
    FORMATS,
    KERNELS,
    Arguments,
    is_plain,
    outside_functorch,
    outside_transforms,
)
from gyroformer.geometry.precision import Curvature
from gyroformer.geometry.row_layout import MOST_IN, Layout, layout_of
from gyroformer.operators import constant, operator

P = ParamSpec("P")

POINTER = ctypes.c_void_p
#: layout, whether double, option, curvature, number; vectors, result
FORWARD: Arguments = [POINTER, ctypes.c_int, ctypes.c_double, *[POINTER] * (MOST_IN + 3)]
#: the same, gradient of the result; gradients of vectors, curvature, number
BACKWARD: Arguments = [POINTER, ctypes.c_int, ctypes.c_double, *[POINTER] * (2 * MOST_IN + 5)]


_every: dict[str, "Declared"] = {}


@dc.dataclass
class Declared:
    """How a torch form's kernel is called; as a decorator, it calls the kernel wherever that can serve.

    Attributes:
        vectors: how many vectors the form takes, first; a curvature ``k`` and ``dim`` are keywords.
        scalar: whether it returns a number for each row (and takes ``keepdim``).
        option: keyword that the kernel takes as a number.
        narrow: whether it takes float32 only: its inner products, in double, lose what coordinates in double have.
        number: whether a number for each row, which broadcasts as the curvature does, comes before the vectors.
        more: how many coordinates the result has more than the vectors.
        whole: whether the kernel knows the result of every row; where it does not, it says so, and the torch form is
            asked, which a compiled graph cannot.
    """

    vectors: int
    _: dc.KW_ONLY
    scalar: bool = False
    option: str | None = None
    narrow: bool = False
    number: bool = False
    more: int = 0
    whole: bool = True
    form: Callable[..., Tensor] = dc.field(init=False)
    name: str = dc.field(init=False)

    def __call__(self, form: Callable[P, Tensor]) -> Callable[P, Tensor]:
        """Return the form with the kernel of its name before it."""
        self.form, self.name = form, f"gyroformer_{form.__name__.removeprefix('_')}"
        _every[self.name] = self

        @functools.wraps(form)
        def run(*args: P.args, **kwargs: P.kwargs) -> Tensor:
            by_kernel = _by_operator if torch.compiler.is_compiling() else _by_kernel
            out = by_kernel(self, args, kwargs)
            return form(*args, **kwargs) if out is None else out

        return run

    @property
    def formats(self) -> tuple[torch.dtype, ...]:
        """The formats of points that the kernel takes."""
        return FORMATS[:1] if self.narrow else FORMATS

    @functools.cached_property
    def kernels(self) -> tuple[Callable[..., int], Callable[..., int]] | None:
        """The compiled function and its gradient, None where there is no library."""
        library = KERNELS.library()
        if library is None:
            return None
        forward, backward = library[self.name], library[f"{self.name}_backward"]
        forward.argtypes, backward.argtypes = FORWARD, BACKWARD
        forward.restype = backward.restype = ctypes.c_int
        return forward, backward


by_rows = Declared


def _by_kernel(declared: Declared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    """Return the kernel's result, None where it cannot serve."""
    vectors = args[declared.number :]
    if (
        len(vectors) != declared.vectors
        or not outside_transforms()
        or not _pointed(vectors, declared)
        or "k" not in kwargs
    ):
        return None
    first = vectors[0]
    if kwargs.get("dim", -1) not in (-1, first.dim() - 1) or declared.kernels is None:
        return None
    k = _numbers(kwargs["k"], first.dtype)
    number = _numbers(args[0], first.dtype) if declared.number else None
    if k is None or (declared.number and number is None):
        return None
    beside = torch.Size() if number is None else number.shape
    dim = kwargs.get("dim", -1)
    layout = layout_of(tuple(t.shape for t in vectors), beside, k.shape, dim, compiled.threads())
    if layout is None or layout.width + declared.more < 1:
        return None
    call = _Call(declared, layout, 0.0 if declared.option is None else kwargs[declared.option])
    inputs = k, number, *vectors
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in inputs):
        out = _Rows.apply(call, *inputs)
    else:
        out = _forward(call, *inputs)
    if call.nan:
        return None
    return out.unsqueeze(-1) if kwargs.get("keepdim", False) else out


def _pointed(tensors: Sequence[Any], declared: Declared) -> bool:
    """Return whether these are tensors that the kernel can take, of one format, with coordinates."""
    return (
        all(is_plain(t) and t.dim() > 0 for t in tensors)
        and tensors[0].dtype in declared.formats
        and all(t.dtype == tensors[0].dtype for t in tensors)
    )


def _numbers(given: Curvature, dtype: torch.dtype) -> Tensor | None:
    """Return a curvature, or another number, as a tensor; None if the kernels do not take it beside ``dtype``."""
    if isinstance(given, (int, float)):
        return _constant(float(given))
    if not is_plain(given):
        return None
    # numbers with dimensions take part in the promotion of formats
    fits = given.dtype == dtype if given.dim() else given.is_floating_point()
    return given if fits else None


@functools.lru_cache(maxsize=256)
def _constant(k: float) -> Tensor:
    return torch.tensor(k, dtype=torch.float64)


class _Call:
    """A kernel, how it is called, and whether it found NaN: products of huge numbers overflow where torch's do not."""

    __slots__ = ("declared", "layout", "nan", "option")

    def __init__(self, declared: Declared, layout: Layout, option: float) -> None:
        self.declared, self.layout, self.option, self.nan = declared, layout, option, False


def _held(
    call: _Call, k: Tensor, number: Tensor | None, vectors: Sequence[Tensor]
) -> tuple[list[Any], list[Tensor]]:
    """Return what both passes of a kernel are called with, and the tensors that it points into."""
    held = [v.detach().contiguous() for v in vectors]
    numbers = [None if one is None else one.detach().to(torch.float64).contiguous() for one in (k, number)]
    first = [call.layout.pointer, held[0].dtype == torch.float64, call.option]
    pointers = [None if one is None else one.data_ptr() for one in numbers]
    return [*first, *pointers, *_pointers(held)], [*held, *(one for one in numbers if one is not None)]


def _forward(call: _Call, k: Tensor, number: Tensor | None, *vectors: Tensor) -> Tensor:
    assert call.declared.kernels is not None
    arguments, held = _held(call, k, number, vectors)
    out = torch.empty(_shape(call), dtype=held[0].dtype, device="cpu")
    call.nan = bool(call.declared.kernels[0](*arguments, out.data_ptr()))
    return out


def _shape(call: _Call) -> tuple[int, ...]:
    layout = call.layout
    return layout.shape if call.declared.scalar else (*layout.shape, layout.width + call.declared.more)


def _backward(
    call: _Call, inputs: Sequence[Tensor | None], grad: Tensor, wanted: Sequence[bool]
) -> list[Tensor | None]:
    """Return the gradients of curvature, number and vectors, None for those not wanted."""
    assert call.declared.kernels is not None
    k, number, *vectors = inputs
    assert k is not None
    arguments, _held_till_the_end = _held(call, k, number, [v for v in vectors if v is not None])
    grad = grad.contiguous()
    found = [
        # sums over rows are in double
        torch.empty(one.shape, dtype=torch.float64 if n < 2 else one.dtype, device="cpu")
        if want and one is not None
        else None
        for n, (one, want) in enumerate(zip(inputs, wanted, strict=True))
    ]
    by_k, by_number, *by_vectors = [None if one is None else one.data_ptr() for one in found]
    missing = [None] * (MOST_IN - len(by_vectors))
    call.nan = bool(
        call.declared.kernels[1](*arguments, grad.data_ptr(), *by_vectors, *missing, by_k, by_number)
    )
    return [
        None if one is None or given is None else one.to(given.dtype)
        for one, given in zip(found, inputs, strict=True)
    ]


def _pointers(tensors: Sequence[Tensor]) -> list[int | None]:
    return [*(tensor.data_ptr() for tensor in tensors), *[None] * (MOST_IN - len(tensors))]


def _by_operator(declared: Declared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    """Return the result of the kernel as an operator of a graph that is being compiled, None where it cannot serve.

    No finite float32 vector leads such a kernel, which computes in double, to NaN.
    """
    if (
        declared.vectors != 1
        or not declared.whole
        or len(args) != 1
        or "k" not in kwargs
        or torch.compiler.is_exporting()
    ):
        return None
    u, k = args[0], kwargs["k"]
    if compiled.switched_off() or not _is_single(u) or not outside_functorch() or not _built():
        return None
    if isinstance(k, (int, float)):
        k = torch.tensor(k, dtype=torch.float64, device="cpu")  # a number for kernels, which are there
    own_rows = _is_single(k) and k.shape[-1] == 1 and k.shape[:-1] == u.shape[u.dim() - k.dim() : -1]
    last = kwargs.get("dim", -1) in (-1, u.dim() - 1)
    if not last or not (own_rows or (k.dim() == 0 and k.device.type == "cpu" and k.is_floating_point())):
        return None
    option = 0.0 if declared.option is None else kwargs[declared.option]
    out = _row(u, k, declared.name, option)
    return out.unsqueeze(-1) if kwargs.get("keepdim", False) else out


@constant
def _built() -> bool:
    return KERNELS.library() is not None


def _is_single(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dim() > 0 and x.dtype == torch.float32 and x.device.type == "cpu"


def _called(name: str, option: float, u: Tensor, k: Tensor) -> _Call | None:
    """Return how to call a kernel of one vector; None if there are no rows."""
    layout = layout_of((u.shape,), torch.Size(), k.shape, -1, compiled.threads())
    return None if layout is None else _Call(_every[name], layout, option)


@operator("row")
def _row(u: Tensor, k: Tensor, name: str, option: float) -> Tensor:
    call = _called(name, option, u, k)
    return _row_like(u, name) if call is None else _forward(call, k, None, u)


@_row.register_fake
def _(u: Tensor, k: Tensor, name: str, option: float) -> Tensor:
    return _row_like(u, name)


def _row_like(u: Tensor, name: str) -> Tensor:
    declared = _every[name]
    head, width = u.shape[:-1], u.shape[-1] + declared.more
    return u.new_empty(head if declared.scalar else (*head, width))


@operator("row_backward")
def _row_backward(u: Tensor, k: Tensor, grad: Tensor, name: str, option: float) -> tuple[Tensor, Tensor]:
    call = _called(name, option, u, k)
    if call is None:
        return torch.zeros_like(u), torch.zeros_like(k)
    by_k, _, by_u = _backward(call, (k, None, u), grad, (True, False, True))
    assert by_k is not None
    assert by_u is not None
    return by_u, by_k


@_row_backward.register_fake
def _(u: Tensor, k: Tensor, grad: Tensor, name: str, option: float) -> tuple[Tensor, Tensor]:
    return u.new_empty(u.shape), k.new_empty(k.shape)


def _row_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    u, k, ctx.name, ctx.option = inputs
    ctx.save_for_backward(u, k)


def _row_vjp(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
    u, k = ctx.saved_tensors
    if not torch.is_grad_enabled():
        return *_row_backward(u, k, grad, ctx.name, ctx.option), None, None
    call = _called(ctx.name, ctx.option, u, k)
    assert call is not None
    wanted = k.requires_grad, False, u.requires_grad
    by_k, _, by_u = _torch_gradients(call, (k, None, u), grad, wanted)
    return by_u, by_k, None, None


_row.register_autograd(_row_vjp, setup_context=_row_setup)


class _Rows(torch.autograd.Function):
    """A kernel with its gradient; the gradient of that is the torch form's."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *inputs: Tensor) -> Tensor:
        ctx.call = call
        ctx.save_for_backward(*inputs)
        return _forward(call, *inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        wanted = ctx.needs_input_grad[1:]
        if not torch.is_grad_enabled():
            found = _backward(ctx.call, ctx.saved_tensors, grad, wanted)
            if not ctx.call.nan:
                return None, *found
        with torch.enable_grad():
            return None, *_torch_gradients(ctx.call, ctx.saved_tensors, grad, wanted)


def _torch_gradients(
    call: _Call, inputs: Sequence[Tensor | None], grad: Tensor, wanted: Sequence[bool]
) -> list[Tensor | None]:
    """Return the gradients of the torch form, which can be differentiated again."""
    # views: one input may have been made from another (points from a curvature), and only the direct way is meant
    fresh = [None if one is None else one.view_as(one) for one in inputs]
    k, *arguments = fresh
    options = {} if call.declared.option is None else {call.declared.option: call.option}
    out = call.declared.form(*(one for one in arguments if one is not None), k=k, dim=-1, **options)
    leaves = [one for one, want in zip(fresh, wanted, strict=True) if want and one is not None]
    found = iter(torch.autograd.grad(out, leaves, grad, create_graph=True))
    return [next(found) if want else None for want in wanted]
