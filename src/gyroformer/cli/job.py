"""``gyroformer embed``, ``classify``, ``link``: run a job, or several, and print what came out."""

import shlex
from collections.abc import Callable, Container
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gyroformer.cli.classes import print_classes
from gyroformer.cli.dry_run import dry_run
from gyroformer.cli.job_flags import RunOptions
from gyroformer.cli.options import set_threads
from gyroformer.cli.predict import print_answer
from gyroformer.cli.progress import progress
from gyroformer.cli.terminal import print_json, say, show, styled
from gyroformer.errors import (
    DivergedError,
    EchoedError,
    Interrupted,
    ProcessLostError,
    UsageError,
    did_you_mean,
)
from gyroformer.options import Options, as_plain, options_of
from gyroformer.processes.group import is_first, together
from gyroformer.processes.launch import connected, launched, speaks
from gyroformer.settings import JobSettings, make_job
from gyroformer.tasks import TASKS
from gyroformer.tasks.task import metric_title

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gyroformer.jobs.predict import Answer

RUNS = Path("runs")
#: the file of a link run that holds the likeliest missing edges
NEW_EDGES = "new_edges.csv"
#: the page of a run
REPORT = "report.html"


def run_command(graph: str, job: JobSettings, options: RunOptions) -> None:
    """Run a job as the options say and print its result.

    Args:
        graph: what the user gave as the graph.
        job: what is to be done.
        options: how.
    """
    with progress() as shown:
        if speaks():
            shown.show("loading torch …")
        import_module("gyroformer.jobs.run")
    from gyroformer.jobs.plan import usable_device

    set_threads(options.threads)
    job = job.but(device=usable_device(job.device))
    with connected(job.device, options.wait):
        _run(graph, job, options)


def _run(graph: str, job: JobSettings, options: RunOptions) -> None:
    if options.dry_run:
        dry_run(job, options, _looker(options))
        return
    out = _folder(graph, job, options)
    try:
        results = _one(job, out, options) if options.seeds == 1 else _many(job, out, options)
    except Interrupted as stop:
        # with several seeds the folder that is resumed is the one above the run's
        raise Interrupted(out, stop.epoch) from None
    except ProcessLostError as lost:
        lost.run = out if is_first() else None
        raise
    except DivergedError as error:  # as it is in all processes
        raise error if is_first() else EchoedError(error.exit_code) from None
    if not is_first():
        return
    with progress() as shown:
        shown.show("looking for missing edges …")
        found = _new_edges(out, job, options) if "new_edges" in TASKS[job.task].run_flags else None
    if options.json:
        edges = {} if found is None else {"new_edges": found.records()}
        print_json({**results, **edges, "run": str(out)})
        return
    _print(results, TASKS[job.task].kind(job.objective).shown, out)
    print_classes(results)
    if found is not None:
        print_answer(found, title="most likely missing edges")
        say(f"written: {out / NEW_EDGES}")
    for line in next_steps(job, out, several=options.seeds > 1):
        say(line)


def _folder(graph: str, job: JobSettings, options: RunOptions) -> Path:
    """Return the folder of the run; several processes agree on it, and on all else that they were told."""
    from gyroformer.jobs.several import check_alike
    from gyroformer.processes.agreement import of_first

    if launched() > 1:
        check_alike(job, {"run": as_plain(options)})
    with together():
        return of_first(
            lambda: Path(options.out) if options.out else _default_folder(graph, job, resume=options.resume)
        )


def _new_edges(out: Path, job: JobSettings, options: RunOptions) -> "Answer | None":
    """Return the likeliest missing edges by the run in ``out``, or by the first of several, and write them there."""
    if not options.new_edges:
        return None
    from gyroformer.jobs.answer_files import write_answers
    from gyroformer.jobs.predict import new_edges
    from gyroformer.jobs.restore import restore
    from gyroformer.jobs.seeds import seed_folder

    folder = out if options.seeds == 1 else seed_folder(out, job.seed)
    found = new_edges(restore(folder, verify=False), options.new_edges, options.for_node)
    write_answers(out / NEW_EDGES, [found], {})
    return found


def _one(job: JobSettings, out: Path, options: RunOptions) -> dict[str, Any]:
    from gyroformer.cli.training_bar import training_bar
    from gyroformer.jobs.run import run_job

    with training_bar() as listen:
        done = run_job(
            job,
            out=out,
            resume=options.resume,
            listen=listen,
            ignore_memory=options.ignore_memory,
            look=_looker(options),
            stage=listen.stage,
        )
    return done.results


