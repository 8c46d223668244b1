"""What the rows of a table say together: a mean for each cell, and how FPS-T differs from every other model."""

import dataclasses as dc
from collections.abc import Sequence
from typing import Any

from gyroformer.errors import CorruptFileError
from gyroformer.paper.printed import printed, published
from gyroformer.paper.table import Cell, Variant
from gyroformer.runs.rows import Row, Rows, key_of
from gyroformer.runs.statistics import add_holm, paired_difference, paired_values, sample_half, signed_rank


def rows_of(cell: Cell, rows: Rows) -> dict[int, Row]:
    """Return the row of each run of a cell that is done, by seed; CorruptFileError for one of another metric."""
    found = {job.seed: rows[key] for job in cell.jobs() if (key := key_of(job)) in rows}
    for seed, row in found.items():
        if row["metric"] != cell.metric:
            raise CorruptFileError(
                f"{cell.table.name}: the row of {cell.column.name}, {cell.variant.name}, seed {seed} has the metric "
                f"{row['metric']!r}, expected {cell.metric!r}; restore the file of rows, or remove the row"
            )
    return found


def values_of(cell: Cell, rows: Rows) -> dict[int, float]:
    """Return the metric of each run of a cell that is done, by seed."""
    return {seed: float(row["value"]) for seed, row in rows_of(cell, rows).items()}


def collected(cells: Sequence[Cell], rows: Rows) -> list[dict[str, Any]]:
    """Return for each cell that has rows their mean with its 95 % interval, beside what is printed elsewhere."""
    from gyroformer.runs.spread import interval

    found = []
    for cell in cells:
        done = list(rows_of(cell, rows).values())
        if not done:
            continue
        row = done[0]
        mean, half = interval([float(one["value"]) for one in done])
        paper = printed(cell.table.name, cell.column.dataset, cell.variant.name)
        others, nodes = published(cell.table.name, cell.column.name), cell.column.test_nodes
        found.append(
            {
                "dataset": cell.column.name,
                "model": cell.variant.name,
                "mean": mean,
                "low": None if half is None else mean - half,
                "high": None if half is None else mean + half,
                "seeds": len(done),
                "paper": None if paper is None else paper[0],
                "paper_std": None if paper is None else paper[1],
                "published": others[0].value if others else None,
                "test_half": sample_half(mean, nodes) if nodes else None,
                "parameters": int(row["parameters"]),
                # by its settings: older rows have the number of classes there for flat networks
                "width": cell.job().model.width,
                "recipe": row["recipe"],
                "validation": _mean_validation(done),
            }
        )
    return found


def _mean_validation(done: Sequence[Row]) -> float | None:
    values = [float(row["validation"]) for row in done if row["validation"]]
    return sum(values) / len(values) if values else None


def differences(cells: Sequence[Cell], rows: Rows) -> list[dict[str, Any]]:
    """Return FPS-T minus every other row of a column, seed by seed; Holm's family is the whole table."""
    found: list[dict[str, Any]] = []
    by_column: dict[str, list[Cell]] = {}
    for cell in cells:
        by_column.setdefault(cell.column.name, []).append(cell)
    for name, column in by_column.items():
        ours = next((values_of(cell, rows) for cell in column if is_ours(cell)), {})
        for cell in column:
            if is_ours(cell):
                continue
            others = values_of(cell, rows)
            one = paired_difference(ours, others, overlap=cell.column.overlap)
            if one is not None:
                rank = signed_rank(paired_values(ours, others))
                found.append(
                    {"dataset": name, "model": cell.variant.name, **dc.asdict(one), "wilcoxon": rank}
                )
    return add_holm(found)


def is_ours(cell: Cell) -> bool:
    """Return whether a row is FPS-T as it is: called so, else, among ablations, what its data set's recipe has."""
    if "fpst" in cell.table.models:
        return cell.variant.name == "fpst"
    return cell.job() == dc.replace(cell, variant=Variant("fpst", "fpst")).job()
