"""Node names as they come: numbered in order of first appearance, never used as an index."""

import re
from collections import defaultdict
from pathlib import Path

import numpy as np

from gyroformer.errors import DataError
from gyroformer.graphs.adjacency import IntArray

MAX_NODES = 20_000_000  # beyond this a file is more likely wrong than large; every reader takes another limit
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,999}")  # as Python prints it, so that 7 and 007 stay two names


class Names:
    """The names seen so far.

    Files of integers stay arrays of int64 until the end; the first other name (text, ``007``, a number beyond
    18 digits) turns them into a dictionary of bytes.
    """

    def __init__(self, path: Path, max_nodes: int) -> None:
        self._path, self._max_nodes = path, max_nodes
        self._integers: list[IntArray] = []
        self._codes: list[IntArray] = []
        self._table: defaultdict[bytes, int] | None = None

    def add_integers(self, names: IntArray) -> None:
        """Append names that are integers of at most 18 digits."""
        if self._table is None:
            self._integers.append(names)
        else:
            self.add_tokens([b"%d" % name for name in names.tolist()])

    def add_tokens(self, names: list[bytes]) -> None:
        """Append names that may be anything."""
        table = self._table if self._table is not None else self._start_table()
        self._codes.append(np.fromiter(map(table.__getitem__, names), dtype=np.int64, count=len(names)))
        check_max_nodes(self._path, len(table), self._max_nodes)

    def finish(self) -> tuple[IntArray, list[int] | list[str]]:
        """Return the number of each appended name, and the names: integers if all are, else text."""
        if self._table is None:
            codes, distinct = first_appearance(_joined(self._integers))
            check_max_nodes(self._path, distinct.size, self._max_nodes)
            return codes, distinct.tolist()
        names = list(self._table)
        self._table.clear()  # its memory is the largest part of all, and needed for the text of the names
        return _joined(self._codes), plain_names(names)

    def _start_table(self) -> defaultdict[bytes, int]:
        table: defaultdict[bytes, int] = defaultdict()
        table.default_factory = table.__len__  # a new name gets the next number
        codes, distinct = first_appearance(_joined(self._integers))
        self._integers = []
        self._codes = [codes]
        for name in distinct.tolist():
            table[b"%d" % name]
        self._table = table
        return table


def check_max_nodes(path: Path, nodes: int, limit: int) -> None:
    """Raise DataError if there are more nodes than allowed."""
    if nodes > limit:
        raise DataError(
            f"{path}: {nodes} nodes or more, but the limit is {limit}: raise max_nodes if this is intended"
        )


def plain_names(names: list[bytes]) -> list[int] | list[str]:
    """Return names as integers of any size if every one is printed as such, else as text."""
    if all(map(_INTEGER.fullmatch, names)):
        return [int(name) for name in names]
    return [name.decode("utf-8") for name in names]


def first_appearance(values: IntArray) -> tuple[IntArray, IntArray]:
    """Return each value's number in order of first appearance, and the distinct values in that order."""
    if not values.size:
        return values, values
    low, high = int(values.min()), int(values.max())
    if high - low < 4 * values.size:  # nearly dense: a table of first positions is faster than sorting
        shifted = values - low
        first = np.full(high - low + 1, values.size, dtype=np.int64)
        first[shifted[::-1]] = np.arange(values.size)[::-1]  # the last assignment to an entry wins
        present = np.flatnonzero(first < values.size)
        order = np.argsort(first[present])
        number = np.empty(high - low + 1, dtype=np.int64)
        number[present[order]] = np.arange(present.size)
        return number[shifted], present[order] + low
    distinct, index, back = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(index)
    number = np.empty(distinct.size, dtype=np.int64)
    number[order] = np.arange(distinct.size)
    return number[back], distinct[order]


def _joined(parts: list[IntArray]) -> IntArray:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
