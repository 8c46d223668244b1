"""Matrix Market files (.mtx): the header's claims are checked before anything of their size is made."""

from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from gyroformer.errors import DataError
from gyroformer.graphs.adjacency import IntArray
from gyroformer.graphs.listing import Listing
from gyroformer.graphs.reading.grid import Rows, data_rows, integer_columns, text_columns
from gyroformer.graphs.reading.lines import GZIP_MARK, line_blocks, located, quoted
from gyroformer.graphs.reading.names import MAX_NODES, check_max_nodes
from gyroformer.graphs.reading.numbers import finite_floats

BANNER = b"%%matrixmarket"
_FIELDS = {"real": 3, "integer": 3, "double": 3, "pattern": 2}
_SYMMETRIES = {"general", "symmetric", "hermitian"}


def read_matrix_market(path: Path, *, max_nodes: int = MAX_NODES) -> Listing:
    """Read a square coordinate matrix as a graph whose nodes are named 1 to n.

    An entry of value 0 is no edge. A symmetric matrix lists one half and stands for both.

    Raises:
        DataError: if the header is wrong, declares what the file does not hold, or an entry is out of range.
    """
    reader = _Reader(path, max_nodes)
    for block in line_blocks(path):
        if block.first == 1:
            reader.banner(block.text.split(b"\n", 1)[0])
        reader.add(data_rows(block))
    return reader.listing()


class _Reader:
    """The state between blocks: after the banner comes the size line, after it the entries."""

    def __init__(self, path: Path, max_nodes: int) -> None:
        self._path, self._max_nodes = path, max_nodes
        self._columns = 0
        self._symmetric = False
        self._size: tuple[int, int] | None = None  # nodes, entries
        self._seen = 0
        self._ends: list[IntArray] = []
        self._values: list[NDArray[np.float64]] = []

    def banner(self, line: bytes) -> None:
        words = line.decode("utf-8").lower().split()
        expected = "expected a first line such as '%%MatrixMarket matrix coordinate pattern symmetric'"
        if len(words) != 5 or words[0].encode() != BANNER or words[1] != "matrix":
            raise located(self._path, 1, f"{quoted(line)} is not a Matrix Market header: {expected}")
        layout, field, symmetry = words[2:]
        if layout != "coordinate":
            raise located(self._path, 1, f"a dense matrix ({layout}): save it in coordinate format")
        if field not in _FIELDS or symmetry not in _SYMMETRIES:
            raise located(
                self._path,
                1,
                f"'{field} {symmetry}' cannot be a graph: {expected}, or real, integer, general",
            )
        self._columns, self._symmetric = _FIELDS[field], symmetry != "general"

    def add(self, rows: Rows) -> None:
        if rows.numbers.size and self._size is None:
            self._read_size(int(rows.numbers[0]), rows.line(0))
            rows = rows.from_second()
        if rows.numbers.size:
            self._add_entries(rows)

    def _read_size(self, number: int, line: bytes) -> None:
        words = line.split()
        if len(words) != 3 or not all(word.isdigit() and len(word) < 19 for word in words):
            raise located(
                self._path, number, f"{quoted(line)} is not a size line: expected rows, columns, entries"
            )
        rows, columns, entries = map(int, words)
        if rows != columns or rows == 0:
            raise located(
                self._path,
                number,
                f"a {rows} x {columns} matrix is not a graph: it must be square and not empty",
            )
        check_max_nodes(self._path, rows, self._max_nodes)
        shortest = 2 * self._columns  # bytes an entry needs, e.g. b"1 1\n"
        size = self._path.stat().st_size
        with self._path.open("rb") as file:
            packed = file.read(2) == GZIP_MARK  # its unpacked size is not known before the end
        if not packed and entries * shortest > size + 1:
            raise located(
                self._path,
                number,
                f"{entries} entries are declared, but {size} bytes cannot hold them: "
                "the file is truncated or its header wrong",
            )
        self._size = rows, entries

    def _add_entries(self, rows: Rows) -> None:
        assert self._size is not None
        nodes, entries = self._size
        if self._seen + rows.numbers.size > entries:
            extra = int(rows.numbers[entries - self._seen])
            raise located(
                self._path, extra, f"more than the {entries} entries declared: correct the size line"
            )
        numbers = integer_columns(rows, None, self._columns)
        source, target = numbers[0], numbers[1]
        fields = None
        if any(column is None for column in numbers):
            fields = text_columns(self._path, rows, None, self._columns)
        if source is None or target is None:
            assert fields is not None
            first = next(i for i, pair in enumerate(zip(*fields[:2], strict=True)) if not _are_indices(pair))
            self._refuse(rows, first, nodes)
        ends = np.stack([source, target])
        wrong = ((ends < 1) | (ends > nodes)).any(axis=0)
        if wrong.any():
            self._refuse(rows, int(np.flatnonzero(wrong)[0]), nodes)
        self._ends.append(ends - 1)
        if self._columns == 3:
            third = numbers[2]
            known = finite_floats(self._path, rows, fields[2]) if third is None and fields else third
            assert known is not None
            self._values.append(known.astype(np.float64))
        self._seen += rows.numbers.size

    def _refuse(self, rows: Rows, index: int, nodes: int) -> NoReturn:
        raise located(
            self._path,
            int(rows.numbers[index]),
            f"{quoted(rows.line(index))} is not an entry of a {nodes} x {nodes} matrix: correct it",
        )

    def listing(self) -> Listing:
        if not self._columns:
            raise DataError(f"{self._path}: the file is empty: download or write it again")
        if self._size is None:
            raise DataError(f"{self._path}: the header is there but no size line: the file is truncated")
        nodes, entries = self._size
        if self._seen != entries:
            raise DataError(
                f"{self._path}: {self._seen} of {entries} declared entries: "
                "the file is truncated or its header wrong"
            )
        ends = np.concatenate(self._ends, axis=1) if self._ends else np.empty((2, 0), dtype=np.int64)
        weight = np.concatenate(self._values) if self._values else None
        if weight is not None:
            ends, weight = ends[:, weight != 0], weight[weight != 0]
        return Listing(ends[0], ends[1], list(range(1, nodes + 1)), weight, symmetric=self._symmetric)


def _are_indices(pair: tuple[bytes, ...]) -> bool:
    return all(field.isdigit() and len(field) < 19 and not field.startswith(b"0") for field in pair)
