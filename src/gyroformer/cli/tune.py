"""``gyroformer tune``: search for settings, and write the best as a recipe."""

import dataclasses as dc
import inspect
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gyroformer.cli.job_flags import Flag, given_values, job_flags, with_parameters
from gyroformer.cli.many_runs import going_on
from gyroformer.cli.options import Json
from gyroformer.cli.terminal import print_json, say
from gyroformer.durable import check_target, make_folder
from gyroformer.errors import UsageError, did_you_mean
from gyroformer.models import get_model
from gyroformer.options import as_plain, merged, options_of
from gyroformer.settings import GraphOptions, JobSettings
from gyroformer.tasks import TASKS
from gyroformer.tasks.task import metric_title

if TYPE_CHECKING:
    from gyroformer.cli.progress import Progress
    from gyroformer.search.run import Found
    from gyroformer.search.search import Search
    from gyroformer.search.study import Told, Underway

#: the flags that a job has too, of all tasks: which graph, and where to compute
FLAGS = [
    *(Flag(("graph", one.name), one, "Graph") for one in options_of(GraphOptions) if one.name != "source"),
    *(Flag((one.name,), one, "Run", one.default) for one in options_of(JobSettings) if one.name == "device"),
]


def tune(
    task: Annotated[str, typer.Argument(help="What for: embed, classify or link.", show_default=False)],
    graph: Annotated[str, typer.Argument(help="A data set's name, or a file.", show_default=False)],
    model: Annotated[str, typer.Option(help="The model.")] = "fpst",
    trials: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Settings tried, in all and by all workers.")
    ] = 20,
    seeds: Annotated[
        int,
        typer.Option(
            min=1, max=1000, help="Runs of each trial, whose mean counts; each draws its own split."
        ),
    ] = 1,
    fix: Annotated[
        list[str] | None,
        typer.Option(
            help="Hold an option, named as its flag: --fix epochs=200. May be repeated.",
            metavar="NAME=VALUE",
            show_default=False,
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="Where options outside the space come from (default: the usual recipe).", show_default=False
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            help="A database's URL, or a file that several machines see (default: a file under --out).",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes at a time.")] = 1,
    threads: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="CPU threads of each process.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="Seed of the proposals.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the search and the recipe.")] = Path("runs/tune"),
    write: Annotated[
        Path | None,
        typer.Option(help="Where to write the recipe (default: under --out).", show_default=False),
    ] = None,
    as_json: Json = False,
    **typed: Any,
) -> None:
    """Search for a model's settings on a graph and write the best as a recipe, for --recipe FILE.

    Settings are chosen on validation; the test is not looked at. Stopping the command costs the trials under way: given
    again, it goes on. Start it on several machines with one --storage and they share the work.

    Example: gyroformer tune classify cora --model gcn --trials 20 --workers 2
    """
    from gyroformer.search.run import run_search, write_found
    from gyroformer.search.search import Search

    if task not in TASKS:
        raise UsageError(f"no task is called {task!r}{did_you_mean(task, TASKS)} (known: {', '.join(TASKS)})")
    get_model(model)
    fixed = merged(_fixed(task, model, recipe, graph, fix or []), _typed(task, typed, fix or []))
    search = _on_device(Search(task, graph, model, trials, recipe, fixed, seeds, seed))
    if write is not None:
        _check_write(write)
    where = storage or str(out / "journal.log")
    with going_on(lambda: "finished trials are kept") as shown:
        teller = _Teller(shown, search.judged_by, trials)
        found = run_search(
            search, where, workers=workers, threads=threads, tell=teller.tell, watch=teller.watch
        )
    path = write or out / f"{found.study}.toml"
    write_found(path, found, search, _command(sys.argv[1:]))
    if as_json:
        print_json(_json(found, search.judged_by, path))
    else:
        _show(found, search.judged_by, path)


with_parameters(
    tune,
    "tune",
    inspect.getdoc(tune) or "",
    [
        *(one for one in inspect.signature(tune).parameters.values() if one.name != "typed"),
        *(flag.parameter() for flag in FLAGS),
    ],
)


def _typed(task: str, typed: Mapping[str, Any], fix: list[str]) -> dict[str, Any]:
    """Return what was typed of the flags that a job has too, nested like a job's."""
    own = {flag.path for flag in job_flags(task)}
    held = {pair.partition("=")[0] for pair in fix}
    for flag in FLAGS:
        if typed.get("__".join(flag.path)) is None:
            continue
        if flag.path not in own:
            raise UsageError(f"{task} has no option --{flag.name}: leave it out")
        if flag.name in held:
            raise UsageError(f"{flag.name} is given twice, as --{flag.name} and by --fix: keep one")
    return given_values(FLAGS, typed, "fpst", [])


def _on_device(search: "Search") -> "Search":
    """Return the search on a device that is there; whatever else is wrong is said too, before anything is written."""
    from gyroformer.jobs.plan import usable_device

    wanted = search.job().device
    if (device := usable_device(wanted)) == wanted:
        return search
    return dc.replace(search, fixed=merged(search.fixed, {"device": device}))


def _check_write(path: Path) -> None:
    if not path.name.endswith(".toml"):
        raise UsageError(f"--write {path}: the name must end in .toml, or --recipe will not take the file")
    make_folder(path.parent)
    check_target(path, "--write")


def _fixed(task: str, model: str, recipe: str | None, graph: str, pairs: list[str]) -> dict[str, Any]:
    """Return the options that are held, nested like a job's; each is named and read as its flag is."""
    flags = [flag for flag in job_flags(task, model, recipe, graph) if flag.path[0] != "run"]
    known = {flag.name.partition("/")[0]: flag for flag in flags if not flag.hidden}
    typed: dict[str, Any] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator:
            raise UsageError(f"--fix takes NAME=VALUE, got {pair!r}")
        if name == "seed":
            raise UsageError(
                "--fix seed has no effect: each trial has seeds of its own; --seed is the proposals'"
            )
        if name not in known:
            raise UsageError(f"--fix: {task} with {model} has no option {name!r}{did_you_mean(name, known)}")
        flag = known[name]
        if "__".join(flag.path) in typed:
            raise UsageError(f"--fix gives {name} twice: keep one")
        typed["__".join(flag.path)] = _switch(name, text) if flag.is_switch else text
    return given_values(flags, typed, model, [])


def _switch(name: str, text: str) -> bool:
    words = {"yes": True, "true": True, "no": False, "false": False}
    if text.lower() not in words:
        raise UsageError(f"--fix {name} must be yes or no, got {text!r}")
    return words[text.lower()]


class _Teller:
    """Prints a line for each trial that has ended, and between them how those under way get on."""

    def __init__(self, shown: "Progress", metric: str, trials: int) -> None:
        self.shown, self.metric, self.trials = shown, metric_title(metric), trials
        self.begun, self.heard, self.done = time.monotonic(), 0, 0
        self.underway = dict[int, "Underway"]()

    def tell(self, told: "Told") -> None:
        """Hear of a trial that has ended, or of a wait for others."""
        self.done = told.done
        self.underway.pop(told.number, None)
        if told.state == "waiting":
            self.shown.tell(f"{self._where()}: waiting for the trials of other workers ({told.said})")
            return
        if told.state == "taken":
            self.shown.tell(f"{self._where()}: trial {told.number} is left ({told.said})")
            return
        self.heard += 1
        value = f"{self.metric} {told.value:.2f}" if told.value is not None else told.state
        best = "" if told.best is None else f", best {told.best:.2f}"
        why = f": {told.said}" if told.said else ""
        self.shown.tell(f"{self._where()}: trial {told.number} {value}{why}{best}")

    def watch(self, one: "Underway") -> None:
        """Hear how a trial gets on."""
        self.underway[one.number] = one
        about = ", ".join(_about(one) for _, one in sorted(self.underway.items()))
        self.shown.show(f"{self._where()}: {about}")

    def _where(self) -> str:
        """Return how many trials have ended, and the time that the others will take at the pace of these."""
        from gyroformer.cli.training_bar import duration

        count = f"{self.done}/{self.trials}"
        if not self.heard:
            return count
        left = (time.monotonic() - self.begun) / self.heard * max(self.trials - self.done, 0)
        return f"{count}, {duration(left)} left"


def _about(one: "Underway") -> str:
    run = f" run {one.run}/{one.runs}" if one.runs > 1 else ""
    return f"trial {one.number}{run} " + (f"epoch {one.epoch:,}/{one.epochs:,}" if one.epoch else "starts")


#: flags that say where and how fast, not what
NOT_KEPT = ("--write", "--out", "--storage", "--workers", "--threads")


def _command(words: Sequence[str]) -> str:
    """Return the command that was typed, by the program's name, without what does not decide its result."""
    kept, skip = ["gyroformer"], False
    for word in words:
        name, separator, _ = word.partition("=")
        if not skip and name not in NOT_KEPT and word != "--json":
            kept.append(word)
        skip = name in NOT_KEPT and not separator and not skip
    return shlex.join(kept)


def _json(found: "Found", metric: str, path: Path) -> dict[str, Any]:
    best = {"trial": found.number, "value": found.value, "params": found.params, "recipe": str(path)}
    return {
        "best": best,
        "metric": metric,
        "held_out": metric.startswith("val_"),
        "study": found.study,
        "trials": found.trials,
        "pruned": found.pruned,
        "failed": found.failed,
    }


def _show(found: "Found", metric: str, path: Path) -> None:
    say(
        f"best of {found.trials} trials ({found.pruned} pruned, {found.failed} failed): {metric_title(metric)} "
        f"{found.value:.2f} in trial {found.number}"
    )
    for name, value in found.params.items():
        say(f"  {name} = {value}")
    if not metric.startswith("val_"):
        say("chosen on the graph itself: this task holds nothing out")
    say(f"recipe: {path}")
    job = found.job
    words = [job.task, job.graph.source, *_outside(job), "--model", job.model.name, "--recipe", str(path)]
    say(f"to use it: {shlex.join(['gyroformer', *words])}")


def _outside(job: JobSettings) -> list[str]:
    """Return the flags for what a recipe does not hold: which graph, where to compute and how precisely."""
    plain, words = as_plain(job), list[str]()
    for flag in job_flags(job.task):
        *tables, name = flag.path
        if flag.path[0] not in ("graph", "device", "dtype"):
            continue
        value = (plain[tables[0]] if tables else plain)[name]
        if value == flag.option.default:
            continue
        if flag.is_switch:
            words.append(flag.words.split("/")[0 if value else 1])
        else:
            words += [f"--{flag.name}", str(value)]
    return words
