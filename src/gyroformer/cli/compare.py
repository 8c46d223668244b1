"""``gyroformer compare``: several models on one graph, a table with paired differences, and one page of all runs."""

import dataclasses as dc
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gyroformer.cli.job_flags import (
    DerivedCommand,
    Flag,
    derived_class,
    given_values,
    job_flags,
    with_parameters,
)
from gyroformer.cli.many_runs import SOME_FAILED, many_runs
from gyroformer.cli.options import MAX_THREADS
from gyroformer.cli.progress import progress
from gyroformer.cli.terminal import print_json, print_table, say
from gyroformer.errors import GyroformerError, UsageError, did_you_mean
from gyroformer.models import get_model
from gyroformer.options import Options, from_plain, merged, option, options_of
from gyroformer.settings import JobSettings, make_job
from gyroformer.tasks import TASKS
from gyroformer.tasks.embed_objective import EmbedObjective
from gyroformer.tasks.task import metric_title

if TYPE_CHECKING:
    from gyroformer.jobs.compare import Comparison

HELP = """Compare models on a graph: the same seeds for each, mean with 95 % interval, paired differences, one page.

    The differences are those of the first model from each other one, seed by seed. Options that are not given are those
    of each model's usual recipe (its settings for such graphs); an option of a model goes to the models that have it.
    Finished runs are skipped and interrupted ones resumed: stop the command whenever you like, and give it again.

    Example: gyroformer compare embed friends.csv --models fpst,tokengt,gcn --seeds 5
    """


class CompareOptions(Options):
    """How models are compared."""

    models: str = option("the models, with commas between; the first is held against the others", default="")
    seeds: int = option(
        "runs of each model, with the seeds --seed, --seed + 1, …", default=5, at_least=1, at_most=1000
    )
    recipe: str | None = option("named settings for all models; none for each model's own", default=None)
    out: str | None = option(
        "folder for runs, rows, table and page; none for runs/compare-GRAPH-TASK", default=None
    )
    workers: int = option("processes at a time", default=1, at_least=1, at_most=256)
    threads: int | None = option(
        "CPU threads of each process; none to share the processors",
        default=None,
        at_least=1,
        at_most=MAX_THREADS,
    )
    ignore_memory: bool = option("start even if memory may not suffice", default=False)
    json: bool = option("print one JSON object, alone, on stdout", default=False)


def compare_command(
    guard: Callable[..., Any] = lambda f: f,
) -> tuple[Callable[..., None], type[DerivedCommand]]:
    """Return the command as a function and a class for Typer; its flags are those of the task and the models named."""

    def made(args: list[str]) -> Callable[..., None]:
        task = args[0] if args and args[0] in TASKS else "embed"
        flags = compare_flags(task, _named_models(args)) if args else []

        @guard
        def called(task: str, graph: str, **typed: Any) -> None:
            if task not in TASKS:
                near = did_you_mean(task, TASKS)
                raise UsageError(f"no task is called {task!r}{near} (known: {', '.join(TASKS)})")
            values = given_values(flags, typed, "fpst", [])
            options = from_plain(CompareOptions, values.pop("run", {}))
            _compare(graph, _jobs(task, graph, options, values), options)

        return with_parameters(
            called, "compare", HELP, [*_arguments(), *(flag.parameter() for flag in flags)]
        )

    return made([]), derived_class(made)


def compare_flags(task: str, models: list[str]) -> list[Flag]:
    """Return the flags of the command: those of the task, of every model named, and its own.

    They have no default but the command's own, since those of a job differ from model to model.
    """
    found: dict[tuple[str, ...], Flag] = {}
    for model in models or ["fpst"]:
        for flag in job_flags(task, model):
            if flag.path[0] != "run" and not (flag.path in found and flag.hidden):
                panel = "Models" if flag.path[0] == "model" else flag.panel
                shown = found[flag.path].hidden if flag.path in found else True
                found[flag.path] = dc.replace(flag, default=None, panel=panel, hidden=flag.hidden and shown)
    own = [
        Flag(("run", one.name), one, "Comparison", None if one.default in (False, "") else one.default)
        for one in options_of(CompareOptions)
    ]
    return [*own, *found.values()]


def _arguments() -> list[inspect.Parameter]:
    keyword = inspect.Parameter.KEYWORD_ONLY
    words = {
        "task": f"What for: {', '.join(TASKS)}.",
        "graph": "A data set's name, or a file.",
    }
    return [
        inspect.Parameter(
            name, keyword, annotation=Annotated[str, typer.Argument(help=help, show_default=False)]
        )
        for name, help in words.items()
    ]


