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
import functools
import math
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
from gyroformer.operators import constant, operator

P = ParamSpec("P")

#: vectors that a kernel can take
MOST_IN = 3
POINTER = ctypes.c_void_p
FORWARD: Arguments = [POINTER, ctypes.c_int, ctypes.c_double, *[POINTER] * (MOST_IN + 2)]
BACKWARD: Arguments = [POINTER, ctypes.c_int, ctypes.c_double, *[POINTER] * (2 * MOST_IN + 3)]


class Layout(ctypes.Structure):
    """How rows of operands belong together (``Layout`` of ``native/rows.hpp``); the curvature is the last operand."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("outer", "inner", "width", "threads")),
        *((name, ctypes.c_int64 * (MOST_IN + 1)) for name in ("outer_stride", "inner_stride", "rows")),
    ]

    def __init__(self, shape: tuple[int, ...], width: int, threads: int) -> None:
        super().__init__(width=width, threads=threads)
        self.shape = shape
        self.pointer = ctypes.addressof(self)


class Declared:
    """A torch form and how its kernel is called.

    Args:
        form: the torch form; its name is the kernel's.
        vectors: how many vectors it takes, first.
        scalar: whether it returns a number for each row.
        option: keyword that the kernel takes as a number.
        narrow: whether it takes float32 only.
    """

    def __init__(
        self,
        form: Callable[..., Tensor],
        vectors: int,
        *,
        scalar: bool = False,
        option: str | None = None,
        narrow: bool = False,
    ) -> None:
        self.form, self.vectors, self.scalar, self.option = form, vectors, scalar, option
        self.formats = FORMATS[:1] if narrow else FORMATS
        self.name = f"gyroformer_{form.__name__.removeprefix('_')}"

    @functools.cached_property
    def kernels(self) -> tuple[Callable[..., None], Callable[..., None]] | None:
        """The compiled function and its gradient, None where there is no library."""
        library = KERNELS.library()
        if library is None:
            return None
        forward, backward = library[self.name], library[f"{self.name}_backward"]
        forward.argtypes, backward.argtypes = FORWARD, BACKWARD
        forward.restype = backward.restype = None
        return forward, backward


_every: dict[str, Declared] = {}


def by_rows(
    vectors: int, *, scalar: bool = False, option: str | None = None, narrow: bool = False
) -> Callable[[Callable[P, Tensor]], Callable[P, Tensor]]:
    """Return a decorator that calls the C++ kernel of a torch form's name wherever that can serve.

    Args:
        vectors: how many vectors the form takes, first; a curvature ``k`` and ``dim`` are keywords.
        scalar: whether it returns a number for each row (and takes ``keepdim``).
        option: keyword that the kernel takes as a number.
        narrow: whether it takes float32 only: its inner products, in double, lose what coordinates in double have.
    """

    def decorate(form: Callable[P, Tensor]) -> Callable[P, Tensor]:
        declared = Declared(form, vectors, scalar=scalar, option=option, narrow=narrow)
        _every[declared.name] = declared

        @functools.wraps(form)
        def run(*args: P.args, **kwargs: P.kwargs) -> Tensor:
            by_kernel = _by_operator if torch.compiler.is_compiling() else _by_kernel
            out = by_kernel(declared, args, kwargs)
            return form(*args, **kwargs) if out is None else out

        return run

    return decorate


def _by_kernel(declared: Declared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    """Return the kernel's result, None where it cannot serve."""
    if (
        len(args) != declared.vectors
        or not outside_transforms()
        or not _pointed(args, declared)
        or "k" not in kwargs
    ):
        return None
    first = args[0]
    if kwargs.get("dim", -1) not in (-1, first.dim() - 1) or declared.kernels is None:
        return None
    k = _curvature(kwargs["k"], first.dtype)
    if k is None:
        return None
    layout = _layout(tuple(t.shape for t in args), k.shape, kwargs.get("dim", -1), compiled.threads())
    if layout is None:
        return None
    option = 0.0 if declared.option is None else kwargs[declared.option]
    call = declared, layout, option
    if torch.is_grad_enabled() and (k.requires_grad or any(t.requires_grad for t in args)):
        out = _Rows.apply(call, k, *args)
    else:
        out = _forward(call, k, args)
    if _has_nan(out.detach()):
        return None
    return out.unsqueeze(-1) if kwargs.get("keepdim", False) else out


