"""``torch.compile`` for the time of a training run."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

METHODS = ("forward", "tangent")


@contextmanager
def compiled(model: nn.Module, wanted: bool) -> Iterator[None]:
    """Compile the encoder of ``model`` (the model itself if it has none) while the block runs.

    The encoder is what takes the time; the tokens before it are made of Python objects, which only cost the compiler.
    """
    if not wanted:
        yield
        return
    part = getattr(model, "encoder", model)
    names = [name for name in METHODS if callable(getattr(part, name, None))]
    for name in names:
        vars(part)[name] = torch.compile(getattr(part, name))
    try:
        yield
    finally:
        for name in names:
            del vars(part)[name]
