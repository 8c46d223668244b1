"""A whole job, from its settings to its results, with or without a folder that keeps them."""

import dataclasses as dc
import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gyroformer.data.split import Split
from gyroformer.errors import DataError, GyroformerError, Interrupted, ProcessLostError, UsageError
from gyroformer.jobs.memory import check_memory, note_on_tokens
from gyroformer.jobs.plan import Plan, plan_model, plan_task
from gyroformer.jobs.several import check_processes
from gyroformer.options import as_plain
from gyroformer.processes.agreement import agreed, check_same, of_first
from gyroformer.processes.group import count as processes
from gyroformer.processes.group import is_first, together
from gyroformer.report import REPORT, write_run_report
from gyroformer.runs.files import read_results
from gyroformer.runs.folder import RunFolder, check_folder, is_done, plain_job
from gyroformer.runs.graph import GRAPH, changed_parts, graph_checksums, read_graph, write_graph
from gyroformer.runs.read import load_graph
from gyroformer.settings import GraphOptions, JobSettings
from gyroformer.tasks import TASKS
from gyroformer.tasks.classify import NodeClassification, WholeClassification
from gyroformer.train.loop import Listener, Stage, fit
from gyroformer.train.outcome import Outcome

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gyroformer.models.base import GraphModel
    from gyroformer.ops.positions import Positions

_log = logging.getLogger(__name__)

PREPARING = "preparing features, eigenvectors and the model"


@dc.dataclass(frozen=True)
class Finished:
    """A job that is done.

    Attributes:
        results: its results.
        plan: the trained model with its graph and task; None if the folder held a finished run.
        outcome: the course of training; None likewise.
    """

    results: dict[str, Any]
    plan: Plan | None = None
    outcome: Outcome | None = None


def run_job(
    job: JobSettings,
    *,
    data: "Data | None" = None,
    out: str | Path | None = None,
    resume: bool = False,
    listen: Listener | None = None,
    ignore_memory: bool = False,
    report: bool = True,
    keep: Mapping[str, np.ndarray] | None = None,
    look: "Callable[[Data], None] | None" = None,
    stage: Stage = lambda text: None,
    **given: Any,
) -> Finished:
    """Do a job.

    The graph is read and the whole job checked before the folder is touched: a mistake leaves nothing behind.

    Args:
        job: its settings.
        data: the graph, if it is not to be read from where the settings say.
        out: folder for the run; nothing is kept without one.
        resume: whether to continue what is in ``out``, or start it.
        listen: called after each epoch.
        ignore_memory: whether to start even if the memory is estimated not to suffice.
        report: whether to write ``report.html`` into ``out``; of many runs a page that compares them says more.
        keep: arrays to keep with the graph, for whoever reads the run again.
        look: called with the graph before the folder is touched; raises if it is not what it should be.
        stage: hears what is being done beside the epochs: reading, preparing, evaluating, writing.
        given: what the task takes from Python beside the graph, for instance a split.
    """
    stage("reading the graph")
    if out is None:
        with together():
            with agreed():
                graph = load_graph(job.graph) if data is None else data
                stage(PREPARING)
                alone = plan_job(job, graph, ignore_memory, given, look)
            outcome = fit(alone.model, alone.task, job.training, listen=listen, stage=stage)
            results = _results(alone, outcome)
            alone, more = with_final(alone, outcome, listen)
            return Finished({**results, **more}, alone, outcome)
    folder, settings = Path(out), as_plain(job)
    with ExitStack() as held:
        with together():
            with agreed():
                begun, done = of_first(lambda: _begun(folder, plain_job(settings), resume=resume))
                plan: Plan | None = None
                if not done:
                    graph = _graph_of(job, data, folder if begun else None)
                    check_same({"graph": {} if processes() == 1 else graph_checksums(graph)})
                    stage(PREPARING)
                    plan = plan_job(job, graph, ignore_memory, given, look)
                # of several processes one writes
                run = held.enter_context(RunFolder(folder)) if is_first() else None
                if run is not None:
                    run.begin(settings, resume=resume)
                    if plan is not None and not run.finished and not (run.path / GRAPH).exists():
                        # a run that was killed may have been begun without it
                        keep_graph(run.path, plan, by_name=data is None, more=keep, split=given.get("split"))
            if plan is None or of_first(lambda: run is not None and run.finished):
                _log.warning("%s: this run is finished; its results are given again", folder)
                return Finished(of_first(lambda: read_results(folder)))
            plan, outcome, results = _trained(run, plan, listen, stage)
        if report and run is not None:
            stage("writing the page of the run")
            _write_report(run.path)
        return Finished(results, plan, outcome)


