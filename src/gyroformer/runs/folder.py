"""The folder of a run: what is written when, and by one process at a time.

``config.json`` comes first, ``results.json`` last: a folder with the first and without the second is a run to be
resumed. Every file is written beside its place, synced, and moved there.
"""

import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from torch import nn

import gyroformer
from gyroformer.durable import claimed, make_folder, write_durably
from gyroformer.errors import CorruptFileError, DataError, UsageError
from gyroformer.models.pretrained import CONFIG, FORMAT, Pretrained
from gyroformer.runs.check import check_history
from gyroformer.runs.checkpoint import Checkpoint, CheckpointFolder
from gyroformer.runs.environment import Environment, differences, environment
from gyroformer.runs.files import METRICS, RESULTS, read_results, verify_run, write_finished
from gyroformer.runs.graph import GRAPH
from gyroformer.runs.metrics_file import MetricsFile
from gyroformer.runs.younger import with_younger
from gyroformer.untrusted import read_json

_log = logging.getLogger(__name__)

Job = dict[str, Any]
LOCK, CHECKPOINTS = ".lock", "checkpoints"
#: written when a run fails: what is in the folder may be replaced
FAILED = "failed.txt"


class RunFolder:
    """The folder of one training run, locked while the ``with`` block runs.

    Example:
        >>> with RunFolder("runs/karate") as run:
        ...     run.begin({"task": "embed", "graph": "karate", "seed": 0}, resume=True)
        ...     if not run.finished:
        ...         outcome = fit(model, task, settings, run=run)
        ...         run.finish(model, {"map": outcome.metrics["map"]}, {"embedding": points}, ids)

    Args:
        path: the folder; it is made if absent.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.metrics = MetricsFile(self.path / METRICS)
        self.checkpoints = CheckpointFolder(self.path / CHECKPOINTS)
        self.job: Job | None = None
        self.finished = False
        #: parameters of the task's own that ``fit`` trained
        self.task_module: nn.Module | None = None
        self._started = ""
        self._warned = False
        self._held = ExitStack()

    def __enter__(self) -> Self:
        make_folder(self.path)
        self._held.enter_context(claimed(self.path / LOCK))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()

    def begin(self, config: Mapping[str, Any], *, resume: bool) -> None:
        """Start the run, or prepare to go on with the one that is here.

        Args:
            config: what is to be done, in values that JSON knows; a run is resumed only with the same.
            resume: whether to continue what is here; without it, a folder that holds a run is refused.
        """
        job = plain_job(config)
        about = check_folder(self.path, job, resume=resume)
        if about is None:
            self._clear()
            self._started = datetime.now(UTC).isoformat(timespec="seconds")
            about = {"format": FORMAT, "gyroformer": gyroformer.__version__, "job": job}
            self._write(CONFIG, json.dumps(about | {"started": self._started}, indent=2) + "\n")
        else:
            self._started = str(about.get("started", ""))
            if about.get("gyroformer") != gyroformer.__version__:
                _log.warning(
                    "%s was begun with gyroformer %s, this is %s: the result may differ from an uninterrupted run's",
                    *(self.path, about.get("gyroformer"), gyroformer.__version__),
                )
            (self.path / FAILED).unlink(missing_ok=True)
            if (self.path / RESULTS).exists():
                verify_run(self.path)
                self.finished = is_done(self.path, job)
            if not self.finished and _length(about["job"]) != _length(job):
                # results go first: whatever happens next, this is a run to be resumed
                (self.path / RESULTS).unlink(missing_ok=True)
                changed = {**about, "gyroformer": gyroformer.__version__, "job": job}
                self._write(CONFIG, json.dumps(changed, indent=2) + "\n")
        self.job = job

    def fail(self, error: BaseException) -> None:
        """Note that the run failed, so that a corrected command may use the folder; it can be resumed too."""
        try:
            write_durably(self.path / FAILED, f"{error}\n".encode())
        except OSError as problem:
            _log.warning("%s: could not be written (%s)", self.path / FAILED, problem.strerror)

    def _clear(self) -> None:
        """Remove what a run left that failed, or that was stopped before its first checkpoint."""
        try:
            for epoch in self.checkpoints.epochs():
                self.checkpoints.remove(epoch)
            for name in (CONFIG, METRICS, GRAPH, FAILED):
                (self.path / name).unlink(missing_ok=True)
        except OSError as error:
            raise DataError(f"{self.path}: cannot be changed ({error.strerror})") from None

    def results(self) -> dict[str, Any]:
        """Return ``results.json`` of a finished run."""
        return read_results(self.path)

    def check_space(self, size: int) -> None:
        """Raise DataError unless the disk has room for ``size`` bytes: better now than after hours."""
        free = shutil.disk_usage(self.path).free
        if free < size:
            raise DataError(
                f"{self.path}: a run needs {size / 1e6:.1f} MB and {free / 1e6:.1f} MB are free; free space, or choose "
                "another --out"
            )

    def save_checkpoint(self, checkpoint: Checkpoint, *, must: bool = False) -> bool:
        """Write a checkpoint; if that fails, warn and return False, or raise DataError if it ``must`` be."""
        try:
            self.metrics.flush(durable=True)
            checkpoint.rows = self.metrics.checksum_at(checkpoint.epoch)
            checkpoint.environment = environment()
            self.checkpoints.save(checkpoint)
        except OSError as error:
            why = error.strerror or error
            if must:
                raise DataError(f"{self.path}: the checkpoint could not be written ({why})") from error
            _log.warning(
                "%s: no checkpoint of epoch %d (%s); training goes on", self.path, checkpoint.epoch, why
            )
            return False
        return True

    def load_checkpoint(self) -> Checkpoint | None:
        """Return the newest whole checkpoint, and take up the rows up to it; None if there is none to go on from."""
        self._need_begin()
        self.checkpoints.tidy()
        epochs = self.checkpoints.epochs()
        for epoch in epochs:
            try:
                checkpoint = self.checkpoints.load(epoch)
                self.metrics.load(*checkpoint.rows)
                check_checkpoint(checkpoint, self.metrics.rows, self.path / METRICS)
            except (CorruptFileError, OSError, ValueError, RecursionError) as error:
                _log.warning("the checkpoint of epoch %d is damaged (%s); trying an older one", epoch, error)
                continue
            for damaged in epochs[: epochs.index(epoch)]:
                self.checkpoints.remove(damaged)  # or it would count as one of the last two
            self.metrics.flush()
            self._compare(checkpoint.environment)
            return checkpoint
        if epochs:
            raise CorruptFileError(
                f"{self.checkpoints.path}: no checkpoint is whole; delete this folder to start the run over"
            )
        self.metrics.flush()  # rows of epochs after which no checkpoint was written
        return None

    def _compare(self, before: Environment) -> None:
        """Say so if the run goes on in another environment than it was begun in."""
        changed = differences(before)
        if changed:
            _log.warning(
                "%s: goes on otherwise than it was begun (%s): the result may differ from an uninterrupted run's",
                *(self.path, "; ".join(changed)),
            )

    def rewind(self, checkpoint: Checkpoint) -> None:
        """Forget everything after the epoch of ``checkpoint``, in an order that a kill at any moment respects.

        Later checkpoints count on the rows up to them: rows go only after these are gone.
        """
        self.save_checkpoint(checkpoint)
        for epoch in self.checkpoints.epochs():
            if epoch > checkpoint.epoch:
                try:
                    self.checkpoints.remove(epoch)
                except OSError as error:
                    raise DataError(
                        f"{self.checkpoints.path}: cannot be changed ({error.strerror})"
                    ) from error
        self.metrics.rewind(checkpoint.epoch)
        self.write_rows()

    def write_rows(self) -> None:
        """Write new rows of ``metrics.jsonl``; if that fails, warn once and keep them for the next time."""
        try:
            self.metrics.flush()
        except OSError as error:
            if not self._warned:
                _log.warning("%s: cannot be written (%s); trying again", self.metrics.path, error.strerror)
            self._warned = True
        else:
            self._warned = False

    def finish(
        self,
        model: Pretrained,
        results: Mapping[str, Any],
        embeddings: Mapping[str, "np.ndarray[Any, Any]"],
        ids: Sequence[object],
        *,
        seconds: float = 0.0,
        compiled: bool = False,
    ) -> None:
        """Write the model, the embeddings, the manifest and, last, the results.

        Parameters of the task that ``fit`` trained here are kept in ``model.safetensors`` under ``task.``.

        Args:
            model: the trained model.
            results: what ``results.json`` is to hold.
            embeddings: arrays by name, for ``embeddings.npz``.
            ids: the nodes' ids, one for each row of the embeddings.
            seconds: training time.
            compiled: whether the model was compiled.
        """
        self._need_begin()
        assert self.job is not None
        try:
            self.metrics.flush(durable=True)
        except OSError as error:
            raise DataError(f"{self.metrics.path}: could not be written ({error.strerror})") from error
        write_finished(
            self.path,
            model,
            seconds=seconds,
            compiled=compiled,
            job=self.job,
            started=self._started,
            results=dict(results),
            embeddings=dict(embeddings),
            ids=ids,
            task=None if self.task_module is None else self.task_module.state_dict(),
        )
        self.finished = True

    def _write(self, name: str, text: str) -> None:
        try:
            write_durably(self.path / name, text.encode())
        except OSError as error:
            raise DataError(f"{self.path / name}: could not be written ({error.strerror})") from None

    def _need_begin(self) -> None:
        if self.job is None:
            raise UsageError("call begin() of the run folder first")


def check_checkpoint(checkpoint: Checkpoint, rows: list[dict[str, Any]], path: Path) -> None:
    """Raise unless the rows up to a checkpoint are rows, and its metrics have their names."""
    if rows:
        check_history(rows, path)
    names = next((row["metrics"].keys() for row in reversed(rows) if "metrics" in row), None)
    kept = [checkpoint.metrics] + ([] if checkpoint.best is None else [checkpoint.best.metrics])
    if names is not None and any(metrics.keys() != names for metrics in kept):
        raise CorruptFileError(f"the metrics of the checkpoint are not those of {path.name}")


def plain_job(config: Mapping[str, Any]) -> Job:
    """Return the settings as JSON has them."""
    try:
        job: Job = json.loads(json.dumps(dict(config), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise UsageError(f"the settings of a run must be finite values that JSON knows ({error})") from None
    return job


def check_folder(path: Path, job: Job, *, resume: bool) -> dict[str, Any] | None:
    """Return ``config.json`` of the run in a folder that may be resumed, None for a folder without a run; else raise.

    A run that failed, or that has no checkpoint yet, does not count unless it is to be resumed. The length of the
    training may be another than before. Nothing is written: a job is checked before its folder is touched.
    """
    if not (path / CONFIG).exists():
        if CheckpointFolder(path / CHECKPOINTS).epochs() or (path / RESULTS).exists():
            raise UsageError(
                f"{path}: holds files of a run whose {CONFIG} is missing; restore it, or choose another --out"
            )
        return None
    about = read_json(path / CONFIG)
    if "job" not in about:
        raise UsageError(f"{path}: holds a saved model, not a run; choose another --out")
    begun = (path / RESULTS).exists() or CheckpointFolder(path / CHECKPOINTS).epochs()
    if not resume and (not begun or (path / FAILED).exists()):
        return None  # nothing is lost
    if not resume:
        raise UsageError(f"{path}: holds a run already; continue it with --resume, or choose another --out")
    if about.get("format") != FORMAT:
        raise UsageError(
            f"{path}: was begun by gyroformer {about.get('gyroformer')} in folder format {about.get('format')}, and "
            f"this version goes on with format {FORMAT} only; choose another --out"
        )
    key = first_difference(with_younger(_with_length(about["job"], _length(job))), job)
    if key is not None:
        raise UsageError(
            f"{path}: the run here has {key[0]} = {key[1]!r}, now it is {key[2]!r}; resume with the same "
            "settings, or choose another --out"
        )
    return about


def is_done(path: Path, job: Job) -> bool:
    """Return whether a folder holds the results of a job, trained for at least as long as it is to be."""
    if not (path / RESULTS).exists():
        return False
    before, now = _length(read_json(path / CONFIG).get("job", {})), _length(job)
    if not before or not now or before == now:
        return True
    reached = before["epochs"]
    if before["converged"] != now["converged"]:  # it may have stopped before its last epoch
        reached = read_results(path).get("epochs", reached)
    return bool(now["epochs"] <= reached)


def _length(job: Job) -> dict[str, Any]:
    """Return the settings that say how long a run is trained; empty if it has none."""
    training = job.get("training")
    if not isinstance(training, dict) or training.get("epochs") is None:
        return {}
    return {"epochs": training["epochs"], "converged": training.get("converged")}


def _with_length(job: Job, length: dict[str, Any]) -> Job:
    return job if not _length(job) else {**job, "training": {**job["training"], **length}}


def first_difference(old: object, new: object, key: str = "") -> tuple[str, object, object] | None:
    """Return the first key (dotted), in the order of ``new``, whose values differ, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*new, *(name for name in old if name not in new)]:
            inner = f"{key}.{name}" if key else str(name)
            found = first_difference(old.get(name), new.get(name), inner)
            if found is not None:
                return found
        return None
    return None if old == new else (key, old, new)
