"""``gyroformer reproduce``: the paper's tables, run by run, and what has been found so far."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gyroformer.cli.options import Json
from gyroformer.cli.terminal import print_json, say, terminal
from gyroformer.durable import check_target
from gyroformer.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from gyroformer.paper.run import State

#: exit code if a run failed: the others are done, and their rows written
SOME_FAILED = 1


def reproduce(
    table: Annotated[str, typer.Argument(help="table1 (reconstruction) or table2 (classification).")],
    models: Annotated[
        str | None, typer.Option(help="Models, with commas between (default: all).", show_default=False)
    ] = None,
    datasets: Annotated[
        str | None, typer.Option(help="Data sets, with commas between (default: all).", show_default=False)
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, max=1000, help="Runs of each cell; the table's own by default.", show_default=False
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes at a time.")] = 1,
    threads: Annotated[int, typer.Option(min=1, max=1024, help="CPU threads of each process.")] = 1,
    collect_only: Annotated[
        bool, typer.Option("--collect-only", help="Run nothing: show what the rows say so far.")
    ] = False,
    results: Annotated[
        Path | None, typer.Option(help="File of rows (default: results/TABLE.csv).", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the runs.")] = Path("runs/reproduce"),
    as_json: Json = False,
) -> None:
    """Repeat a table of the paper: every model, data set and seed, all kept, beside the printed numbers.

    Finished runs are skipped and interrupted ones resumed: stop the command whenever you like.

    Example: gyroformer reproduce table1 --models fpst,tokengt --datasets web-edu --workers 2
    """
    from gyroformer.paper.rows import collected, read_rows
    from gyroformer.paper.run import run_cells
    from gyroformer.paper.tables import TABLES

    if table not in TABLES:
        near = did_you_mean(table, list(TABLES))
        raise UsageError(f"no table is called {table!r}{near} (known: {', '.join(TABLES)})")
    cells = TABLES[table].cells(_words(datasets, "--datasets"), _words(models, "--models"), seeds)
    file = Path("results") / f"{table}.csv" if results is None else results
    if file.parent.is_dir():
        check_target(file, "--results")
    failed: list[str] = []
    if not collect_only:
        failed = run_cells(cells, file=file, folder=out, workers=workers, threads=threads, tell=_tell)
    rows = collected(cells, read_rows(file))
    if as_json:
        print_json({"table": table, "metric": TABLES[table].metric, "rows": rows, "failed": failed})
    else:
        _show(table, rows)
    if failed:
        say(f"{len(failed)} runs failed, the first: {failed[0]}", err=True)
        raise typer.Exit(SOME_FAILED)


def _words(text: str | None, flag: str) -> list[str]:
    words = [word.strip() for word in (text or "").split(",") if word.strip()]
    if text is not None and not words:
        raise UsageError(f"{flag} is empty: give names with commas between, or leave it out for all")
    return words


def _tell(state: "State") -> None:
    from gyroformer.cli.training_bar import duration

    say(f"{state.done}/{state.total}, {duration(state.seconds_left)} left: {state.said}", err=True)


def _show(table: str, rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    if not rows:
        say(f"{table}: there are no rows yet; run the command without --collect-only")
        return
    shown = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("data set", "model"):
        shown.add_column(name)
    for name in ("mean", "±", "seeds", "paper", "width", "parameters"):
        shown.add_column(name, justify="right")
    for row in rows:
        half = "" if row["low"] is None else f"{row['mean'] - row['low']:.2f}"
        paper = "" if row["paper"] is None else f"{row['paper']:.2f} ± {row['paper_std']:.2f}"
        numbers = (
            f"{row['mean']:.2f}",
            half,
            str(row["seeds"]),
            paper,
            str(row["width"]),
            f"{row['parameters']:,}",
        )
        shown.add_row(row["dataset"], row["model"], *numbers)
    terminal().print(shown)
    say(
        "± is half the 95 % interval of the mean over seeds (Student's t); it does not cover the choice of nodes."
    )
