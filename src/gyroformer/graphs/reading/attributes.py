"""Node features and labels from a second file, matched to the graph's nodes by their ids."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gyroformer.arrays import Arrays, read_arrays
from gyroformer.errors import DataError, in_file
from gyroformer.graphs.check import MAX_CLASSES, UNLABELLED, checked_features, checked_labels
from gyroformer.graphs.listing import Listing
from gyroformer.graphs.reading.columns import plain_name
from gyroformer.graphs.reading.lines import quoted
from gyroformer.graphs.reading.names import plain_names
from gyroformer.graphs.reading.npz import IDS, LABELS, feature_part, first_of, plain_ids
from gyroformer.graphs.reading.numbers import is_number
from gyroformer.graphs.reading.table import LABEL_NAMES, Chunk, Column, table_chunks

_log = logging.getLogger(__name__)

_MISSING = {b"", b"nan", b"na", b"n/a", b"null", b"?"}


def add_features(listing: Listing, path: Path) -> None:
    """Read features and set ``listing.x``.

    Rows for nodes that the graph does not have become nodes without edges: an edge list cannot name those.

    Raises:
        DataError: if a node has no row, a row comes twice, or a value is not a finite number.
    """
    names, x = read_features(path)
    listing.x = x[_rows_of_nodes(listing, names, x.shape[0], path)]


def read_features(path: Path) -> tuple[list[str] | None, NDArray[np.float32]]:
    """Return the ids of a table of features, None for one without ids, and its rows ``(n, F)``."""
    if path.suffix.lower() == ".npz":
        arrays = read_arrays(path)
        values, ids = _named_rows(path, arrays, feature_part(path, arrays), "features", "x")
        if not values.shape:
            raise DataError(f"{path}: 'x' is a single number: store a table with one row for each node")
        with in_file(path):
            return ids, checked_features(values, values.shape[0]).numpy()
    names: list[str] = []
    parts = []
    for chunk in table_chunks(path):
        parts.append(_feature_rows(path, chunk))
        names += chunk.ids
    return names, np.concatenate(parts)


def add_labels(listing: Listing, path: Path) -> None:
    """Read labels and set ``listing.y``, and ``listing.label_names`` if they are words (sorted).

    A node without a row, or with an empty cell, has no label: its class number is ``UNLABELLED``.

    Raises:
        DataError: if no node has a label, or one has a label that is not an integer or below -1.
    """
    label_names = None
    names: list[str] | None
    if path.suffix.lower() == ".npz":
        arrays = read_arrays(path)
        values, names = _named_rows(path, arrays, first_of(arrays, LABELS), "labels", "y")
        with in_file(path):
            y = checked_labels(values, values.shape[0] if values.shape else 0).numpy()
    else:
        names, cells, locations = [], [], []
        for chunk in table_chunks(path):
            cells += _label_cells(path, chunk)
            locations += [chunk.location(row) for row in range(len(chunk.ids))]
            names += chunk.ids
        y, label_names = _class_numbers(cells, locations)
    if not (y != UNLABELLED).any():
        raise DataError(f"{path}: no node has a label")
    # a node without a row takes the last of these
    listing.y = np.append(y, UNLABELLED)[_rows_of_nodes(listing, names, y.size, path, whole=False)]
    listing.label_names = label_names


def _named_rows(path: Path, arrays: Arrays, values: Any, what: str, key: str) -> tuple[Any, list[str] | None]:
    """Return the values found in an archive, which must be there, and the ids of their rows if it has any."""
    if values is None:
        raise DataError(f"{path}: no {what} in it, only {', '.join(arrays)}: store them as {key!r}")
    ids = first_of(arrays, IDS)
    return values, None if ids is None else [str(name) for name in plain_ids(path, ids)]


def _feature_rows(path: Path, chunk: Chunk) -> NDArray[np.float32]:
    columns = [column for column in chunk.columns if plain_name(column.name.encode()) not in LABEL_NAMES]
    if not columns:
        raise DataError(
            f"{path}: no feature column besides ids and labels: add at least one column of numbers"
        )
    rows = np.empty((len(chunk.ids), len(columns)), dtype=np.float32)
    for index, column in enumerate(columns):
        with np.errstate(over="ignore"):  # what overflows float32 is infinite and refused just below
            rows[:, index] = _column_numbers(column)
    wrong = ~np.isfinite(rows)
    if wrong.any():
        row, wrong_column = (int(index) for index in np.argwhere(wrong)[0])
        values = columns[wrong_column].values
        cell = quoted(values[row]) if isinstance(values, list) else values[row]
        raise DataError(
            f"{chunk.location(row)}: feature column {columns[wrong_column].name!r} of node {quoted(chunk.ids[row])} "
            f"is {cell}, not a finite number: fill it in, encode words as numbers, or remove the column"
        )
    return rows


def _column_numbers(column: Column) -> np.ndarray:
    """Return a column as numbers, NaN where it is none."""
    if isinstance(column.values, np.ndarray):
        return column.values
    try:
        return np.fromiter(map(float, column.values), dtype=np.float64, count=len(column.values))
    except ValueError:
        return np.array([float(cell) if is_number(cell) else np.nan for cell in column.values])


def _label_cells(path: Path, chunk: Chunk) -> list[bytes]:
    """Return the label column: the one with such a name, or the only one."""
    named = [column for column in chunk.columns if plain_name(column.name.encode()) in LABEL_NAMES]
    if len(named) != 1 and len(chunk.columns) != 1:
        raise DataError(
            f"{path}: {len(chunk.columns)} columns besides the ids and {len(named)} of them called 'label': "
            "name the column of labels 'label'"
        )
    values = (named or chunk.columns)[0].values
    return values if isinstance(values, list) else [b"%r" % value for value in values.tolist()]


def _class_numbers(cells: list[bytes], locations: list[str]) -> tuple[NDArray[np.int64], list[str] | None]:
    """Return labels as class numbers: themselves if all are numbers, else indices of the sorted words."""
    known = [cell for cell in cells if cell.lower() not in _MISSING]
    if not all(map(is_number, known)):
        words = sorted({cell.decode("utf-8") for cell in known})
        number = {word.encode("utf-8"): index for index, word in enumerate(words)}
        return np.array([number.get(cell, UNLABELLED) for cell in cells], dtype=np.int64), words
    values = np.array([UNLABELLED if cell.lower() in _MISSING else float(cell) for cell in cells])
    wrong = (values < UNLABELLED) | (values != np.floor(values)) | (values >= MAX_CLASSES)
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise DataError(
            f"{locations[first]}: label {quoted(cells[first])} is not a class number: "
            f"use integers from 0 and below {MAX_CLASSES}, or words; leave it empty if it is unknown"
        )
    return values.astype(np.int64), None


def _rows_of_nodes(
    listing: Listing, names: list[str] | None, rows: int, path: Path, *, whole: bool = True
) -> NDArray[np.int64]:
    """Return the table's row of each node, after adding the table's other nodes to the graph.

    Unless the table must be ``whole``, a node without a row has the row number ``rows``.
    """
    if names is None:
        names = _numbered(listing, rows, path)
    if len(names) != rows:
        raise DataError(f"{path}: {len(names)} ids for {rows} rows: give each row one id")
    row_of = {name: row for row, name in enumerate(names)}
    if len(row_of) != rows:
        first = next(name for row, name in enumerate(names) if row_of[name] != row)
        raise DataError(
            f"{path}: {rows - len(row_of)} ids are repeated, {quoted(first)} among them: keep one row for each"
        )
    known = [str(name) for name in listing.ids]
    missing = [name for name in known if name not in row_of]
    if missing and whole:
        raise DataError(
            f"{path}: no row for {len(missing)} of the graph's {len(known)} nodes, "
            f"{quoted(missing[0])} among them: add a row for every node"
        )
    have = set(known)
    added = [name for name in names if name not in have]
    if added and (listing.x is not None or listing.y is not None):
        raise DataError(
            f"{path}: {len(added)} ids are not in the graph or its other table, "
            f"{quoted(added[0])} among them: remove them, or describe these nodes in both"
        )
    if 2 * len(added) > rows:
        raise DataError(
            f"{path}: {len(added)} of its {rows} ids are not in the graph, {quoted(added[0])} among them (the graph "
            f"has {quoted(known[0]) if known else 'no nodes'}): write the ids as the graph has them"
        )
    if added:
        _log.warning(
            "%s: %d of its %d ids are not in the graph, %s among them: they become nodes without edges",
            *(path, len(added), rows, quoted(added[0])),
        )
        listing.ids = plain_names([name.encode("utf-8") for name in known + added])
    return np.array([row_of.get(name, rows) for name in known + added], dtype=np.int64)


def _numbered(listing: Listing, rows: int, path: Path) -> list[str]:
    """Return the ids of rows without any: 0, 1, …, or 1, 2, … if that is how the graph's nodes are named."""
    ids = [name for name in listing.ids if isinstance(name, int)]
    if len(ids) < len(listing.ids):
        raise DataError(
            f"{path}: its rows have no ids but the nodes are named by text: store the ids as 'ids'"
        )
    first = 1 if min(ids) == 1 and max(ids) == rows else 0
    return [str(number) for number in range(first, first + rows)]