def _looker(options: RunOptions) -> "Callable[[Data], None]":
    """Return the check that the node of ``--for`` is one, before hours are spent."""

    def look(graph: "Data") -> None:
        name = options.for_node
        known = {str(one) for one in graph.ids} if name is not None else set()
        if name is not None and name not in known:
            raise UsageError(f"--for {name}: no node has this id{did_you_mean(name, sorted(known))}")

    return look


def _many(job: JobSettings, out: Path, options: RunOptions) -> dict[str, Any]:
    """Run all seeds; the result has the keys of one run, with means as values."""
    from gyroformer.cli.training_bar import training_bar
    from gyroformer.jobs.seeds import run_seeds

    key = TASKS[job.task].kind(job.objective).shown[0]

    def tell(seed: int, results: dict[str, Any]) -> None:
        say(f"seed {seed}: {metric_title(key)} {results[key]:.2f} ({results['seconds']:.0f} s)", err=True)
        bar.about = f"run {seed - job.seed + 2} of {options.seeds}: "

    with training_bar() as bar:
        bar.about = f"run 1 of {options.seeds}: "
        found = run_seeds(
            job,
            options.seeds,
            out=out,
            resume=options.resume,
            tell=tell,
            listen=bar,
            stage=bar.stage,
            ignore_memory=options.ignore_memory,
            look=_looker(options),
        )
    last = found["runs"][-1]
    return {**last, **found["mean"], **found}


def _default_folder(graph: str, job: JobSettings, *, resume: bool) -> Path:
    """Return ``runs/GRAPH-TASK-MODEL``, with a number if that is taken and not to be resumed."""
    stem = f"{Path(graph).name.split('.')[0]}-{job.task}-{job.model.name}"
    first = RUNS / stem
    if resume or not first.exists():
        return first
    number = 2
    while (RUNS / f"{stem}-{number}").exists():
        number += 1
    return RUNS / f"{stem}-{number}"


def _print(results: dict[str, Any], shown: tuple[str, ...], out: Path) -> None:
    from rich.table import Table

    from gyroformer.jobs.seeds import seed_folder

    table = Table.grid(padding=(0, 2))
    spread = results.get("interval", {})
    for key in shown:
        if results.get(key) is None:  # a metric that this graph is too small for
            continue
        half = spread.get(key)
        value = f"{results[key]:.2f}" + (f" ± {half:.2f}" if half is not None else "")
        table.add_row(metric_title(key), styled(value) if key == shown[0] else value)
    runs = len(results.get("runs", [])) or 1
    table.add_row("graph", f"{results['graph']}: {results['nodes']:,} nodes, {results['edges']:,} edges")
    if isinstance(results.get("hierarchy"), dict):
        table.add_row("hierarchy", _hierarchy_line(results["hierarchy"]))
    if isinstance(results.get("split"), dict):
        table.add_row("split", _split_line(results["split"], runs))
    table.add_row(
        "model", f"{results['model']}, {results['parameters']:,} parameters, recipe {results['recipe']}"
    )
    table.add_row("curvatures", _curvatures(results["curvatures"]) + (" (last run)" if runs > 1 else ""))
    for line in _meaning(out if runs == 1 else seed_folder(out, results["runs"][-1]["seed"])):
        table.add_row("", line)
    early = f", best at {results['best_epoch']}" if results["best_epoch"] != results["epochs"] else ""
    early += ", converged" if results["stopped"] == "converged" else ""
    table.add_row("training", f"{results['epochs']:,} epochs{early}, {results['seconds']:.1f} s")
    if results.get("final"):
        about = results["final"]
        table.add_row(
            "final model",
            f"trained on all {about['nodes']:,} labelled nodes for {about['epochs']:,} epochs; the metrics are "
            "those of the model before it, it has no test of its own",
        )
    if results["rate_lowered"]:
        table.add_row("note", "a step was not finite: the learning rates were lowered once")
    if runs > 1:
        table.add_row("runs", f"{runs}; ± is half the 95 % interval of the mean (Student's t)")
    table.add_row("run folder", str(out))
    if (out / REPORT).exists():
        table.add_row("report", str(out / REPORT))
    show(table)


