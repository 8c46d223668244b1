"""torch_geometric, imported without what its graphs do not need.

It imports every one of its data sets, with pandas and a language model's tools, and torch's compiler: five times what
the rest of it takes. Here these two wait until something of them is asked for.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch  # noqa: F401, itself before it has to wait for anything

#: what torch_geometric imports when it is imported and uses later, if at all
WAITING = ("torch._dynamo", "torch_geometric.datasets")


class _Waiting(ModuleType):
    """A module that gives way to the real one of its name when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        own = self.__name__
        if (
            name.startswith("__") and name != "__path__"
        ):  # asked of every module by whoever looks through them
            raise AttributeError(name)
        if sys.modules.get(own) is self:
            del sys.modules[own]
        return getattr(importlib.import_module(own), name)


@contextmanager
def waiting(*names: str) -> Iterator[None]:
    """Let modules wait that are imported within and not yet loaded; afterwards they are imported as ever."""
    stand_ins = {name: _Waiting(name) for name in names if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, module in stand_ins.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


if "torch_geometric" not in sys.modules:
    with waiting(*WAITING):
        import torch_geometric

    if not hasattr(torch_geometric, "datasets"):
        from torch_geometric.lazy_loader import LazyLoader

        torch_geometric.datasets = LazyLoader("datasets", vars(torch_geometric), "torch_geometric.datasets")

from torch_geometric.data import Batch, Data  # noqa: E402, its package is imported above

__all__ = ["Batch", "Data"]
