"""Tables in Markdown, and the files of results that they are made from."""

import csv
from pathlib import Path
from typing import Any

from gyroformer.runs.spread import interval

ROOT = Path(__file__).parents[2]


def markdown(head: list[str], rows: list[list[str]], *, text: int = 1) -> str:
    """Return a table whose first ``text`` columns are words, the rest numbers."""
    lines = [head, ["---"] * text + ["---:"] * (len(head) - text), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def runs(name: str) -> list[dict[str, str]]:
    with (ROOT / "results" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def spread(some: list[dict[str, str]], metric: str) -> str:
    """Return a metric's mean over runs with half its 95 % interval."""
    values = [float(row[metric]) for row in some]
    if not values:
        return "–"
    mean, half = interval(values)
    return with_half(f"{mean:.2f}", half)


def with_half(mean: str, half: float | None) -> str:
    """Return a mean with half its interval, if it has one."""
    return mean if half is None else f"{mean} ± {half:.2f}"


def mean_of(row: dict[str, Any]) -> str:
    """Return the mean of a collected row of a table of the paper, with half its interval."""
    return with_half(f"{row['mean']:.2f}", None if row["low"] is None else row["mean"] - row["low"])


def measured(file: str, columns: dict[str, str], *, text: int = 1) -> str:
    """Return the columns of a file of results under other headings."""
    return markdown(list(columns.values()), [[row[key] for key in columns] for row in runs(file)], text=text)
