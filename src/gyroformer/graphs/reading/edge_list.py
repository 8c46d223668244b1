"""Edge lists as text: one edge per line, two node names and perhaps a weight, in any usual dialect."""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gyroformer.errors import DataError
from gyroformer.graphs.adjacency import IntArray
from gyroformer.graphs.listing import Listing
from gyroformer.graphs.reading.columns import NOTHING, Wanted
from gyroformer.graphs.reading.dialect import Dialect, find_dialect, not_a_weight
from gyroformer.graphs.reading.grid import Rows, data_rows, integer_columns, split_line, text_columns
from gyroformer.graphs.reading.lines import line_blocks, located, quoted
from gyroformer.graphs.reading.names import MAX_NODES, Names, plain_names
from gyroformer.graphs.reading.numbers import finite_floats

Float = NDArray[np.float64]

_BRACES = re.compile(rb"([\s,;|])\s*(\{.*\})\s*$")
_BRACE_WEIGHT = re.compile(rb"""['"]weight['"]:\s*([^,}\s]+)""")


#: a first line that may be a header is one only above so many edges, of which at most this fraction is alone as it is
DOUBTLESS_EDGES, LONELY = 5, 0.02


def read_edge_list(
    path: Path, *, delimiter: str | None = None, wanted: Wanted = NOTHING, max_nodes: int = MAX_NODES
) -> Listing:
    """Read an edge list, block by block.

    Args:
        path: text file, perhaps packed with gzip.
        delimiter: one character, ``" "`` for whitespace; found from the first lines by default.
        wanted: header and columns as the user says; found by default.
        max_nodes: refuse more nodes than this.

    Raises:
        DataError: if the file holds no edge or a line is not one.
    """
    reader = _Reader(path, delimiter, wanted, max_nodes)
    for block in line_blocks(path):
        reader.add(data_rows(block))
    return reader.listing()


class _Reader:
    """Collects names and weights from blocks; the first block decides the dialect."""

    def __init__(self, path: Path, delimiter: str | None, wanted: Wanted, max_nodes: int) -> None:
        self._path, self._delimiter, self._wanted = path, delimiter, wanted
        self._names = Names(path, max_nodes)
        self._weights: list[Float] = []
        self._dialect: Dialect | None = None
        self._braces = False
        self._edges = 0
        self._first = 1

    def add(self, rows: Rows) -> None:
        if self._dialect is not None:
            self._refuse_hidden_edges(rows, after=0)
        if not rows.numbers.size:
            return
        if self._dialect is None:
            self._braces = _has_braces(rows.line(0))
        if self._braces:
            rows = _without_braces(rows)
        if self._dialect is None:
            self._dialect = find_dialect(self._path, rows, self._delimiter, self._wanted)
            self._first = int(rows.numbers[0])
            self._refuse_hidden_edges(rows, after=int(rows.numbers[0]))
            if self._dialect.header:
                rows = rows.from_second()
        if rows.numbers.size:
            self._add_edges(rows, self._dialect)

    def _refuse_hidden_edges(self, rows: Rows, after: int) -> None:
        """Refuse comments below the first edge that could be edges (of hashtags, say): none is lost."""
        assert self._dialect is not None
        for number, line in rows.doubtful:
            if number > after and len(split_line(line, self._dialect.delimiter) or []) == self._dialect.width:
                raise located(
                    self._path,
                    number,
                    f"{quoted(line)} may be a comment or an edge: put a space after the comment character, "
                    "or quote an id that begins with it (.csv)",
                )

    def _add_edges(self, rows: Rows, dialect: Dialect) -> None:
        columns = dialect.columns
        numbers = integer_columns(rows, dialect.delimiter, dialect.width)
        source, target = numbers[columns.source], numbers[columns.target]
        weight = None if columns.weight is None else numbers[columns.weight]
        fields = None
        if source is None or target is None or (columns.weight is not None and weight is None):
            fields = text_columns(self._path, rows, dialect.delimiter, dialect.width)
        if source is not None and target is not None:
            self._names.add_integers(np.stack([source, target], axis=1).ravel())
        else:
            assert fields is not None
            self._add_tokens(rows, fields[columns.source], fields[columns.target])
        if weight is not None:
            self._weights.append(weight.astype(np.float64))
        elif columns.weight is not None:
            assert fields is not None
            self._weights.append(finite_floats(self._path, rows, fields[columns.weight]))
        self._edges += rows.numbers.size

    def _add_tokens(self, rows: Rows, source: list[bytes], target: list[bytes]) -> None:
        for column in (source, target):
            if b"" in column:
                index = column.index(b"")
                raise located(
                    self._path,
                    int(rows.numbers[index]),
                    f"an empty node id in {quoted(rows.line(index))}: write both ids of every edge",
                )
        ends = [b""] * (2 * len(source))
        ends[0::2], ends[1::2] = source, target
        self._names.add_tokens(ends)

    def listing(self) -> Listing:
        if self._dialect is None:
            raise DataError(f"{self._path}: no line with data, so there is no edge: write one edge per line")
        if not self._edges:
            raise DataError(f"{self._path}: only a header line and no edge: write one edge per line below it")
        codes, ids = self._names.finish()
        weight = np.concatenate(self._weights) if self._weights else None
        header = self._dialect.header
        if self._dialect.doubtful is not None:
            if _joins_words_of_its_own(codes):
                # the names of columns were numbered first, as if they were nodes
                codes, ids = codes[2:] - 2, plain_names([str(name).encode("utf-8") for name in ids[2:]])
                header = self._dialect.doubtful
            elif self._dialect.width > 2 and self._dialect.columns.weight is None and not self._wanted.given:
                third = self._dialect.doubtful[2:]
                if any(third):
                    raise not_a_weight(self._path, self._first, third[0])
        used = self._dialect.columns
        named = [used.source, used.target, *([] if used.weight is None else [used.weight])]
        if header is None:
            return Listing(codes[0::2], codes[1::2], ids, weight)
        unused = tuple(name for index, name in enumerate(header) if index not in named and name)
        names = tuple(header[index] for index in named)
        return Listing(codes[0::2], codes[1::2], ids, weight, header=names, unused=unused)


def _joins_words_of_its_own(codes: IntArray) -> bool:
    """Return whether the first edge joins two nodes that no other edge has, where hardly another edge does so."""
    edges = codes.reshape(-1, 2)
    alone = (np.bincount(codes)[edges] == 1).all(1)
    return bool(alone[0]) and len(edges) > DOUBTLESS_EDGES and float(alone[1:].mean()) <= LONELY


def _has_braces(line: bytes) -> bool:
    """Return whether a line is two fields or more and then a dictionary, as NetworkX writes edges."""
    match = _BRACES.search(line)
    return match is not None and len(re.split(rb"[\s,;|]+", line[: match.start()].strip())) > 1


def _without_braces(rows: Rows) -> Rows:
    """Turn the dictionaries at line ends into a weight column or nothing."""

    def plain(line: bytes) -> bytes:
        match = _BRACES.search(line)
        if match is None:
            return line
        weight = _BRACE_WEIGHT.search(match.group(2))
        return line[: match.start()] + (match.group(1) + weight.group(1) if weight else b"")

    lines = rows.text.split(b"\n")[:-1]
    return Rows(b"".join(plain(line) + b"\n" for line in lines), rows.numbers, rows.doubtful)
