"""How an edge list is written: its delimiter, its header and which columns mean what."""

import dataclasses as dc
import re
from dataclasses import dataclass
from pathlib import Path

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.reading.columns import (
    SURE_SOURCE,
    SURE_TARGET,
    Columns,
    Wanted,
    named_columns,
    numbered_columns,
    plain_name,
)
from gyroformer.graphs.reading.grid import Rows, split_line
from gyroformer.graphs.reading.lines import located, quoted
from gyroformer.graphs.reading.numbers import is_number

SAMPLE = 200
#: a word or a few, as columns are called: package, depends_on, Node A
_COLUMN_NAME = re.compile(r"[^\W\d][\w .:/()-]{0,39}")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the first lines tell.

    Attributes:
        delimiter: None is runs of blanks.
        width: number of columns.
        columns: which of them mean what.
        header: the names of the columns; None if the first line is an edge.
        doubtful: the names, if only the rest of the file can tell whether they are names: the first line is one if
            it joins two words that no other line has.
    """

    delimiter: bytes | None
    width: int
    columns: Columns
    header: tuple[str, ...] | None = None
    doubtful: tuple[str, ...] | None = None


def delimiter_bytes(delimiter: str) -> bytes | None:
    """Return the one byte of a delimiter that a user named, None for blanks."""
    if delimiter in {" ", "whitespace"}:
        return None
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter.isalnum() or delimiter in '"\n\r\v\f\0':
        raise UsageError(
            f"delimiter {delimiter!r} is not a single ASCII character: give e.g. ',' or ';' or '\\t' or ' '"
        )
    return delimiter.encode()


def find_dialect(path: Path, rows: Rows, delimiter: str | None, wanted: Wanted) -> Dialect:
    """Return the dialect of the first lines of an edge list.

    Args:
        path: file, for its suffix and for errors.
        rows: first lines with data, at least one.
        delimiter: delimiter if the user named it.
        wanted: what the user says of the columns.

    Raises:
        DataError: if no delimiter gives two columns, or the third column of a file without header is text.
    """
    lines = rows.text.split(b"\n", SAMPLE)[: min(SAMPLE, rows.numbers.size)]
    sign = delimiter_bytes(delimiter) if delimiter is not None else _find_delimiter(path, lines)
    table = [split_line(line, sign) or [line] for line in lines]
    columns = len(table[0])
    if columns < 2:
        way = "whitespace" if sign is None else repr(sign.decode())
        raise located(
            path,
            int(rows.numbers[0]),
            f"only one column when split at {way} in {quoted(lines[0])}: an edge needs two ids; pass the delimiter",
        )
    table = [
        fields for fields in table if len(fields) == columns
    ]  # others are errors for the reader to report
    names = tuple(field.decode("utf-8") for field in table[0])
    header = wanted.header
    if header is None:
        header = wanted.names_columns or _looks_like_header(table)
    doubtful = names if wanted.header is None and _may_be_header(table[0]) else None
    if header or (doubtful and columns > 2 and _has_usual_names(path, names, wanted)):
        return Dialect(sign, columns, named_columns(path, names, wanted), header=names)
    found = numbered_columns(path, columns, wanted)
    if wanted.weight is None and columns > 2 and (found.source, found.target) == (0, 1):
        found = dc.replace(found, weight=_weight_column(path, int(rows.numbers[0]), table, doubtful))
    return Dialect(sign, columns, found, doubtful=doubtful)


def _find_delimiter(path: Path, lines: list[bytes]) -> bytes | None:
    """Return the first delimiter that makes two columns, or more with a number third, of every line."""
    order: list[bytes | None] = [b"\t", b",", b";", b"|", None]
    if ".csv" in path.suffixes or ".CSV" in path.suffixes:
        order = [b",", b";", b"\t", b"|", None]
    even = []
    for sign in order:
        table = [split_line(line, sign) or [] for line in lines]
        columns = len(table[0])
        if columns < 2 or any(len(fields) != columns for fields in table):
            continue
        even.append(sign)
        if columns == 2 or all(not fields[2] or is_number(fields[2]) for fields in table[1:]):
            return sign
    if even:
        return even[0]
    # No delimiter fits every line: take one that fits the first, so that the error names another line.
    return next((sign for sign in order if len(split_line(lines[0], sign) or []) > 1), None)


def _is_integer(field: bytes) -> bool:
    return re.fullmatch(rb"[-+]?[0-9]+", field) is not None


def _looks_like_header(table: list[list[bytes]]) -> bool:
    first, rest = table[0], table[1:]
    names = {plain_name(field) for field in first}
    if names & SURE_SOURCE and names & SURE_TARGET:
        return True
    if not rest:
        return False
    if not any(map(_is_integer, first[:2])) and all(_is_integer(f[0]) and _is_integer(f[1]) for f in rest):
        return True
    third = len(first) > 2 and bool(first[2]) and not is_number(first[2])
    return third and all(is_number(fields[2]) for fields in rest)


def _may_be_header(first: list[bytes]) -> bool:
    """Return whether all fields could be names of columns: different words."""
    words = [field for field in first if field]
    return (
        len(words) > 1
        and len(set(words)) == len(words)
        and all(_COLUMN_NAME.fullmatch(word.decode("utf-8")) for word in words)
    )


def _has_usual_names(path: Path, names: tuple[str, ...], wanted: Wanted) -> bool:
    """Return whether words (not letters) name columns other than the first two as the ends of edges."""
    found = named_columns(path, names, wanted)
    return found != Columns() and all(len(names[end]) > 1 for end in (found.source, found.target))


def _weight_column(
    path: Path, line: int, table: list[list[bytes]], doubtful: tuple[str, ...] | None
) -> int | None:
    third = [fields[2] for fields in table]
    if not any(third):  # each line ends with a delimiter
        return None
    if is_number(third[0]):
        return 2
    if doubtful is not None:
        return None  # a column of words, fine below a header; the reader finds out at the end of the file
    raise not_a_weight(path, line, third[0])


def not_a_weight(path: Path, line: int, field: bytes | str) -> DataError:
    """Return the error for a third column that is no weight, in a file without a header."""
    return located(
        path,
        line,
        f"third column {quoted(field)} is not a number, so it is not a weight: name the columns in a header line "
        "such as source,target,relation, or say which columns count with --source and --target (from Python: source=, "
        "target=)",
    )
