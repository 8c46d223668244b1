"""Do the runs of a table that are not done yet."""

from collections.abc import Sequence
from typing import Any

from gyroformer.jobs.pool import Planned, run_all
from gyroformer.paper.table import Cell


def run_cells(cells: Sequence[Cell], **options: Any) -> list[str]:
    """Do every run of the cells that has no row yet; return what failed, a line each. ``options``: of ``run_all``."""
    return run_all(
        [
            Planned(job, cell.variant.name, f"{cell.column.name} {cell.variant.name} seed {job.seed}")
            for cell in cells
            for job in cell.jobs()
        ],
        **options,
    )