def _begun(folder: Path, job: Mapping[str, Any], *, resume: bool) -> tuple[bool, bool]:
    """Return whether a folder holds the job, begun, and whether it is done; raise if it holds another one."""
    begun = check_folder(folder, dict(job), resume=resume) is not None
    return begun, begun and is_done(folder, dict(job))


def _trained(
    run: RunFolder | None, plan: Plan, listen: Listener | None, stage: Stage
) -> tuple[Plan, Outcome, dict[str, Any]]:
    """Train a plan, judge it, and write it to its folder; a process that has none writes nothing."""
    try:
        outcome = fit(plan.model, plan.task, plan.job.training, run=run, listen=listen, stage=stage)
        stage("judging and writing the run")
        results = _results(plan, outcome)
        plan, more = _final_in(run, plan, outcome, listen)
        results |= more
        write_run(run, plan, outcome, results)
    except GyroformerError as error:
        if run is not None and not isinstance(error, (Interrupted, ProcessLostError)):
            run.fail(error)
        raise
    return plan, outcome, results


def finish_run(run: RunFolder, plan: Plan, outcome: Outcome, *, tested: bool = True) -> dict[str, Any]:
    """Write the results of a trained plan to its folder, and return them.

    Args:
        run: the folder.
        plan: the trained plan.
        outcome: the course of training.
        tested: whether what is held out for the test is looked at: not before a run is finished.
    """
    results = _results(plan, outcome, tested=tested)
    write_run(run, plan, outcome, results)
    return results


def write_run(run: RunFolder | None, plan: Plan, outcome: Outcome, results: Mapping[str, Any]) -> None:
    """Write a trained plan and its results to its folder, if this process has it."""
    arrays = embedding_arrays(plan.model, plan.data)
    if run is None:
        return
    run.finish(plan.model, results, arrays, plan.data.ids, seconds=outcome.seconds, compiled=outcome.compiled)


def with_final(plan: Plan, outcome: Outcome, listen: Listener | None) -> tuple[Plan, dict[str, Any]]:
    """Return the plan with a model trained on all labelled nodes, if its job asks for one, and what to say of it.

    The model starts from the same seed and takes the same course as the one that was tested, up to its best epoch.
    """
    if not getattr(plan.job.objective, "final", False):
        return plan, {}
    assert isinstance(plan.task, NodeClassification)
    whole = WholeClassification(plan.task, balanced=plan.job.objective.balanced)
    _log.info("training on all %d labelled nodes for %d epochs", whole.nodes, outcome.best_epoch)
    last = plan_model(plan.job, plan.graph, whole)
    fit(last.model, whole, plan.job.training.but(patience=None), listen=listen, until=outcome.best_epoch)
    about = {"nodes": whole.nodes, "epochs": outcome.best_epoch}
    return dc.replace(plan, model=last.model), {"final": about, "curvatures": last.model.curvatures.tolist()}


def _final_in(
    run: RunFolder | None, plan: Plan, outcome: Outcome, listen: Listener | None
) -> tuple[Plan, dict[str, Any]]:
    """The same in a run folder, where a stop leaves what was trained before: it goes on from there."""
    try:
        return with_final(plan, outcome, listen)
    except KeyboardInterrupt:
        if run is None:
            raise
        raise Interrupted(run.path, outcome.epochs) from None


def train_only(job: JobSettings, graph: "Data", *, listen: Listener | None = None) -> Outcome:
    """Train and return the course of it: for choosing settings. What is held out for the test is not looked at."""
    task = plan_task(job, graph)
    check_memory(job, task)
    plan = plan_model(job, graph, task)
    return fit(plan.model, task, job.training, listen=listen)


