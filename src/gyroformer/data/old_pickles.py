"""Read old pickles as what they are, a list of instructions, and carry out none of what they ask for.

A pickle is a program: it names functions and has them called. The reader here knows the thirty instructions that the
files of Planetoid and of Airport are made of, and builds numbers, text, lists and dictionaries from them; where an
object is asked for, a :class:`Shell` notes what was asked. Nothing is imported, called, or filled with raw memory: an
array is made from checked bytes afterwards (:func:`array_of`).
"""

import dataclasses as dc
import math
import pickletools
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gyroformer.data.sources import FETCH_AGAIN
from gyroformer.errors import DataError
from gyroformer.untrusted import check_regular

#: bytes of the largest pickle that is read; those of PubMed have 8 million
MAX_BYTES = 256 << 20
#: module and name, as a pickle has them; the modules are those of the time it was written
NUMPY = frozenset(("numpy.core.multiarray _reconstruct", "numpy ndarray", "numpy dtype"))
SCIPY = frozenset(("scipy.sparse.csr csr_matrix",))
COLLECTIONS = frozenset(("collections defaultdict", "__builtin__ list", "builtins dict"))
NETWORKX = frozenset(("networkx.classes.graph Graph", "networkx.classes.reportviews NodeView"))

#: a number of one to eight bytes
_NUMBER_TYPE = re.compile("[biuf][1248]")
_KEYS = (int, str, float, type(None))


class NotReadable(ValueError):
    """The instructions are none that such a file has."""


@dc.dataclass(frozen=True, slots=True)
class Name:
    """Something outside the pickle that it names."""

    name: str


@dc.dataclass(slots=True)
class Shell:
    """Stands for an object: what was to be called, with what, and what it was then given.

    Attributes:
        name: module and name of the class or function.
        args: what it was to be called with.
        state: what was stored of the object.
        items: its entries, if it is a dictionary.
    """

    name: str
    args: tuple[Any, ...]
    state: Any = None
    items: dict[Any, Any] = dc.field(default_factory=dict)


def unpickle(path: Path, *allowed: frozenset[str]) -> Any:
    """Return what the pickle at ``path`` holds, refusing every name that is not in ``allowed``.

    Python 2 text becomes one character a byte (latin-1), as old numpy arrays have it.
    """
    if check_regular(path) > MAX_BYTES:
        raise DataError(f"{path}: not loaded: it is larger than any such file; {FETCH_AGAIN}")
    machine = _Machine(frozenset().union(*allowed))
    try:
        with warnings.catch_warnings(action="ignore"):  # Python's, about text of a form that no such file has
            return machine.run(path.read_bytes())
    except (IndexError, KeyError, ValueError, TypeError, OverflowError) as error:
        why = error if isinstance(error, NotReadable) else "its instructions do not fit together"
        raise DataError(f"{path}: not loaded: {why}; {FETCH_AGAIN}") from None


