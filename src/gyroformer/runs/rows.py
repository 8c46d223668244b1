"""Rows of results: one for each run, keyed by all that decides it."""

import csv
import hashlib
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gyroformer.durable import make_folder, only_one, write_durably
from gyroformer.errors import CorruptFileError, DataError
from gyroformer.options import as_plain
from gyroformer.runs.younger import without_younger
from gyroformer.settings import JobSettings
from gyroformer.tasks import HEADLINES, TASKS

#: raised when a change of the code is meant to change results (the golden rows are recorded anew): rows of an
#: earlier generation stay in the file and are not taken for new
GENERATION = 1
#: the same for the code of one model alone, counted from 0
MODEL_GENERATIONS = {"q-gcn": 1, "fmgnn": 1, "hypformer": 1}
#: what decides a row; one with the same key is the same run
KEY = ("dataset", "model", "seed", "settings", "generation")
COLUMNS = (
    *KEY,
    *(
        "variant",
        "metric",
        "value",
        "validation",
        "recipe",
        "split",
        "split_sha256",
        "epochs",
        "best_epoch",
        "parameters",
    ),
    *("width", "curvatures", "seconds", "threads", "torch", "gyroformer", "commit", "others"),
)


class Number(NamedTuple):
    """What a column of numbers holds.

    Attributes:
        read: what reads an entry.
        low: the least that it may be.
        high: the most that it may be.
        may_be_empty: whether an entry may be missing.
    """

    read: Callable[[str], float] = float
    low: float = -math.inf
    high: float = math.inf
    may_be_empty: bool = False

    @property
    def about(self) -> str:
        """What an entry must be, in words."""
        least = f" of at least {self.low:g}" if self.low > -math.inf else ""
        bounds = f" from {self.low:g} to {self.high:g}" if self.high < math.inf else least
        return f"a number{bounds}{' or empty' if self.may_be_empty else ''}"

    def takes(self, text: str) -> bool:
        """Return whether an entry is such a number."""
        if not text:
            return self.may_be_empty
        try:
            value = self.read(text)
        except ValueError:
            return False
        return math.isfinite(value) and self.low <= value <= self.high


#: columns of numbers; every metric that a row has is in percent
NUMBERS = {
    **dict.fromkeys(("seed", "parameters", "width"), Number(int, low=0)),
    "value": Number(low=0, high=100),
    "validation": Number(low=0, high=100, may_be_empty=True),
    "seconds": Number(low=0),
}
#: what a run found: rows with one key must agree in it
FOUND = ("metric", "value", "validation")

Row = dict[str, str]
#: by key
Rows = Mapping[tuple[str, ...], Row]


def settings_sha256(job: JobSettings) -> str:
    """Return a checksum of all settings but the seed, which has a column of its own.

    An option that is younger than the rows does not count at its neutral value: the job is the same as before.
    """
    values = without_younger(as_plain(job.but(seed=0)))
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def generation(job: JobSettings) -> int:
    """Return the generation of the code that a job runs with."""
    return GENERATION + MODEL_GENERATIONS.get(job.model.name, 0)


def key_of(job: JobSettings) -> tuple[str, ...]:
    """Return the key of the row of a job."""
    parts = (job.graph.source, job.model.name, job.seed, settings_sha256(job), generation(job))
    return tuple(str(part) for part in parts)


def row_of(
    job: JobSettings,
    results: Mapping[str, Any],
    manifest: Mapping[str, Any],
    *,
    variant: str,
    commit: str,
) -> Row:
    """Return the row of a finished run; ``variant`` is the name of its row in the table."""
    metric, *others = TASKS[job.task].kind(job.objective).shown
    split = results.get("split") or {}
    which = next((f" {part} {split[part]}" for part in ("seed", "index") if split.get(part) is not None), "")
    validation = next((value for name, value in results.items() if name.startswith("val_")), "")
    values: dict[str, Any] = dict(zip(KEY, key_of(job), strict=True))
    values |= {
        "variant": variant,
        "metric": metric,
        "value": f"{results[metric]:.6g}",
        "validation": f"{validation:.6g}" if validation != "" else "",
        "recipe": job.recipe,
        "split": f"{split.get('name', '')}{which}",
        "split_sha256": str(split.get("sha256", ""))[:12],
        "width": job.model.width,
        "curvatures": json.dumps([[round(k, 4) for k in layer] for layer in results["curvatures"]]),
        "threads": manifest["threads"],
        "torch": manifest["versions"]["torch"],
        "gyroformer": manifest["versions"]["gyroformer"],
        "commit": commit,
        "others": json.dumps(
            {name: round(results[name], 4) for name in others if results.get(name) is not None}
        ),
    }
    values |= {name: results[name] for name in ("epochs", "best_epoch", "parameters", "seconds")}
    return {name: str(values[name]) for name in COLUMNS}


