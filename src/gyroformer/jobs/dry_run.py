"""What a job will take: its graph, tokens and memory, and its time from a few epochs that are trained and forgotten."""

import dataclasses as dc
import itertools
import math
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gyroformer.jobs.memory import estimate, memory_in_use, tokens_of
from gyroformer.jobs.plan import Plan
from gyroformer.jobs.run import PREPARING, plan_job
from gyroformer.processes.agreement import agreed
from gyroformer.processes.group import together
from gyroformer.runs.read import load_graph
from gyroformer.settings import JobSettings
from gyroformer.train.loop import Stage, fit
from gyroformer.train.outcome import Progress

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: epochs that are trained: the first is not counted, the last one is evaluated
EPOCHS = 5


@dc.dataclass(frozen=True)
class Forecast:
    """What a job will take.

    Attributes:
        nodes: of the graph.
        edges: undirected ones, or directed ones in a directed job.
        tokens: that attention sees; the nodes, for a model without tokens.
        parameters: of the model.
        memory: estimated bytes by what takes them, with their ``total``.
        memory_in_use: bytes that this process has after a few epochs.
        epochs: epochs in all, if nothing ends the training early.
        evaluations: how many of them are evaluated.
        seconds_preparing: reading the graph and preparing the model.
        seconds_per_epoch: of a step, without evaluation.
        seconds_per_evaluation: of an evaluation.
        seconds: training in all, at most.
        may_stop_early: whether convergence or patience may end it before.
    """

    nodes: int
    edges: int
    tokens: int
    parameters: int
    memory: dict[str, float]
    memory_in_use: float
    epochs: int
    evaluations: int
    seconds_preparing: float
    seconds_per_epoch: float
    seconds_per_evaluation: float
    seconds: float
    may_stop_early: bool


def forecast(
    job: JobSettings,
    *,
    data: "Data | None" = None,
    ignore_memory: bool = False,
    look: "Callable[[Data], None] | None" = None,
    stage: Stage = lambda text: None,
    **given: Any,
) -> Forecast:
    """Return what a job will take; the arguments are those of :func:`gyroformer.jobs.run.run_job`.

    Nothing is written.
    """
    begun = time.monotonic()
    stage("reading the graph")
    with together():
        with agreed():
            graph = load_graph(job.graph) if data is None else data
            stage(PREPARING)
            plan = plan_job(job, graph, ignore_memory, given, look)
        ready = time.monotonic()
        stage(f"training {EPOCHS} epochs to see how long they take")
        step, evaluation = _paced(plan)
    training = job.training
    evaluations = math.ceil(training.epochs / training.eval_every)
    return Forecast(
        nodes=int(plan.data.num_nodes or 0),
        edges=plan.edges,
        tokens=tokens_of(job, plan.data),
        parameters=sum(p.numel() for p in plan.model.parameters()),
        memory=estimate(job, plan.task),
        memory_in_use=memory_in_use(),
        epochs=training.epochs,
        evaluations=evaluations,
        seconds_preparing=ready - begun,
        seconds_per_epoch=step,
        seconds_per_evaluation=evaluation,
        seconds=training.epochs * step + evaluations * evaluation,
        may_stop_early=training.converged is not None or training.patience is not None,
    )


def _paced(plan: Plan) -> tuple[float, float]:
    """Return the seconds of a step and of an evaluation."""
    ends: list[float] = []

    def listen(progress: Progress) -> None:
        ends.append(time.monotonic())

    training = plan.job.training.but(eval_every=EPOCHS, patience=None, converged=None, tensorboard=False)
    fit(plan.model, plan.task, training, listen=listen, until=EPOCHS)
    *steps, last = (after - before for before, after in itertools.pairwise(ends))
    step = statistics.median(steps)
    return step, max(0.0, last - step)
