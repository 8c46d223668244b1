"""A device that is not there: tensors with real values that say "cuda" and refuse to meet tensors of the CPU.

No machine that runs the tests has a GPU, so what would fail on one has to fail without one. Inside ``stand_in()``

* every tensor that is asked for on ``"cuda"`` is a ``StandIn``. For torch's C++ it is a tensor on the device "meta", as
  FakeTensor has it: ``options()``, autograd and ``to`` take it for one that is not on the CPU, and nothing initialises
  CUDA. For Python it is on ``cuda:0``.
* beside its shape it holds an ordinary CPU tensor. An operator on stand-ins runs on these, so that values, gradients,
  steps of Adam and metrics are real, and can be compared with a run on the CPU. No FakeTensor is
  needed.
* an operator that gets both a stand-in and a CPU tensor is refused, with the message of CUDA, but for what CUDA allows:
  a CPU tensor without dimensions as an operand, CPU indices in ``x[...]``, and copies.
* the library's C++ kernels are refused: they read pointers to memory of the CPU.
* reading a value (``item``, ``tolist``, ``float``, a branch) is allowed, as on a GPU; ``numpy()`` is refused before
  ``cpu()``.

Two modes are at work. ``_Named`` (a function mode) sees calls of Python and changes the device "cuda" in their
arguments to "meta": a CPU-only torch would refuse the name. ``_Computed`` (a dispatch mode) sees every operator below
autograd.

What it is not: random numbers of the device come from the CPU's generator, in the same stream, and the random states of
CUDA are made up. A sparse tensor is computed in its own layout, but operators that CUDA has not for a sparse layout, or
not for a dtype, are not refused. Sums have the CPU's order. ``torch.device("meta")`` inside the block makes stand-ins
as well. ``torch.compile`` is not for them.
"""

import contextlib
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

NAME = "cuda"
DEVICE = torch.device(NAME, 0)
_META = torch.device("meta")
_aten = torch.ops.aten

#: operators that take tensors of two devices
_BY_TARGET = {_aten.copy_.default, _aten.copy.default}
_COPIES = {*_BY_TARGET, _aten._to_copy.default}
#: operators whose first argument says the device, and whose indices may lie on the CPU
_INDEXING = {
    _aten.index.Tensor,
    _aten.index_put.default,
    _aten.index_put_.default,
    _aten._index_put_impl_.default,
    _aten._unsafe_index.Tensor,
}
#: operators that are not called pointwise and take a CPU tensor without dimensions as a value
_WITH_SCALARS = {_aten.fill_.Tensor, _aten.index_fill.int_Tensor, _aten.index_fill_.int_Tensor}
#: functions that read Python values: made on the CPU and moved, for a meta tensor would have no values
_FROM_VALUES = {torch.tensor, torch.as_tensor, torch.asarray}
_WITH_LISTS = {Tensor.__getitem__, Tensor.__setitem__}
#: functions whose arguments without a name matter here
_WATCHED = {*_WITH_LISTS, Tensor.to, Tensor.cuda, Tensor.new_tensor}


class StandIn(Tensor):
    """A tensor of the stand-in device; ``held`` is the CPU tensor with its values."""

    held: Tensor

    @staticmethod
    def __new__(cls, real: Tensor):
        if real.layout != torch.strided:
            made = torch.Tensor._make_subclass(cls, _sparse_shape(real))
        else:
            made = torch.Tensor._make_wrapper_subclass(
                cls, real.shape, real.stride(), real.storage_offset(), dtype=real.dtype, device=_META
            )
        made.held = real
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})

    @property
    def device(self):
        return DEVICE

    is_cuda = property(lambda self: True)
    is_meta = property(lambda self: False)

    def get_device(self):
        return 0

    def tolist(self):
        return self.held.tolist()

    def numpy(self, **_):
        raise TypeError(f"can't convert {DEVICE} device type tensor to numpy: use Tensor.cpu() first")

    def __array__(self, *_, **__):
        return self.numpy()

    def __repr__(self, **_):
        return f"StandIn({self.held!r})"


def _sparse_shape(real):
    return torch.empty(real.shape, dtype=real.dtype, layout=real.layout, device=_META)


@contextlib.contextmanager
def stand_in():
    """Let ``"cuda"`` name the stand-in device inside the block."""
    engine = torch.autograd._engine_run_backward

    def run_backward(*args, **kwargs):
        # torch leaves a function mode before it calls what the mode saw; backward passes in Python need it too
        with _Named():
            return engine(*args, **kwargs)

    with (
        mock.patch.object(torch.autograd, "_engine_run_backward", run_backward),
        mock.patch.object(torch.cuda, "get_rng_state", return_value=torch.zeros(16, dtype=torch.uint8)),
        mock.patch.object(torch.cuda, "set_rng_state"),
        _Computed(),
        _Named(),
    ):
        yield NAME