def _pointed(tensors: Sequence[Any], declared: Declared) -> bool:
    """Return whether these are tensors that the kernel can take, of one format, with coordinates."""
    return (
        all(is_plain(t) and t.dim() > 0 for t in tensors)
        and tensors[0].dtype in declared.formats
        and all(t.dtype == tensors[0].dtype for t in tensors)
    )


def _curvature(k: Curvature, dtype: torch.dtype) -> Tensor | None:
    """Return the curvature as a tensor; None if it is none that the kernels take beside points of ``dtype``."""
    if isinstance(k, (int, float)):
        return _constant(float(k))
    if not is_plain(k):
        return None
    # a curvature with dimensions takes part in the promotion of formats
    fits = k.dtype == dtype if k.dim() else k.is_floating_point()
    return k if fits else None


@functools.lru_cache(maxsize=256)
def _constant(k: float) -> Tensor:
    return torch.tensor(k, dtype=torch.float64)


@functools.lru_cache(maxsize=1024)
def _layout(shapes: tuple[torch.Size, ...], curvature: torch.Size, dim: int, threads: int) -> Layout | None:
    """Return how the rows of points and of the curvature belong together, None if not as outer × inner rows."""
    width = shapes[0][-1]
    one_width = all(shape[-1] == width for shape in shapes) and (not curvature or curvature[-1] == 1)
    if not one_width or (dim >= 0 and len({len(shape) for shape in shapes}) > 1):
        return None
    heads = [*(shape[:-1] for shape in shapes), *[torch.Size()] * (MOST_IN - len(shapes)), curvature[:-1]]
    padded = [(*(1,) * (max(map(len, heads)) - len(head)), *head) for head in heads]
    # not torch.broadcast_shapes, whose first call imports for seconds; what does not broadcast is torch's to refuse
    shape = tuple(max(sizes) for sizes in zip(*padded, strict=True))
    if 0 in (*shape, width) or any(0 in head for head in heads):
        return None
    for split in range(len(shape), -1, -1):
        outer, inner = shape[:split], shape[split:]
        if all(_all_or_none(p[:split], outer) and _all_or_none(p[split:], inner) for p in padded):
            break
    else:
        return None
    layout = Layout(shape, width, threads)
    layout.outer, layout.inner = math.prod(outer), math.prod(inner)
    for operand, head in enumerate(padded):
        own = math.prod(head[split:])
        layout.inner_stride[operand] = int(own == layout.inner > 1)
        layout.outer_stride[operand] = own if math.prod(head[:split]) == layout.outer > 1 else 0
        layout.rows[operand] = math.prod(head)
    return layout


