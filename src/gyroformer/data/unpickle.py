"""Read old pickles without running what they ask for.

A pickle is a program: it names functions and has them called. Here it can only name what stands in a list,
and the classes in it are replaced by empty shells that keep the state they are given, so no method of
scipy or networkx runs on it. Everything else is refused before it is called.
"""

import builtins
import collections
import pickle
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gyroformer.data.sources import FETCH_AGAIN
from gyroformer.errors import DataError


class Shell:
    """Stands for an object of a class that is not loaded: ``state`` is what was stored of it."""

    state: dict[str, object]

    def __setstate__(self, state: dict[str, object]) -> None:
        self.state = state


_ARRAY_TYPE = object()  # not the class itself: a pickle could call that, for an array of any size


def _empty_array(kind: object, shape: tuple[int, ...], code: object) -> np.ndarray:
    """Do what numpy's ``_reconstruct`` does for the one call that pickled arrays make."""
    if kind is not _ARRAY_TYPE or shape != (0,):
        raise pickle.UnpicklingError(f"it makes an array of shape {shape!r}")
    return np.ndarray(shape, dtype="i1")


Allowed = Mapping[tuple[str, str], object]

#: (module, name) in a pickle -> what it may have; the modules are those of the time it was written
NUMPY: Allowed = {
    ("numpy.core.multiarray", "_reconstruct"): _empty_array,
    ("numpy", "ndarray"): _ARRAY_TYPE,
    ("numpy", "dtype"): np.dtype,
}
SCIPY: Allowed = {("scipy.sparse.csr", "csr_matrix"): Shell}
COLLECTIONS: Allowed = {
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): builtins.list,
    ("builtins", "dict"): builtins.dict,
}
NETWORKX: Allowed = {
    ("networkx.classes.graph", "Graph"): Shell,
    ("networkx.classes.reportviews", "NodeView"): Shell,
}


#: what the unpickler raises on bytes that are no pickle, or no longer one
_BROKEN = (
    *(pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError),
    *(MemoryError, OverflowError),
)


class _Restricted(pickle.Unpickler):
    allowed: Allowed

    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in self.allowed:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no such file needs")
        return self.allowed[module, name]


def unpickle(path: Path, *allowed: Allowed) -> object:
    """Return what the pickle at ``path`` holds, refusing every name that is not in ``allowed``.

    Python 2 text becomes one character a byte (latin-1), which old numpy arrays need.
    """
    with path.open("rb") as file:
        reader = _Restricted(file, encoding="latin1")
        reader.allowed = {name: thing for part in allowed for name, thing in part.items()}
        try:
            return reader.load()
        except _BROKEN as error:
            why = error if str(error) else "it ends too early"
            raise DataError(f"{path}: not loaded: {why}; {FETCH_AGAIN}") from None
