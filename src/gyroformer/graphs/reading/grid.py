"""Blocks of lines split into columns with array operations, no loop over lines."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gyroformer.graphs.adjacency import IntArray
from gyroformer.graphs.reading.lines import Block, located, quoted

Bytes = NDArray[np.uint8]

COMMENTS = b"#%"
_SPACES = b" \t\v\f"
_IS_SPACE = np.zeros(256, dtype=bool)
_IS_SPACE[list(_SPACES)] = True
_NEWLINE = 10
_LINE_MAY_BE_SKIPPED = np.zeros(256, dtype=bool)
_LINE_MAY_BE_SKIPPED[list(_SPACES + COMMENTS + b"\n")] = True


@dataclass(frozen=True, slots=True)
class Rows:
    """Lines that hold data: their text, each ended by a newline, and their numbers in the file.

    ``doubtful`` are comments without a blank after their sign, with their numbers: they may be meant as data.
    """

    text: bytes
    numbers: IntArray
    doubtful: tuple[tuple[int, bytes], ...] = ()

    def line(self, index: int) -> bytes:
        """Return one line."""
        return self.text.split(b"\n", index + 1)[index]

    def from_second(self) -> "Rows":
        """Return all but the first line."""
        return Rows(self.text[self.text.index(b"\n") + 1 :], self.numbers[1:], self.doubtful)


def data_rows(block: Block) -> Rows:
    """Return the block's lines without blank ones and comments (``#`` or ``%`` at the beginning)."""
    raw = np.frombuffer(block.text, dtype=np.uint8)
    ends = np.flatnonzero(raw == _NEWLINE)
    numbers = np.arange(block.first, block.first + ends.size)
    starts = np.concatenate([[0], ends[:-1] + 1])
    if not _LINE_MAY_BE_SKIPPED[raw[starts]].any():
        return Rows(block.text, numbers)
    lines = block.text.split(b"\n")[:-1]
    stripped = [line.lstrip(_SPACES) for line in lines]
    kept = [index for index, line in enumerate(stripped) if line and line[0] not in COMMENTS]
    text = b"".join(lines[index] + b"\n" for index in kept)
    doubtful = tuple(
        (block.first + index, line)
        for index, line in enumerate(stripped)
        if line and line[0] in COMMENTS and line[1:2] not in {b"", b" ", b"\t", b"#", b"%"}
    )
    return Rows(text, numbers[np.array(kept, dtype=np.int64)], doubtful)


def integer_columns(rows: Rows, delimiter: bytes | None, columns: int) -> list[IntArray | None]:
    """Return the columns that hold only integers of at most 18 digits, and None for each other column.

    All are None when the lines do not have exactly ``columns`` fields without inner blanks; the caller then
    splits the text itself and finds out why.
    """
    nothing: list[IntArray | None] = [None] * columns
    raw = np.frombuffer(rows.text, dtype=np.uint8)
    apart = _IS_SPACE[raw] | (raw == _NEWLINE)
    marks = raw == delimiter[0] if delimiter else None
    if marks is not None:
        apart |= marks
    edges = np.flatnonzero(np.diff(apart, prepend=True, append=True))
    lines = rows.numbers.size
    if edges.size != 2 * lines * columns:
        return nothing
    starts, ends = edges[0::2].reshape(lines, columns), edges[1::2].reshape(lines, columns)
    breaks = np.flatnonzero(raw == _NEWLINE)
    if (starts[1:, 0] < breaks[:-1]).any() or (ends[:, -1] > breaks).any():
        return nothing
    if marks is not None:
        found = np.flatnonzero(marks)
        if found.size != lines * (columns - 1):
            return nothing
        between = found.reshape(lines, columns - 1)
        if (between < ends[:, :-1]).any() or (between >= starts[:, 1:]).any():
            return nothing
    return [_integers(raw, starts[:, column], ends[:, column]) for column in range(columns)]


