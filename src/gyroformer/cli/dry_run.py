"""``--dry-run`` of the commands that train: what a job will take, without doing it."""

import dataclasses as dc
from collections.abc import Callable
from typing import TYPE_CHECKING

from gyroformer.cli.job_flags import RunOptions
from gyroformer.cli.progress import progress
from gyroformer.cli.terminal import print_json, say, show
from gyroformer.processes.group import is_first
from gyroformer.settings import JobSettings

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gyroformer.jobs.dry_run import Forecast

GIGABYTE = 1e9


def dry_run(job: JobSettings, options: RunOptions, look: "Callable[[Data], None]") -> None:
    """Print what a job will take, all its seeds together; ``look`` is called with the graph."""
    from gyroformer.jobs.dry_run import forecast

    with progress() as shown:
        found = forecast(
            job,
            ignore_memory=options.ignore_memory,
            look=look,
            stage=lambda text: shown.show(f"{text} …"),
        )
    if not is_first():
        return
    if options.json:
        print_json({"dry_run": True, **dc.asdict(found), "seeds": options.seeds})
    else:
        _print(job, found, options.seeds)


def _print(job: JobSettings, found: "Forecast", seeds: int) -> None:
    from rich.table import Table

    from gyroformer.cli.training_bar import duration

    parts = sorted(
        ((size, name) for name, size in found.memory.items() if name != "total" and size > 0), reverse=True
    )
    most = ", ".join(f"{name} {size / GIGABYTE:.2f}" for size, name in parts[:3])
    length = f"{found.epochs:,} epochs" + (f" × {seeds} seeds" if seeds > 1 else "")
    table = Table.grid(padding=(0, 2))
    table.add_row("graph", f"{job.graph.source}: {found.nodes:,} nodes, {found.edges:,} edges")
    table.add_row("model", f"{job.model.name}, {found.parameters:,} parameters, {found.tokens:,} tokens")
    table.add_row(
        "memory",
        f"{found.memory['total'] / GIGABYTE:.2f} GB estimated ({most}); {found.memory_in_use / GIGABYTE:.2f} GB in "
        "use now",
    )
    table.add_row("preparing", duration(found.seconds_preparing))
    table.add_row(
        "an epoch",
        f"{found.seconds_per_epoch * 1e3:,.0f} ms, an evaluation {found.seconds_per_evaluation * 1e3:,.0f} ms",
    )
    table.add_row(
        "in all",
        f"{'at most ' if found.may_stop_early else ''}{duration(seeds * found.seconds)} for {length}, then the report",
    )
    show(table)
    say("nothing was written: leave out --dry-run to start")
