"""Models as shapes without values, however much memory their values would take."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode


@contextmanager
def shapes_only() -> Iterator[None]:
    """Within it, what is made has shapes and no values."""
    with torch.device("meta"), _Undrawn():
        yield


class _Undrawn(TorchFunctionMode):
    """Draws no normal numbers where there is no place for them; torch would import its compiler to do so."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        named = kwargs or {}
        if func in (nn.init.normal_, Tensor.normal_):
            return args[0] if args else named["tensor"]
        return func(*args, **named)