def _all_or_none(part: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    return part == whole or all(size == 1 for size in part)


Call = tuple[Declared, Layout, float]


def _forward(call: Call, k: Tensor, vectors: Sequence[Tensor]) -> Tensor:
    declared, layout, option = call
    assert declared.kernels is not None
    held = [v.detach().contiguous() for v in vectors]
    curvature = k.detach().to(torch.float64).contiguous()
    shape = layout.shape if declared.scalar else (*layout.shape, layout.width)
    out = torch.empty(shape, dtype=held[0].dtype, device="cpu")
    declared.kernels[0](
        layout.pointer,
        held[0].dtype == torch.float64,
        option,
        curvature.data_ptr(),
        *_pointers(held),
        out.data_ptr(),
    )
    return out


def _backward(
    call: Call, k: Tensor, vectors: Sequence[Tensor], grad: Tensor, wanted: Sequence[bool]
) -> list[Tensor | None]:
    """Return the gradients of the curvature and the vectors, None for those not wanted."""
    declared, layout, option = call
    assert declared.kernels is not None
    held = [v.detach().contiguous() for v in vectors]
    curvature = k.detach().to(torch.float64).contiguous()
    by_k = torch.empty(k.shape, dtype=torch.float64, device="cpu") if wanted[0] else None
    by_vectors = [
        torch.empty(v.shape, dtype=v.dtype, device="cpu") if want else None
        for v, want in zip(vectors, wanted[1:], strict=True)
    ]
    grad = grad.contiguous()
    declared.kernels[1](
        *(layout.pointer, held[0].dtype == torch.float64, option, curvature.data_ptr(), *_pointers(held)),
        *(grad.data_ptr(), *_pointers(by_vectors), None if by_k is None else by_k.data_ptr()),
    )
    return [None if by_k is None else by_k.to(k.dtype), *by_vectors]


def _pointers(tensors: Sequence[Tensor | None]) -> list[int | None]:
    found = [None if tensor is None else tensor.data_ptr() for tensor in tensors]
    return found + [None] * (MOST_IN - len(found))


def _by_operator(declared: Declared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    """Return the result of the kernel as an operator of a graph that is being compiled, None where it cannot serve.

    No finite float32 vector leads such a kernel, which computes in double, to NaN.
    """
    if declared.vectors != 1 or len(args) != 1 or "k" not in kwargs or torch.compiler.is_exporting():
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


def _called(name: str, option: float, u: Tensor, k: Tensor) -> Call | None:
    """Return how to call a kernel of one vector; None if there are no rows."""
    layout = _layout((u.shape,), k.shape, -1, compiled.threads())
    return None if layout is None else (_every[name], layout, option)


@operator("row")
def _row(u: Tensor, k: Tensor, name: str, option: float) -> Tensor:
    call = _called(name, option, u, k)
    return _row_like(u, name) if call is None else _forward(call, k, [u])


@_row.register_fake
def _(u: Tensor, k: Tensor, name: str, option: float) -> Tensor:
    return _row_like(u, name)


def _row_like(u: Tensor, name: str) -> Tensor:
    return u.new_empty(u.shape[:-1] if _every[name].scalar else u.shape)


@operator("row_backward")
def _row_backward(u: Tensor, k: Tensor, grad: Tensor, name: str, option: float) -> tuple[Tensor, Tensor]:
    call = _called(name, option, u, k)
    if call is None:
        return torch.zeros_like(u), torch.zeros_like(k)
    by_k, by_u = _backward(call, k, [u], grad, (True, True))
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
    by_k, by_u = _torch_gradients(call, (k, u), grad, (k.requires_grad, u.requires_grad))
    return by_u, by_k, None, None


_row.register_autograd(_row_vjp, setup_context=_row_setup)


class _Rows(torch.autograd.Function):
    """A kernel with its gradient; the gradient of that is the torch form's."""

    @staticmethod
    def forward(ctx: Any, call: Call, k: Tensor, *vectors: Tensor) -> Tensor:
        ctx.call = call
        ctx.save_for_backward(k, *vectors)
        return _forward(call, k, vectors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        k, *vectors = ctx.saved_tensors
        wanted = ctx.needs_input_grad[1:]
        if not torch.is_grad_enabled():
            found = _backward(ctx.call, k, vectors, grad, wanted)
            if not any(one is not None and _has_nan(one) for one in found):
                return None, *found
        with torch.enable_grad():
            return None, *_torch_gradients(ctx.call, (k, *vectors), grad, wanted)


def _has_nan(result: Tensor) -> bool:
    """Return whether the torch form is to be asked: products of huge numbers overflow in a kernel where its do not.

    A sum says so in one pass; that it overflows itself costs time, not a result.
    """
    return bool(result.sum().isnan())


def _torch_gradients(
    call: Call, inputs: Sequence[Tensor], grad: Tensor, wanted: Sequence[bool]
) -> list[Tensor | None]:
    """Return the gradients of the torch form, which can be differentiated again."""
    declared, _, option = call
    # views: one input may have been made from another (points from a curvature), and only the direct way is meant
    k, *vectors = fresh = [one.view_as(one) for one in inputs]
    options = {} if declared.option is None else {declared.option: option}
    out = declared.form(*vectors, k=k, dim=-1, **options)
    leaves = [one for one, want in zip(fresh, wanted, strict=True) if want]
    found = iter(torch.autograd.grad(out, leaves, grad, create_graph=True))
    return [next(found) if want else None for want in wanted]