def _integers(raw: Bytes, starts: IntArray, ends: IntArray) -> IntArray | None:
    """Return the numbers from ``starts`` to ``ends``, or None if one is not an integer as Python prints it."""
    negative = raw[starts] == ord("-")
    starts = starts + negative
    length = ends - starts
    longest = int(length.max(initial=0))
    leading = raw[np.minimum(starts, raw.size - 1)] == ord("0")
    if int(length.min(initial=1)) < 1 or longest > 18 or (leading & ((length > 1) | negative)).any():
        return None
    value = np.zeros(starts.size, dtype=np.int64)
    for position in range(longest):
        inside = position < length
        digit = raw[np.where(inside, starts + position, starts)] - ord(
            "0"
        )  # uint8: what is below 0 wraps above 9
        if (digit > 9).any():
            return None
        value = np.where(inside, value * 10 + digit, value)
    return np.where(negative, -value, value)


def text_columns(path: Path, rows: Rows, delimiter: bytes | None, columns: int) -> list[list[bytes]]:
    """Return the columns as lists of stripped bytes.

    Raises:
        DataError: if a line has another number of fields.
    """
    if delimiter is None:
        _check_counts(path, rows, _words_per_line(rows), columns)
        fields = rows.text.split()
    elif b'"' in rows.text:
        return _quoted_columns(path, rows, delimiter, columns)
    else:
        raw = np.frombuffer(rows.text, dtype=np.uint8)
        breaks = np.flatnonzero(raw == _NEWLINE)
        before = np.searchsorted(np.flatnonzero(raw == delimiter[0]), breaks)
        _check_counts(path, rows, np.diff(before, prepend=0) + 1, columns)
        fields = rows.text.replace(b"\n", delimiter).split(delimiter)[:-1]
        if _IS_SPACE[raw].any():
            fields = list(map(bytes.strip, fields))
    return [fields[column::columns] for column in range(columns)]


def split_line(line: bytes, delimiter: bytes | None) -> list[bytes] | None:
    """Return one line's stripped fields, or None if a quoted field does not end on it."""
    if delimiter is None:
        return line.split()
    if b'"' not in line:
        return [field.strip() for field in line.split(delimiter)]
    try:
        reader = csv.reader(
            [line.decode("utf-8")], delimiter=delimiter.decode(), strict=True, skipinitialspace=True
        )
        return [field.strip().encode("utf-8") for field in next(reader)]
    except csv.Error:
        return None


def _words_per_line(rows: Rows) -> IntArray:
    raw = np.frombuffer(rows.text, dtype=np.uint8)
    apart = _IS_SPACE[raw] | (raw == _NEWLINE)
    starts = np.flatnonzero(~apart & np.concatenate([[True], apart[:-1]]))
    return np.diff(np.searchsorted(starts, np.flatnonzero(raw == _NEWLINE)), prepend=0)


def _quoted_columns(path: Path, rows: Rows, delimiter: bytes, columns: int) -> list[list[bytes]]:
    records = []
    for line, number in zip(rows.text.split(b"\n"), rows.numbers.tolist(), strict=False):
        record = split_line(line, delimiter)
        if record is None:
            raise located(path, number, f"unbalanced quotation marks in {quoted(line)}: close each of them")
        records.append(record)
    _check_counts(path, rows, np.array([len(record) for record in records]), columns)
    return [[record[column] for record in records] for column in range(columns)]


def _check_counts(path: Path, rows: Rows, counts: IntArray, columns: int) -> None:
    if (counts != columns).any():
        wrong = int(np.flatnonzero(counts != columns)[0])
        found = f"{counts[wrong]} column{'' if counts[wrong] == 1 else 's'}"
        raise located(
            path,
            int(rows.numbers[wrong]),
            f"{found} where {columns} were expected in {quoted(rows.line(wrong))}: "
            "give every line the same columns, or pass the delimiter",
        )
