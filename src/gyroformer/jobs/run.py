"""Run a job from its settings to its results, with or without a folder that keeps them."""

import dataclasses as dc
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gyroformer.config import as_plain
from gyroformer.errors import DataError
from gyroformer.jobs.classify import classify_results, plan_classify
from gyroformer.jobs.embed import embed_results, plan_embed
from gyroformer.jobs.link import link_results, plan_link
from gyroformer.jobs.memory import check_memory
from gyroformer.jobs.plan import Plan, read_graph_of
from gyroformer.jobs.settings import JobSettings
from gyroformer.models import GraphModel
from gyroformer.report import REPORT, write_run_report
from gyroformer.train.loop import Listener, fit
from gyroformer.train.outcome import Outcome
from gyroformer.train.run_folder import RunFolder

if TYPE_CHECKING:
    from torch_geometric.data import Data

_log = logging.getLogger(__name__)


@dc.dataclass(frozen=True)
class TaskPart:
    """What a task adds to the common course of a job: its plan, and its figures at the end."""

    plan: Callable[..., Plan]
    results: Callable[[Plan, dict[str, float]], dict[str, Any]]


TASK_PARTS: dict[str, TaskPart] = {
    "embed": TaskPart(plan_embed, embed_results),
    "classify": TaskPart(plan_classify, classify_results),
    "link": TaskPart(plan_link, link_results),
}


@dc.dataclass(frozen=True)
class Finished:
    """A job that is done.

    Attributes:
        results: its figures.
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
    **planning: Any,
) -> Finished:
    """Do a job.

    Args:
        job: its settings.
        data: the graph, if it is not to be read from where the settings say.
        out: folder for the run; nothing is kept without one.
        resume: whether to continue what is in ``out``, or start it.
        listen: called after each epoch.
        ignore_memory: whether to start even if the memory is estimated not to suffice.
        report: whether to write ``report.html`` into ``out``: 5 MB, too much for each of many runs.
        planning: further arguments of the task's plan.
    """
    if out is None:
        plan = _planned(job, data, ignore_memory, planning)
        outcome = fit(plan.model, plan.task, job.training, listen=listen)
        return Finished(_results(plan, outcome), plan, outcome)
    with RunFolder(out) as run:
        run.begin(as_plain(job), resume=resume)
        if run.finished:
            _log.warning("%s: this run is finished; its results are given again", run.path)
            return Finished(run.results())
        plan = _planned(job, data, ignore_memory, planning)
        outcome = fit(plan.model, plan.task, job.training, run=run, listen=listen)
        results = _results(plan, outcome)
        arrays = embedding_arrays(plan.model, plan.data)
        run.finish(plan.model, outcome, results, arrays, plan.data.ids)
        if report:
            _write_report(run.path, plan.data)
        return Finished(results, plan, outcome)


def _write_report(folder: Path, data: "Data") -> None:
    """Write the page of a finished run; where that fails the results are there all the same."""
    try:
        write_run_report(folder, data)
    except DataError as error:
        _log.warning("%s; to try again: gyroformer report %s --out %s", error, folder, folder / REPORT)


def _planned(job: JobSettings, data: "Data | None", ignore_memory: bool, planning: dict[str, Any]) -> Plan:
    data = read_graph_of(job) if data is None else data
    plan = TASK_PARTS[job.task].plan(job, data, **planning)
    for note in plan.notes:
        _log.warning(note)
    if not ignore_memory:
        check_memory(plan)
    return plan


def _results(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    """Return the figures that every task gives, and its own."""
    job, model = plan.job, plan.model
    with torch.no_grad():
        own = TASK_PARTS[job.task].results(plan, outcome.metrics)
    return {
        **own,
        "task": job.task,
        "graph": job.graph.source,
        "nodes": int(plan.data.num_nodes or 0),
        "edges": plan.data.summary.edges if "summary" in plan.data else plan.data.edge_index.size(1) // 2,
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


def embedding_arrays(model: GraphModel, data: "Data") -> dict[str, np.ndarray]:
    """Return what ``embeddings.npz`` holds of the nodes: coordinates and, of a model with classes, scores."""
    with torch.no_grad():
        arrays = {"embedding": model.positions(data).coordinates().cpu().numpy()}
        curvatures = model.curvatures
        if curvatures.numel():
            arrays["curvature"] = curvatures[-1].cpu().numpy()
        if model.classes is not None:
            arrays["probability"] = model.scores(data).softmax(-1).cpu().numpy()
    return arrays