def next_steps(job: JobSettings, out: Path, *, several: bool = False) -> list[str]:
    """Return what to do with a finished job: ask it or look at it, hold it against another model.

    After ``embed`` also how to find out whether the graph itself is better embedded curved or flat.
    """
    folder, page = shlex.quote(str(out)), shlex.quote(str(out / REPORT))
    asked = {
        "nearest": "--nearest 10 --node ID",
        "labels": "--labels --out predicted.csv",
        "new_edges": "--for ID",
    }
    use = f"predict {folder} {asked[TASKS[job.task].answer]}"
    hierarchy = job.task == "embed" and getattr(job.objective, "hierarchy", False)
    if hierarchy:
        use = f"predict {folder} --ancestors 5 --node ID"
    if several:
        use = f"report {folder} --out {page}"
    rival = "tokengt" if job.model.name == "fpst" else "fpst"
    about = _hierarchy_words(job) if hierarchy else _words(job.graph)
    words = ["compare", job.task, job.graph.source, *about, "--models", f"{job.model.name},{rival}"]
    lines = [f"next: gyroformer {use}", f"      gyroformer {shlex.join(words)} --seeds 5"]
    if job.task == "embed" and not hierarchy:
        reading = ("header", "source_column", "target_column")
        words = ["curvature", job.graph.source, *_words(job.graph, only=reading)]
        lines.append(f"      gyroformer {shlex.join(words)} --fit")
    return lines


def _hierarchy_words(job: JobSettings) -> list[str]:
    """Return what is typed for a hierarchy: that it has directions, and what its recipe says, goes without saying."""
    options: dict[str, Any] = {}
    width = job.model.options["dim"]
    usual = _usual_hierarchy(job, options)
    if width != usual.model.options["dim"]:
        options["dim"] = width
        usual = _usual_hierarchy(job, options)  # its width may have a recipe of its own
    words = [word for word in _words(job.graph) if word != "--directed"]
    words += ["--hierarchy", *_words(job.objective, usual=usual.objective)]
    return [*words, "--dim", str(width)] if options else words


def _usual_hierarchy(job: JobSettings, options: dict[str, Any]) -> JobSettings:
    model = {"name": job.model.name, "options": options}
    return make_job(job.task, graph={"source": job.graph.source}, model=model, objective={"hierarchy": True})


def _words(given: Options, only: Container[str] | None = None, usual: Options | None = None) -> list[str]:
    """Return what is typed for options, or for some of them, that are not the usual ones."""
    words: list[str] = []
    for one in options_of(type(given)):
        value, flag = getattr(given, one.name), f"--{one.flag or one.name.replace('_', '-')}"
        normal = one.default if usual is None else getattr(usual, one.name)
        if one.name == "source" or value == normal or (only is not None and one.name not in only):
            continue
        if isinstance(value, bool):
            words.append(flag if value else flag.replace("--", "--no-", 1))
        else:
            words += [flag, str(value)]
    return words


def _hierarchy_line(about: dict[str, Any]) -> str:
    roots = "1 root" if about["roots"] == 1 else f"{about['roots']:,} roots"
    held = f", {about['held_out']:,} of them held out" if about["held_out"] else ""
    return f"{about['pairs']:,} pairs of a node and an ancestor{held}; {roots}, at most {about['depth']} levels below"


def _split_line(split: dict[str, Any], runs: int) -> str:
    sizes = f"{split['train']}/{split['val']}/{split['test']} train/validation/test"
    which = next((f", {key} {split[key]}" for key in ("seed", "index") if split[key] is not None), "")
    if runs > 1 and which:
        which = ", another in each run"
    leak = f"; LEAKS: {split['leaks']} test nodes are training nodes" if split["leaks"] else ""
    return f"{split['name']}{which}: {sizes}{leak}"


def _curvatures(layers: list[list[float]]) -> str:
    if not any(k for heads in layers for k in heads):
        return "0: the space is flat"
    return "; ".join(" ".join(f"{k:+.3f}" for k in heads) for heads in layers)


def _meaning(run: Path) -> list[str]:
    """Return what the curvatures of a run mean, a line for each kind of space; nothing where all is flat."""
    from gyroformer.report.story import SHAPES, heads_by_kind
    from gyroformer.runs.read import open_run

    arrays = open_run(run, verify=False).embeddings
    curvature = arrays.get("curvature")
    if curvature is None or not curvature.any():
        return []
    found = heads_by_kind(arrays["embedding"], curvature)
    several = len(curvature) > 1
    lines = []
    for kind, heads in found.items():
        names = " and ".join(str(head + 1) for head in heads)
        which = f"head{'s' if len(heads) > 1 else ''} {names}: " if several and len(found) > 1 else ""
        lines.append(f"{which}{kind}: {SHAPES[kind]}")
    return lines
