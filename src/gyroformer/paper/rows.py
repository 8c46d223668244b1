"""Rows of results: one for each run, keyed by all that decides it, and what the rows of a cell say together."""

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gyroformer.durable import write_durably
from gyroformer.errors import CorruptFileError, DataError
from gyroformer.options import as_plain
from gyroformer.paper.tables import Cell, Table, printed
from gyroformer.settings import JobSettings

#: raised when a change of the code is meant to change results (the golden rows are recorded anew): rows of an
#: earlier generation stay in the file and are not taken for new
GENERATION = 1
#: what decides a row; one with the same key is the same run
KEY = ("dataset", "model", "seed", "settings", "generation")
COLUMNS = (
    *KEY,
    *(
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
    *("width", "curvatures", "seconds", "threads", "torch", "gyroformer", "commit"),
)

Row = dict[str, str]


def settings_sha256(job: JobSettings) -> str:
    """Return a checksum of all settings but the seed, which has a column of its own."""
    values = as_plain(job.but(seed=0))
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def key_of(job: JobSettings) -> tuple[str, ...]:
    """Return the key of the row of a job."""
    parts = (job.graph.source, job.model.name, job.seed, settings_sha256(job), GENERATION)
    return tuple(str(part) for part in parts)


def row_of(
    job: JobSettings,
    table: Table,
    results: Mapping[str, Any],
    manifest: Mapping[str, Any],
    *,
    width: int,
    commit: str,
) -> Row:
    """Return the row of a finished run."""
    split = results.get("split") or {}
    which = next((f" {part} {split[part]}" for part in ("seed", "index") if split.get(part) is not None), "")
    validation = next((value for name, value in results.items() if name.startswith("val_")), "")
    values: dict[str, Any] = dict(zip(KEY, key_of(job), strict=True))
    values |= {
        "metric": table.metric,
        "value": f"{results[table.metric]:.6g}",
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
    }
    values |= {name: results[name] for name in ("epochs", "best_epoch", "parameters", "seconds")}
    return {name: str(values[name]) for name in COLUMNS}


def read_rows(path: Path) -> dict[tuple[str, ...], Row]:
    """Return the rows of a file by their keys; empty if there is no file."""
    if not path.exists():
        return {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return {tuple(row[name] for name in KEY): row for row in rows}
    except (OSError, KeyError, UnicodeDecodeError, csv.Error) as error:
        raise CorruptFileError(f"{path}: is not a file of results ({error!r}); restore it") from None


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows in a fixed order, whole or not at all."""
    ordered = sorted(rows, key=lambda row: (row["dataset"], row["model"], row["settings"], int(row["seed"])))
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(ordered)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, text.getvalue().encode())
    except OSError as error:
        raise DataError(f"{path}: the results could not be written ({error.strerror})") from None


def collected(cells: Sequence[Cell], rows: Mapping[tuple[str, ...], Row]) -> list[dict[str, Any]]:
    """Return for each cell that has rows their mean with its 95 % interval, beside what the paper prints."""
    from gyroformer.runs.spread import interval

    found = []
    for cell in cells:
        own = [rows[key] for job in cell.jobs() if (key := key_of(job)) in rows]
        if not own:
            continue
        mean, half = interval([float(row["value"]) for row in own])
        paper = printed(cell.table.name, cell.dataset, cell.model)
        found.append(
            {
                "dataset": cell.dataset,
                "model": cell.model,
                "mean": mean,
                "low": None if half is None else mean - half,
                "high": None if half is None else mean + half,
                "seeds": len(own),
                "paper": None if paper is None else paper[0],
                "paper_std": None if paper is None else paper[1],
                "parameters": int(own[0]["parameters"]),
                "width": int(own[0]["width"]),
            }
        )
    return found
