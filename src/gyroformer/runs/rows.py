"""Rows of results: one for each run, keyed by all that decides it."""

import csv
import hashlib
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gyroformer.durable import make_folder, only_one, write_durably
from gyroformer.errors import CorruptFileError, DataError
from gyroformer.options import as_plain
from gyroformer.runs.younger import without_younger
from gyroformer.settings import JobSettings
from gyroformer.tasks import TASKS

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

#: columns of numbers
NUMBERS: dict[str, Callable[[str], float]] = {
    **dict.fromkeys(("seed", "parameters", "width"), int),
    **dict.fromkeys(("value", "seconds"), float),
}

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
    width: int,
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
        "width": width,
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
    """Return the rows of a file by their keys; empty if there is no file."""
    if not path.exists():
        return {}
    return {tuple(row[name] for name in KEY): row for row in checked_rows(path, COLUMNS, NUMBERS)}


def checked_rows(
    path: Path, columns: Sequence[str], numbers: Mapping[str, Callable[[str], float]]
) -> list[Row]:
    """Return the rows of a CSV file that this package wrote; CorruptFileError for any that it did not.

    Args:
        path: the file.
        columns: what a row has.
        numbers: columns whose entries are finite numbers, with what reads them.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise ValueError(f"it has no column {missing[0]!r}")
            return [_checked(row, reader.line_num, numbers) for row in reader]
    except (OSError, ValueError, csv.Error) as error:
        raise CorruptFileError(f"{path}: is not a file of results ({error}); restore it") from None


def _checked(row: Row, line: int, numbers: Mapping[str, Callable[[str], float]]) -> Row:
    if None in row or None in row.values():
        raise ValueError(f"line {line} does not have as many entries as there are columns")
    for name, read in numbers.items():
        try:
            finite = math.isfinite(read(row[name]))
        except ValueError:
            finite = False
        if not finite:
            raise ValueError(f"line {line}: {name} must be a number, got {row[name]!r}")
    return row


def add_row(path: Path, row: Row) -> None:
    """Add a row to a file, to which other commands may be adding theirs."""
    make_folder(path.parent)
    with only_one(path.with_name(f"{path.name}.lock")):
        rows = read_rows(path)
        rows[tuple(row[name] for name in KEY)] = row
        write_rows(path, rows.values())


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