def keep_graph(
    folder: Path,
    plan: Plan,
    *,
    by_name: bool,
    more: Mapping[str, np.ndarray] | None = None,
    split: object = None,
) -> None:
    """Write the graph of a plan into its run folder.

    Args:
        folder: the run folder.
        plan: the plan.
        by_name: whether the graph was read from where the settings say; else it is an object, kept whole.
        more: arrays to keep with it.
        split: a split of nodes that was given; one of edges is drawn again from the seed.
    """
    options = plan.job.graph if by_name else GraphOptions(directed=plan.job.graph.directed)
    uses = TASKS[plan.job.task].uses_features(plan.job.objective)
    kept = split if isinstance(split, Split) else None
    write_graph(folder, plan.graph, options=options, features=uses, more=more, split=kept)


def _graph_of(job: JobSettings, data: "Data | None", begun: Path | None) -> "Data":
    """Return the graph of the job; a run that was begun goes on with its own graph or not at all."""
    stored = None if begun is None else read_graph(begun)
    if stored is None:
        return load_graph(job.graph) if data is None else data
    if data is None and job.graph.source and not Path(job.graph.source).exists():
        return stored.data  # a data set, or a file that has gone
    now = load_graph(job.graph) if data is None else data
    changed = changed_parts(stored.checksums, graph_checksums(now))
    if changed:
        raise UsageError(
            f"{begun}: was begun on another graph than {job.graph.source or 'this one'} is now (changed: "
            f"{', '.join(changed)}); restore the file, or choose another --out"
        )
    return now


def _write_report(folder: Path) -> None:
    """Write the page of a finished run; where that fails the results are there all the same."""
    try:
        write_run_report(folder)
    except DataError as error:
        _log.warning("%s; to try again: gyroformer report %s --out %s", error, folder, folder / REPORT)


def plan_job(
    job: JobSettings,
    graph: "Data",
    ignore_memory: bool,
    given: dict[str, Any],
    look: "Callable[[Data], None] | None",
) -> Plan:
    """Return the plan of a job, once it is seen to be possible; the arguments are those of :func:`run_job`."""
    if look is not None:
        look(graph)
    task = plan_task(job, graph, **given)
    for note in (*task.notes, *note_on_tokens(job, task.data)):
        _log.warning(note)
    if not ignore_memory:
        check_memory(job, task)
    if processes() > 1:
        check_processes(job, task)
    return plan_model(job, graph, task)


def _results(plan: Plan, outcome: Outcome, *, tested: bool = True) -> dict[str, Any]:
    """Return the results that every task gives, and its own."""
    job, model = plan.job, plan.model
    with torch.no_grad():
        own = (plan.task.results if tested else plan.task.results_so_far)(model, outcome.metrics)
    return {
        **own,
        "task": job.task,
        "graph": job.graph.source,
        "nodes": int(plan.data.num_nodes or 0),
        "edges": plan.edges,
        "model": job.model.name,
        "parameters": sum(p.numel() for p in model.parameters()),
        "curvatures": model.curvatures.tolist(),
        "recipe": job.recipe,
        "seed": job.seed,
        "epochs": outcome.epochs,
        "best_epoch": outcome.best_epoch,
        "stopped": outcome.stopped,
        "rate_lowered": outcome.lowered,
        "seconds": round(outcome.seconds, 3),
    }


def embedding_arrays(
    model: "GraphModel", data: "Data", positions: "Positions | None" = None
) -> dict[str, np.ndarray]:
    """Return what ``embeddings.npz`` holds of the nodes: tangent vectors at the origin and, with classes, scores.

    ``positions`` are where the nodes are, if the model does not say so.
    """
    with torch.no_grad():
        found = model.positions(data) if positions is None else positions
        arrays = {"embedding": found.coordinates().cpu().numpy()}
        curvatures = model.curvatures
        if curvatures.numel():
            arrays["curvature"] = curvatures[-1].cpu().numpy()
        if model.classes is not None:
            arrays["probability"] = model.scores(data).softmax(-1).cpu().numpy()
    return arrays
