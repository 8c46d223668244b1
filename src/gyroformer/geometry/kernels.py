"""The C++ kernels of the geometry, and when they can serve.

They take float32 and float64 on the CPU, compute in double, and know their first derivatives. Everything else is the
torch forms': second derivatives, forward mode, ``vmap`` and the other function transforms, tracing, half precision,
other devices, tensor subclasses, and most of what is compiled (see ``rows``).
"""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeGuard

import torch
from torch import Tensor
from torch.autograd import forward_ad

from gyroformer import compiled
from gyroformer.operators import constant

KERNELS = compiled.Kernels(Path(__file__).parent / "native")
#: what a C function takes
Arguments = Sequence[type["ctypes._SimpleCData[Any]"]]
FORMATS = (torch.float32, torch.float64)


@constant
def outside_functorch() -> bool:
    """Return whether no function transform (grad, vmap, jvp) is at work."""
    return bool(torch._C._functorch.maybe_current_level() is None)


def outside_transforms() -> bool:
    """Return whether nothing is at work that has to see the operations: transforms, dual numbers, tracing, modes."""
    return (
        not compiled.switched_off()
        and outside_functorch()
        and forward_ad._current_level < 0
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._get_tracing_state() is None
    )


def is_plain(tensor: Any) -> TypeGuard[Tensor]:
    """Return whether this is an ordinary tensor whose memory a kernel can read."""
    return (
        type(tensor) in (Tensor, torch.nn.Parameter)
        and tensor.is_cpu
        and tensor.layout == torch.strided
        and not tensor.is_neg()
    )
