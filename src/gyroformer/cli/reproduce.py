"""``gyroformer reproduce``: the paper's tables, costs, figures and ablations, and what has been found so far."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gyroformer.cli.compare import pair_lines
from gyroformer.cli.many_runs import SOME_FAILED, many_runs
from gyroformer.cli.options import Json
from gyroformer.cli.terminal import print_json, print_table, say
from gyroformer.durable import check_target, make_folder
from gyroformer.errors import DataError, UsageError, did_you_mean

if TYPE_CHECKING:
    from gyroformer.paper.table import Cell
    from gyroformer.runs.rows import Rows

KNOWN = ("table1", "table2", "ablations", "hierarchies", "links", "widths", "one-head", "costs", "figures")
#: where the pictures go
PICTURES = Path("docs/figures")
#: options that say nothing about costs, and why
NOT_FOR_COSTS = {
    "seeds": "costs are medians of repeats on one model",
    "workers": "costs are measured one after the other, undisturbed",
    "out": "costs have no run folders",
}

Line = tuple[str, ...]


def reproduce(
    context: typer.Context,
    what: Annotated[str, typer.Argument(help=f"One of {', '.join(KNOWN)}.", show_default=False)],
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
        bool,
        typer.Option("--collect-only", help="Run nothing: show what the rows say so far (figures: draw it)."),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Costs only: measure anew what has its rows.")
    ] = False,
    results: Annotated[Path, typer.Option(help="Folder of the files of rows.")] = Path("results"),
    out: Annotated[Path, typer.Option(help="Folder for the runs.")] = Path("runs/reproduce"),
    as_json: Json = False,
) -> None:
    """Repeat the paper: every model, data set and seed, all kept, beside the printed numbers.

    Finished runs are skipped and interrupted ones resumed: stop the command whenever you like. Costs that this
    generation of the code has with as many threads are skipped too, unless --again is given.

    Example: gyroformer reproduce table1 --models fpst,tokengt --datasets web-edu --workers 2
    """
    if what not in KNOWN:
        near = did_you_mean(what, KNOWN)
        raise UsageError(f"nothing to reproduce is called {what!r}{near} (known: {', '.join(KNOWN)})")
    chosen = _words(datasets, "--datasets"), _words(models, "--models")
    given = [name for name in context.params if _is_given(context, name)]
    if what == "costs":
        _refuse_unused(given)
        _check_names(*chosen)
        _check_folders(results, None, must_exist=collect_only and "results" in given, write=not collect_only)
        if not collect_only:
            _measure(*chosen, results / "costs.csv", threads=threads, again=again)
        _show_costs(*chosen, results / "costs.csv", as_json=as_json)
        return
    if again:
        raise UsageError("--again is for costs: finished runs are not done again; leave it out")
    cells = _cells(what, *chosen, seeds)
    failed: list[str] = []
    _check_folders(results, out, must_exist=collect_only and "results" in given, write=not collect_only)
    if not collect_only:
        failed = _run(cells, results, out, workers, threads)
    rows = _all_rows(results)
    if what == "figures":
        _figures(rows, results, out, as_json=as_json)
    else:
        _summary(what, cells, seeds, rows, failed, collect_only=collect_only, as_json=as_json)
    if failed:
        say(f"{len(failed)} runs failed, the first: {failed[0]}", err=True)
        raise typer.Exit(SOME_FAILED)


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _check_folders(results: Path, out: Path | None, *, must_exist: bool, write: bool) -> None:
    """Raise unless rows can be read or, to ``write``, rows and runs can be written: before the work, not run by run."""
    if must_exist and not results.is_dir():
        raise DataError(f"--results {results}: is no folder; name the one that holds the files of rows")
    if write:
        make_folder(results)
        check_target(results / "rows.csv", "--results")
        if out is not None:
            make_folder(out)
            check_target(out / "run", "--out")


def _cells(what: str, datasets: list[str], models: list[str], seeds: int | None) -> "list[Cell]":
    from gyroformer.paper.tables import TABLES

    if what != "figures":
        return TABLES[what].cells(datasets, models, seeds)
    if datasets or models or seeds:
        raise UsageError("the figures have data sets, models and seeds of their own: leave these options out")
    from gyroformer.paper.figures import needed_cells  # which loads torch

    return needed_cells()


def _run(cells: "list[Cell]", results: Path, out: Path, workers: int, threads: int) -> list[str]:
    """Do the runs of the cells, table by table: each has a file of its own."""
    from gyroformer.paper.run import run_cells
    from gyroformer.paper.summary import rows_of

    known, failed = _all_rows(results), []
    for cell in cells:  # a row that is not what it should be is said before hours of work, not after
        rows_of(cell, known)
    for name in dict.fromkeys(cell.table.name for cell in cells):
        own = [cell for cell in cells if cell.table.name == name]
        known = _all_rows(results)
        with many_runs(lambda: "finished runs have their rows") as (tell, watch):
            failed += run_cells(
                own,
                file=results / f"{name}.csv",
                folder=out,
                known=known,
                workers=workers,
                threads=threads,
                tell=tell,
                watch=watch,
            )
    return failed


def _all_rows(results: Path) -> "Rows":
    """Return the rows of all tables: a run that several of them have is done once."""
    from gyroformer.paper.tables import TABLES
    from gyroformer.runs.rows import read_files

    return read_files(results / f"{name}.csv" for name in TABLES)


def _refuse_unused(given: list[str]) -> None:
    for name, why in NOT_FOR_COSTS.items():
        if name in given:
            raise UsageError(f"{why}: leave --{name} out")
    if {"again", "collect_only"} <= {*given}:
        raise UsageError("--again measures and --collect-only does not: leave one of them out")


def _check_names(datasets: list[str], models: list[str]) -> None:
    from gyroformer.paper.tables import TABLES

    TABLES["table1"].cells(datasets, models)  # names that are not there are said


def _measure(datasets: list[str], models: list[str], file: Path, *, threads: int, again: bool) -> None:
    """Measure the costs that are not kept, or all of them ``again``."""
    from gyroformer.paper.costs import add_costs, measure_costs, not_measured, paper_models, read_costs
    from gyroformer.paper.tables import NETWORKS

    kept = read_costs(file)
    wanted = datasets or NETWORKS, models or paper_models()
    left = not_measured([] if again else kept, *wanted, threads=threads)
    # as they come: whoever stops the command keeps what is measured
    for costs in measure_costs(left, threads=threads, tell=_say):
        add_costs(file, costs)


def _show_costs(datasets: list[str], models: list[str], file: Path, *, as_json: bool) -> None:
    from gyroformer.paper.costs import as_result, read_costs

    rows = [
        as_result(row)
        for row in read_costs(file)
        if (not datasets or row["dataset"] in datasets) and (not models or row["model"] in models)
    ]
    if as_json:
        print_json({"table": "costs", "rows": rows})
        return
    if not rows:
        say("costs: there are no rows yet; run the command without --collect-only")
        return
    head = ("data set", "model", "pass", "threads", "ms", "of TokenGT's", "MB")
    lines = [
        (
            row["dataset"],
            row["model"],
            row["part"],
            str(row["threads"]),
            f"{row['milliseconds']:.1f}",
            "" if row["ratio"] is None else f"{row['ratio']:.2f}",
            "" if row["megabytes"] is None else f"{row['megabytes']:.0f}",
        )
        for row in rows
    ]
    print_table(head, lines, numbers=range(3, len(head)))


def _figures(rows: "Rows", results: Path, out: Path, *, as_json: bool) -> None:
    from gyroformer.paper.figures import draw_figures

    drawn = draw_figures(rows, out, results, PICTURES, _say)
    if as_json:
        print_json({"table": "figures", "rows": [], "figures": [str(path) for path in drawn]})


def _summary(
    what: str,
    cells: "list[Cell]",
    seeds: int | None,
    rows: "Rows",
    failed: list[str],
    *,
    collect_only: bool,
    as_json: bool,
) -> None:
    from gyroformer.paper.summary import collected, differences
    from gyroformer.paper.tables import TABLES

    # Holm's family is the whole table, whatever part of it is asked for
    shown = {(cell.column.name, cell.variant.name) for cell in cells}
    whole = differences(TABLES[what].cells(seeds=seeds), rows)
    found, pairs = collected(cells, rows), [row for row in whole if (row["dataset"], row["model"]) in shown]
    if as_json:
        print_json({"table": what, "rows": found, "differences": pairs, "failed": failed})
        return
    if not found:
        todo = "run the command without --collect-only" if collect_only else "no run has finished"
        say(f"{what}: there are no rows yet; {todo}")
        return
    print_table(*_means(found), numbers=range(2, 8))
    say(
        "± is half the 95 % interval of the mean over seeds (Student's t); it does not cover the choice of nodes."
    )
    if pairs:
        say()
        say("FPS-T minus the others, paired by seed:")
        print_table(*_pairs(pairs), numbers=range(2, 8))


def _means(found: list[dict[str, Any]]) -> tuple[Line, list[Line]]:
    lines: list[Line] = []
    head = ("data set", "row", "mean", "±", "seeds", "paper", "width", "parameters")
    for row in found:
        half = "" if row["low"] is None else f"{row['mean'] - row['low']:.2f}"
        paper = "" if row["paper"] is None else f"{row['paper']:.2f} ± {row['paper_std']:.2f}"
        numbers = (f"{row['mean']:.2f}", half, str(row["seeds"]), paper)
        lines.append((row["dataset"], row["model"], *numbers, str(row["width"]), f"{row['parameters']:,}"))
    return head, lines


def _pairs(pairs: list[dict[str, Any]]) -> tuple[Line, list[Line]]:
    head, lines = pair_lines(pairs)
    return ("data set", *head), [(row["dataset"], *line) for row, line in zip(pairs, lines, strict=True)]


def _words(text: str | None, flag: str) -> list[str]:
    words = [word.strip() for word in (text or "").split(",") if word.strip()]
    if text is not None and not words:
        raise UsageError(f"{flag} is empty: give names with commas between, or leave it out for all")
    return words


def _say(line: str) -> None:
    say(line, err=True)
