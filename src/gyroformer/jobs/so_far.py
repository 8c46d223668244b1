"""A run that was stopped, as it is so far: a folder beside its checkpoints that can be asked like a finished one."""

import logging
import shutil
from pathlib import Path

from gyroformer.durable import claimed
from gyroformer.errors import CorruptFileError, DataError
from gyroformer.jobs.plan import plan_model, plan_task
from gyroformer.jobs.run import finish_run, keep_graph
from gyroformer.models.pretrained import CONFIG
from gyroformer.options import as_plain
from gyroformer.runs.checkpoint import Checkpoint
from gyroformer.runs.files import METRICS, RESULTS
from gyroformer.runs.folder import CHECKPOINTS, LOCK, RunFolder, check_checkpoint
from gyroformer.runs.graph import read_graph
from gyroformer.runs.read import upgraded
from gyroformer.settings import job_from_plain
from gyroformer.train.learner import Learner
from gyroformer.train.outcome import Outcome
from gyroformer.untrusted import read_json

_log = logging.getLogger(__name__)

SO_FAR = "so-far"


def usable_run(path: str | Path) -> Path:
    """Return the folder to ask about a run: its own if it is finished, else that of its last checkpoint, which is said.

    Anything that is no run, or a run without a checkpoint, comes back as it is: who opens it says what is wrong.
    """
    folder = Path(path)
    unfinished = (folder / CONFIG).exists() and not (folder / RESULTS).exists()
    if not unfinished or not any((folder / CHECKPOINTS).glob("epoch-*.json")):
        return folder
    with claimed(folder / LOCK):  # not while it trains
        return _written(folder)


def _written(folder: Path) -> Path:
    config = read_json(folder / CONFIG)
    job = job_from_plain(upgraded(config["job"], config["format"])).but(device="cpu")
    stored = read_graph(folder)
    if stored is None:
        raise DataError(f"{folder}: was stopped before its graph was written; continue it with --resume")
    task = plan_task(job, stored.data, **({} if stored.split is None else {"split": stored.split}))
    plan = plan_model(job, stored.data, task)
    stopped = RunFolder(folder)
    checkpoint = _newest(stopped)
    learner = Learner(plan.model, task, job.training)
    weights = checkpoint.best.weights if checkpoint.best else checkpoint.state
    learner.load_weights({name: t for name, t in weights.items() if name.startswith(("model.", "task."))})
    learner.train(False)
    known = checkpoint.best.metrics if checkpoint.best else checkpoint.metrics
    outcome = Outcome(
        epochs=checkpoint.epoch,
        best_epoch=checkpoint.best.epoch if checkpoint.best else checkpoint.epoch,
        metrics=known or task.evaluate(plan.model),
        history=stopped.metrics.rows,
        stopped="interrupted",
        seconds=checkpoint.seconds,
        lowered=checkpoint.lowered,
    )
    shutil.rmtree(folder / SO_FAR, ignore_errors=True)
    with RunFolder(folder / SO_FAR) as run:
        run.begin(as_plain(job), resume=False)
        keep_graph(run.path, plan, by_name=bool(job.graph.source), more=stored.more, split=stored.split)
        for row in stopped.metrics.rows:
            run.metrics.append(row)
        run.task_module = task.module
        finish_run(run, plan, outcome, tested=False)
    held_back = ", by validation alone (the test waits for the end)" if getattr(task, "split", None) else ""
    _log.warning(
        "%s is not finished: this is its state after epoch %d of %d%s; --resume goes on with it",
        *(folder, checkpoint.epoch, job.training.epochs, held_back),
    )
    return folder / SO_FAR


def _newest(stopped: RunFolder) -> Checkpoint:
    """Return the newest whole checkpoint and take its rows; nothing is changed in the folder."""
    for epoch in stopped.checkpoints.epochs():
        try:
            checkpoint = stopped.checkpoints.load(epoch)
            stopped.metrics.load(*checkpoint.rows)
            check_checkpoint(checkpoint, stopped.metrics.rows, stopped.path / METRICS)
        except (CorruptFileError, OSError, ValueError) as error:
            _log.warning("the checkpoint of epoch %d is damaged (%s); trying an older one", epoch, error)
            continue
        return checkpoint
    raise CorruptFileError(
        f"{stopped.checkpoints.path}: no checkpoint is whole; delete it to start the run over"
    )