class _Machine:
    """The stack and the memory of a pickle."""

    def __init__(self, allowed: frozenset[str]) -> None:
        self.allowed = allowed
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self, content: bytes) -> Any:
        for instruction, argument, _ in pickletools.genops(content):
            name = instruction.name
            if name in _VALUES:
                self.stack.append(argument)
            elif name in _CONSTANTS:
                self.stack.append(_CONSTANTS[name]())
            elif name in _STEPS:
                _STEPS[name](self, argument)
            elif name == "STOP":
                return self.stack.pop()
            elif name != "PROTO":
                raise NotReadable(f"it asks for the instruction {name}, which no such file needs")
        raise NotReadable("it ends too early")

    def named(self, name: str) -> None:
        if name not in self.allowed:
            raise NotReadable(f"it asks for {name.replace(' ', '.')}, which no such file needs")
        self.stack.append(Name(name))

    def since_mark(self) -> list[Any]:
        start = self.marks.pop()
        found = self.stack[start:]
        del self.stack[start:]
        return found

    def tuple_of(self, count: int) -> None:
        found = tuple(self.stack[len(self.stack) - count :])
        if len(found) != count:
            raise IndexError
        del self.stack[len(self.stack) - count :]
        self.stack.append(found)

    def append(self, found: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise TypeError
        target.extend(found)

    def set_items(self, found: list[Any]) -> None:
        target = self.stack[-1]
        entries = target.items if type(target) is Shell else target
        if type(entries) is not dict or len(found) % 2:
            raise TypeError
        for key, value in zip(found[::2], found[1::2], strict=True):
            if type(key) not in _KEYS:  # a tuple may be nested so deeply that its hash ends the process
                raise TypeError
            entries[key] = value

    def call(self, _: Any) -> None:
        arguments, called = self.stack.pop(), self.stack.pop()
        if type(called) is not Name or type(arguments) is not tuple:
            raise TypeError
        self.stack.append(Shell(called.name, arguments))

    def build(self, _: Any) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if type(target) is not Shell:
            raise TypeError
        target.state = state


def _put(machine: _Machine, index: int) -> None:
    machine.memo[index] = machine.stack[-1]


def _get(machine: _Machine, index: int) -> None:
    machine.stack.append(machine.memo[index])


_VALUES = frozenset(
    ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINSTRING", "SHORT_BINSTRING", "BINUNICODE")
)
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple,
}
_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    "MARK": lambda machine, _: machine.marks.append(len(machine.stack)),
    "GLOBAL": _Machine.named,
    "BINPUT": _put,
    "LONG_BINPUT": _put,
    "BINGET": _get,
    "LONG_BINGET": _get,
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.since_mark())),
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "APPEND": lambda machine, _: machine.append([machine.stack.pop()]),
    "APPENDS": lambda machine, _: machine.append(machine.since_mark()),
    "SETITEM": lambda machine, _: machine.set_items([machine.stack.pop(-2), machine.stack.pop()]),
    "SETITEMS": lambda machine, _: machine.set_items(machine.since_mark()),
    "REDUCE": _Machine.call,
    "NEWOBJ": _Machine.call,
    "BUILD": _Machine.build,
}


def array_of(held: Any, path: Path) -> np.ndarray:
    """Return the array of numbers that a shell stands for, from its bytes; DataError if it stands for none."""
    try:
        if type(held) is not Shell or held.name != "numpy.core.multiarray _reconstruct":
            raise NotReadable(f"found {type(held).__name__}")
        _, shape, dtype, in_columns, content = held.state
        if type(content) is not str or type(shape) is not tuple or type(in_columns) is not bool:
            raise NotReadable("its array is not stored as bytes")
        kind, content = _dtype_of(dtype), content.encode("latin-1")
        if not all(type(size) is int and size >= 0 for size in shape) or len(shape) > 2:
            raise NotReadable("its array has no shape of a table")
        if math.prod(shape) * kind.itemsize != len(content):
            raise NotReadable(f"its array claims another shape than its {len(content)} bytes have")
        return np.frombuffer(content, kind).reshape(shape, order="F" if in_columns else "C")
    except (ValueError, TypeError) as error:
        why = error if isinstance(error, NotReadable) else "its array is not stored as one"
        raise DataError(f"{path}: expected an array of numbers: {why}; {FETCH_AGAIN}") from None


def _dtype_of(held: Any) -> "np.dtype[Any]":
    if type(held) is not Shell or held.name != "numpy dtype" or type(held.args[0]) is not str:
        raise NotReadable("its array has no type")
    code, order = held.args[0], held.state[1]
    if not _NUMBER_TYPE.fullmatch(code) or type(order) is not str or order not in ("<", ">", "|", "="):
        raise NotReadable("its array is not of numbers")
    return np.dtype(order + code)


def is_node(value: Any) -> bool:
    """Return whether a value can be the number of a node."""
    return type(value) is int and 0 <= value < 1 << 31