def real(tensor):
    """Return the CPU tensor with a stand-in's values; another tensor as it is."""
    return tensor.held if isinstance(tensor, StandIn) else tensor


class _Named(TorchFunctionMode):
    """Changes "cuda" to "meta" in the arguments of torch's functions."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if not kwargs and func not in _WATCHED:
            return func(*args)
        if func in _FROM_VALUES and _is_named(kwargs.get("device")):
            return func(*args, **{**kwargs, "device": "cpu"}).to(_META)
        if func is Tensor.new_tensor and (_is_named(kwargs.get("device")) or isinstance(args[0], StandIn)):
            return torch.tensor(args[1], **{"dtype": args[0].dtype, **kwargs, "device": "cpu"}).to(_META)
        if func in _WITH_LISTS and isinstance(args[0], StandIn):
            args = (args[0], _index(args[1]), *args[2:])
        if func is Tensor.cuda:
            return args[0].to(_META)
        if _is_named(kwargs.get("device")):
            kwargs["device"] = _META
        if func is Tensor.to:
            args = tuple(_META if _is_named(arg) else arg for arg in args)
        return func(*args, **kwargs)


def _index(index):
    """Return an index of ``x[...]`` with tensors in the places of lists."""
    if isinstance(index, tuple):
        return tuple(_index(one) for one in index)
    return torch.tensor(index) if isinstance(index, (list, np.ndarray)) else index


def _is_named(device):
    return isinstance(device, (str, torch.device)) and torch.device(device).type == NAME


class _Computed(TorchDispatchMode):
    """Makes what is asked for on "meta" a stand-in, with values."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


def _run(func, args, kwargs):
    """Run an operator on the values, and return stand-ins if it ran on the device."""
    if func is torch.ops.prim.device.default:
        return _META
    tensors = [*_tensors(args), *_tensors(kwargs.values())]
    theirs = {id(one.held): one for one in tensors if isinstance(one, StandIn)}
    asked = kwargs.get("device")
    on_device = bool(theirs) if asked is None else torch.device(asked).type == "meta"
    if not theirs and not on_device:
        return func(*args, **kwargs)
    if theirs:
        _check(func, args, tensors)
    if func in _BY_TARGET:
        on_device = isinstance(args[0], StandIn)
    args, kwargs = _held(args), {name: _held(value) for name, value in kwargs.items()}
    if asked is not None:
        kwargs["device"] = "cpu"
    if func is _aten._to_copy.default:
        kwargs.pop("device", None)
    return _back(func(*args, **kwargs), theirs, on_device)


def _tensors(values):
    """Yield the tensors among an operator's arguments."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _held(value):
    if isinstance(value, (list, tuple)):
        return type(value)([_held(one) for one in value])
    return real(value)


def _back(value, theirs, on_device):
    """Return an operator's result as stand-ins; what was changed in place is the argument itself."""
    if isinstance(value, Tensor):
        if id(value) in theirs:
            return theirs[id(value)]
        return StandIn(value) if on_device else value
    if isinstance(value, (list, tuple)):
        return type(value)([_back(one, theirs, on_device) for one in value])
    return value


def _check(func, args, tensors):
    """Refuse what CUDA refuses."""
    if func.namespace == "gyroformer":
        raise RuntimeError(f"{func}: the C++ kernels read memory of the CPU, and got a tensor on {DEVICE}")
    if func in _COPIES or all(isinstance(one, StandIn) for one in tensors):
        return
    if func in _INDEXING:
        if not isinstance(args[0], StandIn):
            raise RuntimeError(
                f"{func}: indices should be either on cpu or on the same device as the indexed tensor (cpu)"
            )
        tensors = [one for one in args[2:3] if isinstance(one, Tensor)]  # the values that are put
    scalars = func in _INDEXING or torch.Tag.pointwise in func.tags or func in _WITH_SCALARS
    for one in tensors:
        if not isinstance(one, StandIn) and (one.dim() or not scalars):
            raise RuntimeError(
                f"{func}: Expected all tensors to be on the same device, but found at least two devices, {DEVICE} "
                f"and cpu! (a CPU tensor of shape {tuple(one.shape)})"
            )
    changed = func._schema.arguments and func._schema.arguments[0].alias_info
    if changed and changed.is_write and isinstance(args[0], Tensor) and not isinstance(args[0], StandIn):
        raise RuntimeError(f"{func}: a CPU tensor cannot be changed by tensors on {DEVICE}")
