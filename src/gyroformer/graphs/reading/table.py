"""Tables of nodes: text files, archives and parquet files with one row for each node."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gyroformer.errors import DataError
from gyroformer.graphs.reading.columns import plain_name
from gyroformer.graphs.reading.grid import Rows, data_rows, split_line, text_columns
from gyroformer.graphs.reading.lines import line_blocks, located, quoted
from gyroformer.graphs.reading.numbers import is_number
from gyroformer.graphs.reading.parquet import read_parquet

ID_NAMES = {"id", "ids", "node", "nodes", "nodeid", "nodeids", "name", "nodename", "index"}
LABEL_NAMES = {"label", "labels", "y", "class", "classes", "target", "category", "nodelabel"}


@dataclass(slots=True)
class Column:
    """One column: its name, and its values as text (bytes) or as an array."""

    name: str
    values: list[bytes] | np.ndarray


@dataclass(slots=True)
class Chunk:
    """Some rows of a table: the ids as text, the other columns, and where each row is in the file."""

    ids: list[str]
    columns: list[Column]
    location: Callable[[int], str]


def table_chunks(path: Path) -> Iterator[Chunk]:
    """Yield a text or parquet table in pieces; the id column is one with such a name, else the first.

    Raises:
        DataError: if there is no row, or fewer than two columns.
        MissingPartError: if the file is parquet and pyarrow is not installed.
    """
    if path.suffix.lower() == ".parquet":
        yield _arrow_chunk(path, read_parquet(path))
        return
    layout: _Layout | None = None
    empty = True
    for block in line_blocks(path):
        rows = data_rows(block)
        if rows.numbers.size and layout is None:
            layout = _find_layout(path, rows)
            rows = rows.from_second() if layout.header else rows
        if rows.numbers.size and layout is not None:
            empty = False
            yield _text_chunk(path, rows, layout)
    if empty:
        raise DataError(f"{path}: no data rows: write one row for each node, its id first")


@dataclass(slots=True)
class _Layout:
    delimiter: bytes | None
    names: list[str]
    header: bool


def _find_layout(path: Path, rows: Rows) -> _Layout:
    lines = [line for line in rows.text.split(b"\n", 50)[:50] if line]
    order: list[bytes | None] = [b",", b";", b"\t", b"|", None]
    if ".tsv" in path.suffixes:
        order.insert(0, b"\t")
    sign = next((sign for sign in order if len(split_line(lines[0], sign) or []) > 1), None)
    first = split_line(lines[0], sign) or []
    if len(first) < 2:
        raise located(
            path,
            int(rows.numbers[0]),
            f"one column in {quoted(lines[0])}: a row needs the node's id and at least one value",
        )
    rest = [fields for line in lines[1:] if len(fields := split_line(line, sign) or []) == len(first)]
    header = _is_header(first, rest)
    names = (
        [field.decode("utf-8") for field in first]
        if header
        else [str(column) for column in range(len(first))]
    )
    return _Layout(sign, names, header)


def _is_header(first: list[bytes], rest: list[list[bytes]]) -> bool:
    if {plain_name(field) for field in first} & (ID_NAMES | LABEL_NAMES):
        return True
    columns = range(len(first))
    return any(
        not is_number(first[column]) and bool(rest) and all(is_number(fields[column]) for fields in rest)
        for column in columns
    )


def _id_column(names: list[str]) -> int:
    return next((column for column, name in enumerate(names) if plain_name(name.encode()) in ID_NAMES), 0)


def _text_chunk(path: Path, rows: Rows, layout: _Layout) -> Chunk:
    fields = text_columns(path, rows, layout.delimiter, len(layout.names))
    key = _id_column(layout.names) if layout.header else 0
    ids = [field.decode("utf-8") for field in fields[key]]
    if "" in ids:
        raise located(path, int(rows.numbers[ids.index("")]), "a row without a node id: add it")
    columns = [
        Column(name, values)
        for column, (name, values) in enumerate(zip(layout.names, fields, strict=True))
        if column != key
    ]
    return Chunk(ids, columns, lambda row: f"{path}:{int(rows.numbers[row])}")


def _arrow_chunk(path: Path, table: Any) -> Chunk:
    if table.num_rows == 0 or table.num_columns < 2:
        raise DataError(
            f"{path}: {table.num_rows} rows and {table.num_columns} columns: a table needs ids and values"
        )
    names = [str(name) for name in table.column_names]
    key = _id_column(names)
    ids = table.column(key).to_pylist()
    if not all(isinstance(name, (int, str)) and not isinstance(name, bool) for name in ids):
        raise DataError(f"{path}: ids in column {names[key]!r} must be integers or text, none missing")
    columns = [
        Column(name, _arrow_values(table.column(column)))
        for column, name in enumerate(names)
        if column != key
    ]
    return Chunk([str(name) for name in ids], columns, lambda row: f"{path}: row {row}")


def _arrow_values(column: Any) -> list[bytes] | np.ndarray:
    """Return numbers as an array (null is NaN), everything else as text (null is empty)."""
    import pyarrow

    kind = column.type
    if pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_boolean(kind):
        return np.array(
            [np.nan if value is None else value for value in column.to_pylist()], dtype=np.float64
        )
    return [b"" if value is None else str(value).encode("utf-8", "replace") for value in column.to_pylist()]
