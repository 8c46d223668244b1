"""How an edge list is written: its delimiter, its header and which columns mean what."""

import re
from dataclasses import dataclass
from pathlib import Path

from gyroformer.errors import UsageError
from gyroformer.graphs.reading.grid import Rows, split_line
from gyroformer.graphs.reading.lines import located, quoted
from gyroformer.graphs.reading.numbers import is_number

SAMPLE = 200

# Names that no real node pair is likely to have: enough to call the first line a header.
_SURE_SOURCE = {
    "source",
    "src",
    "from",
    "id1",
    "node1",
    "fromnodeid",
    "fromid",
    "sourceid",
    "fromnode",
    "nodeid1",
}
_SURE_TARGET = {"target", "dst", "to", "id2", "node2", "tonodeid", "toid", "targetid", "tonode", "nodeid2"}
# Names that say which column is which once the first line is known to be a header.
_SOURCE = _SURE_SOURCE | {"u", "i", "head", "start", "child", "subject", "a"}
_TARGET = _SURE_TARGET | {"v", "j", "tail", "end", "parent", "object", "b", "destination", "dest"}
_WEIGHT = {"weight", "weights", "w", "edgeweight", "value", "strength", "count"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the first lines tell: ``delimiter`` None is runs of blanks, ``weight`` None is no such column."""

    delimiter: bytes | None
    columns: int
    header: bool
    source: int = 0
    target: int = 1
    weight: int | None = None


def delimiter_bytes(delimiter: str) -> bytes | None:
    """Return the one byte of a delimiter that a user named, None for blanks."""
    if delimiter in {" ", "whitespace"}:
        return None
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter.isalnum() or delimiter in '"\n\r\v\f\0':
        raise UsageError(
            f"delimiter {delimiter!r} is not a single ASCII character: give e.g. ',' or ';' or '\\t' or ' '"
        )
    return delimiter.encode()


def find_dialect(path: Path, rows: Rows, delimiter: str | None, header: bool | None) -> Dialect:
    """Return the dialect of the first lines of an edge list.

    Args:
        path: file, for its suffix and for errors.
        rows: first lines with data, at least one.
        delimiter: delimiter if the user named it.
        header: whether the first line is a header, if the user said so.

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
    if header is None:
        header = _looks_like_header(table)
    if header:
        return _named_columns(table[0], sign)
    weight = None if columns == 2 else _weight_column(path, int(rows.numbers[0]), table)
    return Dialect(sign, columns, header=False, weight=weight)


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


def plain_name(field: bytes) -> str:
    """Return a column's name with only its letters and digits, in lower case."""
    return re.sub(r"[^a-z0-9]", "", field.decode("utf-8").lower())


def _is_integer(field: bytes) -> bool:
    return re.fullmatch(rb"[-+]?[0-9]+", field) is not None


def _looks_like_header(table: list[list[bytes]]) -> bool:
    first, rest = table[0], table[1:]
    names = {plain_name(field) for field in first}
    if names & _SURE_SOURCE and names & _SURE_TARGET:
        return True
    if not rest:
        return False
    if not any(map(_is_integer, first[:2])) and all(_is_integer(f[0]) and _is_integer(f[1]) for f in rest):
        return True
    third = len(first) > 2 and bool(first[2]) and not is_number(first[2])
    return third and all(is_number(fields[2]) for fields in rest)


def _named_columns(names: list[bytes], sign: bytes | None) -> Dialect:
    """Return the dialect of a header: known names say which column is which, else the ends come first."""
    plain = [plain_name(name) for name in names]
    source = next((index for index, name in enumerate(plain) if name in _SOURCE), None)
    target = next((index for index, name in enumerate(plain) if name in _TARGET), None)
    if source is None or target is None:
        source, target = 0, 1
    weights = [index for index, name in enumerate(plain) if name in _WEIGHT and index not in (source, target)]
    weight = weights[0] if weights else None
    return Dialect(sign, len(names), header=True, source=source, target=target, weight=weight)


def _weight_column(path: Path, line: int, table: list[list[bytes]]) -> int | None:
    third = [fields[2] for fields in table]
    if not any(third):  # each line ends with a delimiter
        return None
    if not is_number(third[0]):
        raise located(
            path,
            line,
            f"third column {quoted(third[0])} is not a number, so it is not a weight: "
            "name the columns in a header line such as source,target,relation",
        )
    return 2