def read_rows(path: Path) -> dict[tuple[str, ...], Row]:
    """Return the rows of a file by their keys; empty if there is no file.

    Rows with one key that found the same are one; CorruptFileError if they differ, as merged files of two machines may:
    whichever was kept, the other would be gone with the next row that is written.
    """
    if not path.exists():
        return {}
    rows: dict[tuple[str, ...], tuple[int, Row]] = {}
    for line, row in _numbered_rows(path, COLUMNS, NUMBERS, {"metric": HEADLINES}):
        before, first = rows.setdefault(tuple(row[name] for name in KEY), (line, row))
        if differs := which_differs(first, row):
            raise CorruptFileError(
                f"{path}: lines {before} and {line} are one run ({_about(row)}), but have the {differs} "
                f"{first[differs]!r} and {row[differs]!r}; remove one of the two lines"
            )
    return {key: row for key, (_, row) in rows.items()}


def read_files(paths: Iterable[Path]) -> dict[tuple[str, ...], Row]:
    """Return the rows of several files: a run that more than one has is one; CorruptFileError if they differ."""
    rows: dict[tuple[str, ...], tuple[Path, Row]] = {}
    for path in paths:
        for key, row in read_rows(path).items():
            before, first = rows.setdefault(key, (path, row))
            if differs := which_differs(first, row):
                raise CorruptFileError(
                    f"{path}: has the {differs} {row[differs]!r} for a run ({_about(row)}) for which {before} has "
                    f"{first[differs]!r}; remove one of the two rows"
                )
    return {key: row for key, (_, row) in rows.items()}


def which_differs(first: Row, second: Row) -> str | None:
    """Return what two rows of one run do not agree in; None if they found the same."""
    found, other = _found(first), _found(second)
    return next((name for name in FOUND if found[name] != other[name]), None)


def _found(row: Row) -> dict[str, str | float]:
    """Return what a run found, numbers as such: a spreadsheet writes 97 for 97.0."""
    return {name: float(row[name]) if name in NUMBERS and row[name] else row[name] for name in FOUND}


def _about(row: Row) -> str:
    return f"{row['dataset']}, {row['model']}, seed {row['seed']}"


def checked_rows(
    path: Path,
    columns: Sequence[str],
    numbers: Mapping[str, Number],
    names: Mapping[str, Sequence[str]] | None = None,
) -> list[Row]:
    """Return the rows of a CSV file that this package wrote; CorruptFileError for any that it did not.

    Args:
        path: the file.
        columns: what a row must have.
        numbers: columns of numbers; one that a row need not have may be empty.
        names: columns whose entries are one of several names.
    """
    return [row for _, row in _numbered_rows(path, columns, numbers, names or {})]


def _numbered_rows(
    path: Path, columns: Sequence[str], numbers: Mapping[str, Number], names: Mapping[str, Sequence[str]]
) -> list[tuple[int, Row]]:
    """Return the rows with their lines."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise ValueError(f"it has no column {missing[0]!r}")
            return [(reader.line_num, _checked(row, reader.line_num, numbers, names)) for row in reader]
    except (OSError, ValueError, csv.Error) as error:
        raise CorruptFileError(f"{path}: is not a file of results ({error}); restore it") from None


def _checked(row: Row, line: int, numbers: Mapping[str, Number], names: Mapping[str, Sequence[str]]) -> Row:
    if None in row or None in row.values():
        raise ValueError(f"line {line} does not have as many entries as there are columns")
    for name, number in numbers.items():
        if not number.takes(row.get(name, "")):
            raise ValueError(f"line {line}: {name} must be {number.about}, got {row[name]!r}")
    for name, known in names.items():
        if row[name] not in known:
            raise ValueError(f"line {line}: {name} must be one of {', '.join(known)}; got {row[name]!r}")
    return row


def add_row(path: Path, row: Row) -> Row:
    """Add a row to a file, to which other commands may be adding theirs; return the row that the file has then.

    A row of the same run that is there already stays: it may differ, and what was shown once is not replaced unseen.
    """
    make_folder(path.parent)
    with only_one(path.with_name(f"{path.name}.lock")):
        rows = read_rows(path)
        kept = rows.setdefault(tuple(row[name] for name in KEY), row)
        if kept is row:
            write_rows(path, rows.values())
    return kept


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows in a fixed order, whole or not at all."""
    ordered = sorted(rows, key=lambda row: (row["dataset"], row["model"], row["settings"], int(row["seed"])))
    write_table(path, COLUMNS, ordered)


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as CSV, whole or not at all."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, text.getvalue().encode())
    except OSError as error:
        raise DataError(f"{path}: the results could not be written ({error.strerror})") from None
