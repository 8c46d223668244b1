"""What the operators around the C++ kernels have in common: passing tensors, and having no second derivative."""

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.ops.native import build


def call(
    name: str, tensors: Sequence[Tensor | None], long: Sequence[int], small: Sequence[int], *floats: float
) -> None:
    """Call a kernel with pointers, sizes of 64 and of 32 bits, floats, and the number of threads."""
    library = build.library()
    assert library is not None
    getattr(library, name)(
        *(ctypes.c_void_p(None if tensor is None else tensor.data_ptr()) for tensor in tensors),
        *map(ctypes.c_int64, long),
        *map(ctypes.c_int, small),
        *map(ctypes.c_float, floats),
        ctypes.c_int(build.threads()),
    )


def check_nodes(nodes: Tensor, count: int) -> None:
    """Raise unless these are numbers of nodes: the kernels read where they point."""
    if nodes.dtype != torch.int64:
        raise UsageError(f"numbers of nodes must be int64, got {nodes.dtype}")
    if nodes.numel() and not 0 <= int(nodes.min()) <= int(nodes.max()) < count:
        raise UsageError(f"there are only nodes from 0 to {count - 1}")


def contiguous(*tensors: Tensor | None) -> list[Tensor | None]:
    """Return the tensors as the kernels read them."""
    return [None if tensor is None else tensor.contiguous() for tensor in tensors]


def like(tensor: Tensor) -> Tensor:
    """Return a contiguous tensor of the same shape, not filled."""
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def no_setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    """Keep nothing: for operators that refuse to be differentiated."""
