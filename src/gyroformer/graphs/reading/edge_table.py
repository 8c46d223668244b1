"""Edge lists whose columns have names of their own: parquet files, JSON lines and tables in memory."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gyroformer.errors import DataError
from gyroformer.graphs.listing import Listing
from gyroformer.graphs.reading.columns import NOTHING, Wanted, named_columns
from gyroformer.graphs.reading.lines import line_blocks, located, quoted
from gyroformer.graphs.reading.names import MAX_NODES, Names
from gyroformer.graphs.reading.parquet import read_parquet

Location = Callable[[int], str]


def listing_of_table(
    path: object,
    table: Mapping[str, Sequence[Any]],
    wanted: Wanted = NOTHING,
    *,
    location: Location,
    max_nodes: int = MAX_NODES,
) -> Listing:
    """Return the edges of a table, a row for each.

    Args:
        path: the file or what else it is, for errors.
        table: the columns by their names.
        wanted: which columns are the ends and the weight; found by their names by default.
        location: says where a row is, for errors.
        max_nodes: refuse more nodes than this.

    Raises:
        DataError: if there is no row, an id is neither an integer nor text, or a weight is no finite number.
    """
    names = list(table)
    if len(names) < 2:
        raise DataError(f"{path}: {len(names)} columns: a table of edges needs the two ends of each")
    used = named_columns(path, names, wanted)
    ends = [_plain(table[names[index]]) for index in (used.source, used.target)]
    if not ends[0]:
        raise DataError(f"{path}: no row, so there is no edge: write one row for each edge")
    numbered = Names(Path(str(path)), max_nodes)
    tokens = [b""] * (2 * len(ends[0]))
    for side, (index, column) in enumerate(zip((used.source, used.target), ends, strict=True)):
        tokens[side::2] = [_token(name, names[index], location, row) for row, name in enumerate(column)]
    numbered.add_tokens(tokens)
    codes, ids = numbered.finish()
    weight, header = None, [names[used.source], names[used.target]]
    if used.weight is not None:
        header.append(names[used.weight])
        weight = _weights(_plain(table[names[used.weight]]), names[used.weight], location)
    unused = tuple(name for name in names if name not in header)
    return Listing(codes[0::2], codes[1::2], ids, weight, header=tuple(header), unused=unused)


def read_parquet_edges(path: Path, *, wanted: Wanted = NOTHING, max_nodes: int = MAX_NODES) -> Listing:
    """Read edges from a parquet file, a row for each."""
    table = read_parquet(path)
    columns = {str(name): table.column(index).to_pylist() for index, name in enumerate(table.column_names)}
    return listing_of_table(
        path, columns, wanted, location=lambda row: f"{path}: row {row}", max_nodes=max_nodes
    )


def read_json_lines(path: Path, *, wanted: Wanted = NOTHING, max_nodes: int = MAX_NODES) -> Listing:
    """Read edges from JSON lines: an object a line, all with the same keys, or a list of two or three values."""
    rows: list[Any] = []
    lines: list[int] = []
    for block in line_blocks(path):
        for number, line in enumerate(block.text.split(b"\n")[:-1], start=block.first):
            if line.strip():
                rows.append(_parsed(path, number, line))
                lines.append(number)
    if not rows:
        raise DataError(f"{path}: no line with data, so there is no edge: write one edge per line")
    keys = list(rows[0])
    for row, number in zip(rows, lines, strict=True):
        missing = [key for key in keys if key not in row]
        if missing:
            raise located(path, number, f"no {missing[0]!r} in it: give every edge the keys of the first")
    table = {key: [row[key] for row in rows] for key in keys}
    return listing_of_table(
        path, table, wanted, location=lambda row: f"{path}:{lines[row]}", max_nodes=max_nodes
    )


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    """Return an edge as a dictionary; of a list the keys are source, target and weight."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise located(path, number, f"not JSON ({reason}): write one object a line") from None
    if isinstance(found, list) and len(found) in (2, 3):
        return dict(zip(("source", "target", "weight"), found, strict=False))
    if not isinstance(found, dict):
        raise located(path, number, f"{quoted(line)} is no edge: write an object, or a list of two ids")
    return found


def _plain(column: Iterable[Any]) -> list[Any]:
    """Return a column as a list of Python's own values."""
    listed = column.tolist() if hasattr(column, "tolist") else list(column)
    return [value.item() if isinstance(value, np.generic) else value for value in listed]


def _token(name: Any, column: str, location: Location, row: int) -> bytes:
    if isinstance(name, int) and not isinstance(name, bool):
        return b"%d" % name
    if not isinstance(name, str) or not name.strip():
        raise DataError(
            f"{location(row)}: {name!r} in column {column!r} is no node id: ids are integers or text, none missing"
        )
    return name.strip().encode("utf-8", "replace")


def _weights(column: list[Any], name: str, location: Location) -> np.ndarray:
    for row, value in enumerate(column):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not np.isfinite(value):
            raise DataError(
                f"{location(row)}: weight {value!r} in column {name!r} is not a finite number: fill it in, or leave "
                "weights out with --weight none (from Python: weight='none')"
            )
    return np.array(column, dtype=np.float64)
