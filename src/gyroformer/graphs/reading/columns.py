"""Which columns of an edge list are the ends of an edge and which is its weight."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gyroformer.errors import UsageError, did_you_mean

# Names that no real node pair is likely to have: enough to call the first line a header.
SURE_SOURCE = {
    *("source", "src", "from", "id1", "node1", "fromnodeid", "fromid", "sourceid", "fromnode", "nodeid1"),
    *("sourcenode", "ego", "who"),
}
SURE_TARGET = {
    *("target", "dst", "to", "id2", "node2", "tonodeid", "toid", "targetid", "tonode", "nodeid2"),
    *("targetnode", "alter", "whom"),
}
# Names that say which column is which once the first line is known to be a header.
_SOURCE = SURE_SOURCE | {"u", "i", "head", "start", "child", "subject", "a"}
_TARGET = SURE_TARGET | {"v", "j", "tail", "end", "parent", "object", "b", "destination", "dest"}
_WEIGHT = {"weight", "weights", "w", "edgeweight", "value", "strength", "count"}
#: what a user says for "no weights"
NO_WEIGHT = "none"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user says of the columns of an edge list; None leaves it to the file.

    Attributes:
        header: whether the first line names the columns.
        source: name of the column of the first ends, or its number from 1.
        target: the same for the second ends.
        weight: the same for the weights; ``"none"`` for an unweighted graph whatever the file holds.
    """

    header: bool | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None

    @property
    def given(self) -> dict[str, bool | str]:
        """What was said, by name."""
        said = {"header": self.header, "source": self.source, "target": self.target, "weight": self.weight}
        return {name: value for name, value in said.items() if value is not None}

    @property
    def names_columns(self) -> bool:
        """Whether a column is given by a name that is no number, so that there must be a header."""
        columns = (self.source, self.target, self.weight)
        return any(name is not None and not name.isdecimal() and name != NO_WEIGHT for name in columns)


#: nothing said: all is found from the file
NOTHING = Wanted()


@dataclass(frozen=True, slots=True)
class Columns:
    """Indices of the columns; ``weight`` None is no such column."""

    source: int = 0
    target: int = 1
    weight: int | None = None


def plain_name(name: bytes | str) -> str:
    """Return a column's name with only its letters and digits, in lower case."""
    text = name.decode("utf-8") if isinstance(name, bytes) else name
    return re.sub(r"[^a-z0-9]", "", text.lower())


def named_columns(path: object, names: Sequence[str], wanted: Wanted) -> Columns:
    """Return which column is which where they have names: as the user says, else by the usual names.

    Ends without a usual name are the first two columns that are not taken.

    Args:
        path: the file, for errors.
        names: the columns' names.
        wanted: what the user says.

    Raises:
        UsageError: if a column that the user names is not there, or two are the same.
    """
    plain = [plain_name(name) for name in names]
    source, target, weight = (
        None
        if name is None or (kind == "weight" and name == NO_WEIGHT)
        else column_index(path, names, name, kind)
        for kind, name in (("source", wanted.source), ("target", wanted.target), ("weight", wanted.weight))
    )
    taken = {index for index in (source, target, weight) if index is not None}

    def usual(known: set[str]) -> int | None:
        return next((i for i, name in enumerate(plain) if name in known and i not in taken), None)

    if source is None and target is None:
        found = usual(_SOURCE), usual(_TARGET)
        source, target = found if None not in found else (None, None)
    elif source is None:
        source = usual(_SOURCE)
    elif target is None:
        target = usual(_TARGET)
    taken |= {index for index in (source, target) if index is not None}
    left = [i for i in range(len(names)) if i not in taken]
    ends = [left.pop(0) if end is None and left else end for end in (source, target)]
    if None in ends:
        raise UsageError(
            f"{path}: no column is left for the other end of an edge: give --source and --target"
        )
    first, second = (int(end) for end in ends if end is not None)
    if wanted.weight is None:
        weight = next(
            (i for i, name in enumerate(plain) if name in _WEIGHT and i not in (first, second)), None
        )
    return _distinct(path, Columns(first, second, weight))


def numbered_columns(path: object, count: int, wanted: Wanted) -> Columns:
    """Return which column is which where they have no names: numbers from 1, by default 1 and 2, weights 3."""
    names = [""] * count
    source = 0 if wanted.source is None else column_index(path, names, wanted.source, "source")
    free = next(i for i in range(count) if i != source)
    target = free if wanted.target is None else column_index(path, names, wanted.target, "target")
    if wanted.source is None and wanted.target is not None and target == 0:
        source = 1
    weight = None
    if wanted.weight is not None and wanted.weight != NO_WEIGHT:
        weight = column_index(path, names, wanted.weight, "weight")
    return _distinct(path, Columns(source, target, weight))


def column_index(path: object, names: Sequence[str], wanted: str, kind: str) -> int:
    """Return the index of a column that the user gives by its name, or by its number from 1."""
    if wanted in names:
        return list(names).index(wanted)
    plain = [plain_name(name) for name in names]
    if plain_name(wanted) and plain.count(plain_name(wanted)) == 1:
        return plain.index(plain_name(wanted))
    if wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return int(wanted) - 1
    known = f"columns: {', '.join(names)}" if any(names) else f"it has the columns 1 to {len(names)}"
    raise UsageError(
        f"{path}: has no column {wanted!r} for --{kind}{did_you_mean(wanted, [n for n in names if n])} ({known})"
    )


def _distinct(path: object, columns: Columns) -> Columns:
    used = [index for index in (columns.source, columns.target, columns.weight) if index is not None]
    if len(set(used)) < len(used):
        raise UsageError(f"{path}: --source, --target and --weight must be different columns")
    return columns
