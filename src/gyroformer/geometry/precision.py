"""One format wider inside: how every function of the geometry keeps the digits it is given.

Near the ball's edge ``1 + k|x|²`` cancels, near an antipode ``1 + 2k⟨x,y⟩ + k²|x|²|y|²`` does. A float32
evaluation there loses up to six of its seven digits although the float32 *inputs* name the point exactly.
So half precision is computed in float32, float32 in float64, float64 in float64, and the result is rounded
once, to the promoted dtype of the inputs. Gradients take the same road back.

Python scalars are exact in the wide dtype. Devices without float64 (``mps``) compute in float32.
"""

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

import torch
from torch import Tensor

P = ParamSpec("P")

#: curvature as users give it: a number, or a tensor that broadcasts to ``(..., 1)``. To the type checker the number is
#: ``Any``, for the body of a :func:`widened` function gets it as a tensor: a decorator cannot say that of one keyword.
#: What is no number fails when it is made a tensor
Curvature = Tensor | Any

WIDER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float64,
    torch.float64: torch.float64,
}
NO_FLOAT64 = {"mps"}
#: keywords that may be plain numbers and reach a widened function as tensors
CURVATURE_NAMES = {"k", "beta"}


def common_dtype(tensors: list[Tensor]) -> torch.dtype:
    """Return the promoted dtype of the tensors; those without dimensions do not promote the others."""
    floating = [tensor for tensor in tensors if tensor.is_floating_point()]
    decisive = [tensor.dtype for tensor in floating if tensor.dim()] or [tensor.dtype for tensor in floating]
    if not decisive:
        return torch.get_default_dtype()
    return functools.reduce(torch.promote_types, decisive)


def wide_dtype(dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """Return the format that inputs of ``dtype`` are computed in."""
    wide = WIDER[dtype]
    return torch.float32 if device.type in NO_FLOAT64 else wide


def widened(function: Callable[Concatenate[Tensor, P], Tensor]) -> Callable[Concatenate[Tensor, P], Tensor]:
    """Return ``function`` computed in the wide dtype of its tensor arguments, rounded once at the end."""

    @functools.wraps(function)
    def run(first: Tensor, /, *args: P.args, **kwargs: P.kwargs) -> Tensor:
        values = (first, *args, *kwargs.values())
        tensors = [value for value in values if isinstance(value, Tensor)]
        if not tensors:
            raise TypeError(f"{function.__name__} needs at least one tensor, got {first!r}")
        narrow = common_dtype(tensors)
        # a curvature without dimensions may live on the CPU beside points on a GPU
        device = next((tensor for tensor in tensors if tensor.dim()), tensors[0]).device
        wide = wide_dtype(narrow, device)

        def widen(value: object) -> object:
            return value.to(wide) if isinstance(value, Tensor) and value.dtype != torch.bool else value

        named = {name: widen(value) for name, value in kwargs.items()}
        for name in CURVATURE_NAMES & named.keys():
            if not isinstance(named[name], Tensor):
                named[name] = torch.tensor(named[name], dtype=wide, device=device)
        out = function(widen(first), *map(widen, args), **named)  # type: ignore[arg-type]
        return out.to(narrow)

    return run