def _named_models(args: list[str]) -> list[str]:
    """Return the models that the words name, as far as they exist; the command itself says what does not."""
    text = ""
    for word, following in zip(args, [*args[1:], ""], strict=False):
        if word == "--models":
            text = following
        elif word.startswith("--models="):
            text = word.partition("=")[2]
    found = []
    for name in _words(text):
        try:
            get_model(name)
        except GyroformerError:
            continue
        found.append(name)
    return found


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _jobs(task: str, graph: str, options: CompareOptions, values: dict[str, Any]) -> dict[str, JobSettings]:
    """Return the job of each model; an option of a model goes to those that have it."""
    from gyroformer.jobs.compare import chosen_models

    models = chosen_models(_words(options.models))
    given = values.pop("model", {}).get("options", {})
    have = {name: {one.name for one in get_model(name).choices()} for name in models}
    for key in given:
        flag = f"--{key.replace('_', '-')}"
        without = [name for name in models if key not in have[name]]
        if len(without) == len(models):
            raise UsageError(
                f"{flag} has no effect: none of the models {', '.join(models)} has such an option"
            )
        if without:
            say(f"{flag} is for the models that have it, not for {', '.join(without)}", err=True)
    jobs = {
        name: make_job(
            task,
            recipe=options.recipe,
            dataset=graph,
            **merged(
                values,
                {
                    "graph": {"source": graph},
                    "model": {
                        "name": name,
                        "options": {key: value for key, value in given.items() if key in have[name]},
                    },
                },
            ),
        )
        for name in models
    }
    return _started_alike(jobs)


def _started_alike(jobs: dict[str, JobSettings]) -> dict[str, JobSettings]:
    """Return the jobs with one start of the nodes: where a model of graphs cannot start along a tree, none does."""
    objectives = {name: job.objective for name, job in jobs.items()}
    if any(one.hierarchy for one in objectives.values() if isinstance(one, EmbedObjective)):
        return jobs  # their recipes differ in more than the start
    starts = {name: getattr(one, "start", None) for name, one in objectives.items()}
    if len(set(starts.values())) < 2:
        return jobs
    cannot = ", ".join(name for name, start in starts.items() if start == "random")
    say(f"the nodes of all models start in disorder, since {cannot} cannot start along a tree", err=True)
    return {name: job.but(objective=objectives[name].but(start="random")) for name, job in jobs.items()}


def _compare(graph: str, jobs: dict[str, JobSettings], options: CompareOptions) -> None:
    from gyroformer.jobs.compare import Comparison
    from gyroformer.jobs.plan import usable_device

    task = next(iter(jobs.values())).task
    out = Path(options.out or f"runs/compare-{Path(graph).name.split('.')[0]}-{task}")
    jobs = {name: job.but(device=usable_device(job.device)) for name, job in jobs.items()}
    comparison = Comparison(jobs, options.seeds, out)
    failed = _run(comparison, options)
    summary = comparison.summary()
    with progress() as shown:
        shown.show("writing the page of all runs")
        page = comparison.report(
            progress=lambda done, of: shown.show(f"page of all runs: distances, {done:,} of {of:,} nodes")
        )
    found = {
        **{"task": task, "graph": graph, **summary},
        **{"failed": failed, "report": None if page is None else str(page), "out": str(out)},
    }
    comparison.write_summary(found)
    if options.json:
        print_json(found)
    else:
        _show(found, page)
    if failed:
        say(f"{len(failed)} runs failed, the first: {failed[0]}", err=True)
        raise typer.Exit(SOME_FAILED)


def _run(comparison: "Comparison", options: CompareOptions) -> list[str]:
    """Do the runs, say where they are, and after Ctrl-C how to go on."""
    threads = options.threads or max(1, (os.cpu_count() or 1) // options.workers)

    def kept() -> str:
        return f"{len(comparison.done())} of {len(comparison.runs())} runs are done"

    with many_runs(kept) as (tell, watch):
        return comparison.run(
            workers=options.workers,
            threads=threads,
            ignore_memory=options.ignore_memory,
            tell=tell,
            watch=watch,
        )


def _show(found: dict[str, Any], page: Path | None) -> None:
    rows, pairs = found["rows"], found["differences"]
    if not rows:
        return
    say(f"{found['graph']}, {found['task']}: {metric_title(found['metric'])} in percent")
    lines = []
    for row in rows:
        half = "" if row["low"] is None else f"{row['mean'] - row['low']:.2f}"
        numbers = (
            f"{row['mean']:.2f}",
            half,
            str(row["seeds"]),
            f"{row['parameters']:,}",
            f"{row['seconds']:.1f}",
        )
        lines.append((row["model"], *numbers, row["recipe"]))
    print_table(
        ("model", "mean", "±", "seeds", "parameters", "seconds", "recipe"), lines, numbers=range(1, 6)
    )
    if any(row["seeds"] > 1 for row in rows):
        say(
            "± is half the 95 % interval of the mean over seeds (Student's t); seconds are those of one training."
        )
    if pairs:
        say()
        say(f"{pairs[0]['first']} minus the others, paired by seed:")
        print_table(*pair_lines(pairs), numbers=range(1, 7))
        if any(pair["corrected"] for pair in pairs):
            say("± and t allow for splits that share nodes or edges (Nadeau and Bengio).")
        say("p: how likely a difference so large is by chance alone; Holm's allows for several comparisons.")
    if page is not None:
        say(f"report: {page}")


def pair_lines(pairs: list[dict[str, Any]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return head and lines of a table of paired differences."""
    lines = []
    for row in pairs:
        half = "" if row["half"] is None else f"{row['half']:.2f}"
        tests = ("" if p is None else f"{p:.2g}" for p in (row["t"], row["holm"], row["wilcoxon"]))
        lines.append((row["model"], f"{row['mean']:+.2f}", half, str(row["pairs"]), *tests))
    return ("model", "difference", "±", "pairs", "t, p", "Holm, p", "Wilcoxon, p"), lines
