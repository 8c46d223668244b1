"""The training loop, in plain torch.

An epoch is one step on the whole graph. After it the loop evaluates, keeps the best state, remembers a good state to
go back to, tells its listener, and writes a checkpoint if it is time. A run that is killed at any moment and resumed
ends in the same bits as one that was not.
"""

import dataclasses as dc
import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from gyroformer.errors import DivergedError, EchoedError, Interrupted, ProcessLostError, UsageError
from gyroformer.options.training import TrainOptions
from gyroformer.processes.agreement import of_first
from gyroformer.processes.group import count as processes
from gyroformer.processes.group import is_first
from gyroformer.processes.tensors import any_process, numbers_of_first, sum_gradients, sum_numbers
from gyroformer.runs.checkpoint import Best, Checkpoint, State
from gyroformer.runs.folder import RunFolder
from gyroformer.runs.metrics_file import MetricsFile, Row
from gyroformer.tasks.task import Trainable
from gyroformer.train.compiled import compiled
from gyroformer.train.diverged import Culprit, NotFinite, find_culprit
from gyroformer.train.learner import LOWERING, Learner, load_random_state, random_state
from gyroformer.train.length import Length
from gyroformer.train.outcome import Outcome, Progress
from gyroformer.train.pace import Pace
from gyroformer.train.signals import StopRequest, stop_requests
from gyroformer.train.tensorboard import Scalars, scalars

_log = logging.getLogger(__name__)

#: a state to go back to is taken at every evaluation, and at least as often as this
GOOD_EVERY = 10

Listener = Callable[[Progress], None]
#: hears what is being done, for work that may take long
Stage = Callable[[str], None]


def fit(
    model: nn.Module,
    task: Trainable,
    settings: TrainOptions,
    *,
    run: RunFolder | None = None,
    listen: Listener | None = None,
    until: int | None = None,
    stage: Stage = lambda text: None,
) -> Outcome:
    """Train ``model`` for ``task``; at the end it holds the best state, in evaluation mode.

    The caller has seeded torch and moved the model to its device and dtype. With a run folder (after its ``begin``)
    the loop goes on from the checkpoint there, if any.

    Args:
        model: the model, on its device.
        task: the loss, the evaluation and the order of states.
        settings: learning rates, length and intervals.
        run: where to keep rows and checkpoints; None keeps nothing.
        listen: called after each epoch.
        until: the last epoch, if it is not the settings': learning rates take the settings' course up to there.
        stage: hears what is done between the steps.

    Raises:
        DivergedError: the loss, a gradient or a metric left the finite numbers for the second time.
        Interrupted: SIGINT or SIGTERM came; the run folder holds a checkpoint. Without a run folder it is
            KeyboardInterrupt.
    """
    if settings.tensorboard and run is None and is_first():
        raise UsageError("TensorBoard files need a run folder: give --out, or do without --tensorboard")
    if run is not None and run.finished:
        raise UsageError(f"{run.path}: this run is finished; its results are in results.json")
    learner = Learner(model, task, settings)
    if run is not None:
        run.task_module = task.module
    training = _Training(learner, run, listen, until, stage)
    with (
        stop_requests() as stop,
        compiled(model, settings.compile),
        scalars(run.path if run else None, settings.tensorboard, training.epoch) as board,
    ):
        return training.finish(stop, board)


class _Training:
    """A run in progress: what changes from epoch to epoch beside the learner."""

    def __init__(
        self,
        learner: Learner,
        run: RunFolder | None,
        listen: Listener | None,
        until: int | None,
        stage: Stage,
    ) -> None:
        self._until, self._stage = until, stage
        self.learner, self.settings, self.run, self.listen = learner, learner.settings, run, listen
        self.rows = run.metrics if run else MetricsFile(None)
        found, rows = of_first(self._found)
        learner.load_state(found.state)
        for row in rows[len(self.rows.rows) :]:  # which process 0 has read
            self.rows.append(row)
        self.epoch, self.best, self.metrics, self.stale = found.epoch, found.best, found.metrics, found.stale
        self.good_epoch, self.good, self.lowered = found.good_epoch, found.good, found.lowered
        self._saved = found.epoch if found.epoch else None
        self._begun_at, self._carried, self._first = time.monotonic(), found.seconds, found.epoch
        self._saved_at = self._begun_at
        self._pace = Pace(found.epoch)
        self.length = Length(self.settings, (row["loss"] for row in self.rows.rows))
        if run:
            # weights, two moments, the best weights, and a good state of another epoch; two of these are kept
            run.check_space(2 * 7 * sum(t.numel() * t.element_size() for t in learner.weights().values()))

    def _found(self) -> tuple[Checkpoint, list[Row]]:
        """Return the checkpoint to go on from, with the rows up to it, or the beginning."""
        found = self.run.load_checkpoint() if self.run else None
        if found is None:
            state = self.learner.state()
            found = Checkpoint(0, state, 0, state, None, {}, stale=0, lowered=False, seconds=0.0)
        else:
            assert self.run is not None
            best = {} if found.best is None else found.best.weights
            for state in (found.state, found.good, {**found.state, **best}):
                self.learner.check_state(state, str(self.run.checkpoints.path))
            _log.info("%s: going on after epoch %d", self.run.path, found.epoch)
        return found, self.rows.rows

    @property
    def seconds(self) -> float:
        return self._carried + time.monotonic() - self._begun_at

    @property
    def last(self) -> int:
        """The last epoch, as far as it is known."""
        return self.length.epochs if self._until is None else min(self._until, self.length.epochs)

    @property
    def out_of_patience(self) -> bool:
        return self.settings.patience is not None and self.stale >= self.settings.patience

    def finish(self, stop: StopRequest, board: Scalars) -> Outcome:
        """Train to the end."""
        try:
            self._train(stop, board)
        except ProcessLostError:
            self._rescue()
            raise
        return self._outcome()

    def _train(self, stop: StopRequest, board: Scalars) -> None:
        while self.epoch < self.last and not self.out_of_patience:
            before = random_state()
            try:
                row = self._one_epoch()
            except NotFinite as failure:
                self._go_back(failure, before)
                continue
            self.rows.append(row)
            if self.run:
                self.run.write_rows()
            self._note_convergence(row["loss"])
            board(row)
            self._tell(row)
            self._maybe_save()
            if any_process(bool(stop)):
                self._interrupt()

    def _note_convergence(self, loss: float) -> None:
        before = self.length.known
        self.length.add(loss)
        if self.length.converged and not before:
            _log.info(
                "the loss has converged at epoch %d; %d epochs in all (--thorough trains all %d)",
                *(self.epoch, self.length.epochs, self.settings.epochs),
            )

    def _one_epoch(self) -> Row:
        """Do one step, and what is due after it; NotFinite leaves the epoch counter where it was."""
        epoch = self.epoch + 1
        rate = self.learner.set_rates(epoch, lowered=self.lowered, epochs=self.length.epochs)
        row: Row = {"epoch": epoch, "loss": self._step(), "lr": rate}
        curvatures = self.learner.curvatures()
        if curvatures is not None:
            row["curvatures"] = curvatures
        evaluated = epoch % self.settings.eval_every == 0 or epoch == self.last
        if evaluated:
            self._stage("evaluating")
            with self._pace.evaluation(), self._heard():
                row["metrics"] = self._evaluate()
        if evaluated or epoch % GOOD_EVERY == 0:
            if self.learner.bad_weight() is not None:
                raise NotFinite("a parameter")
            self.good_epoch, self.good = epoch, self.learner.state()
        self.epoch = epoch
        if evaluated:
            self._judge(row["metrics"])
        return row

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """Listen to how far an evaluation is; only meanwhile, for a task may be copied and kept."""
        task = self.learner.task
        task.heard = lambda done, total: self._stage(f"evaluating, {done:,} of {total:,} nodes")
        try:
            yield
        finally:
            task.heard = None

    def _step(self) -> float:
        """Do one step of the optimizer and return the loss; nothing is changed if it is not finite.

        Processes that compute as one go back from a part of the loss each and add up what they find.
        """
        learner = self.learner
        learner.train()
        learner.optimizer.zero_grad(set_to_none=True)
        loss = learner.task.loss(learner.model)
        if loss.dim():
            raise UsageError(
                f"the loss of the task {learner.task.name!r} has the shape {tuple(loss.shape)}, not ()"
            )
        part = loss if learner.task.shares_loss or processes() == 1 else loss / processes()
        part.backward()
        sum_gradients(learner.parameters.values())
        given = [p for p in learner.parameters.values() if p.grad is not None]
        norm = get_total_norm([p.grad for p in given if p.grad is not None])
        value, size = torch.stack((part.detach().double(), norm.double().to(loss.device))).tolist()
        value = sum_numbers([value])[0]
        if not math.isfinite(value) or not math.isfinite(size):
            raise NotFinite("the loss" if not math.isfinite(value) else "the gradient")
        if self.settings.clip is not None:
            clip_grads_with_norm_(given, self.settings.clip, norm)
        learner.optimizer.step()
        return float(value)

    def _evaluate(self) -> dict[str, float]:
        self.learner.train(False)
        with torch.no_grad():
            found = self.learner.task.evaluate(self.learner.model)
            # the last digits may differ between machines, and what follows from them must not
            numbers = numbers_of_first([float(value) for value in found.values()])
            metrics = dict(zip(found, numbers, strict=True))
        wrong = [name for name, value in metrics.items() if not math.isfinite(value)]
        if wrong:
            raise NotFinite(f"the metric {wrong[0]!r}")
        return metrics

    def _judge(self, metrics: dict[str, float]) -> None:
        """Keep the state if it is the best so far."""
        self.metrics = metrics
        rank = tuple(float(value) for value in self.learner.task.rank(metrics))
        if not rank:
            return
        if self.best is None or rank > self.best.rank:
            self.best, self.stale = Best(self.epoch, rank, metrics, self.learner.weights()), 0
        else:
            self.stale += 1

    def _go_back(self, failure: NotFinite, before: State) -> None:
        """Name what went wrong, go back to the last good state and lower the learning rates; raise the second time."""
        epoch, learner = self.epoch + 1, self.learner
        culprit = self._culprit(failure, before)
        rates = [group["lr"] for group in learner.optimizer.param_groups]
        if self.lowered:
            raise DivergedError(
                f"epoch {epoch}: {failure} is not finite, for the second time; first {culprit}. Learning rates were "
                f"already lowered to {rates[0]:.3g} and {rates[1]:.3g} (curvature): try a smaller --lr or "
                "--curvature-lr, --clip 1, or --dtype float64"
            )
        _log.warning(
            "epoch %d: %s is not finite; first %s. Going back to epoch %d with all learning rates times %g",
            *(epoch, failure, culprit, self.good_epoch, LOWERING),
        )
        learner.load_state(self.good)
        self.epoch, self.lowered = self.good_epoch, True
        if self.run:
            self.run.rewind(self._checkpoint())
        else:
            self.rows.rewind(self.epoch)
        self.length = Length(self.settings, (row["loss"] for row in self.rows.rows))
        self._saved = None

    def _culprit(self, failure: NotFinite, before: State) -> Culprit:
        """Repeat the failed pass with probes."""
        learner = self.learner
        if str(failure).startswith("the metric"):
            learner.train(False)
            learner.optimizer.zero_grad(set_to_none=True)  # these were fine
            return find_culprit(learner, lambda: learner.task.evaluate(learner.model))
        learner.train()
        load_random_state(before)
        return find_culprit(learner, lambda: learner.task.loss(learner.model))

    def _tell(self, row: dict[str, Any]) -> None:
        if self.listen is None:
            return
        left = self._pace.left(self.epoch, self.last, self.settings.eval_every)
        self.listen(
            Progress(
                epoch=self.epoch,
                epochs=self.last,
                loss=row["loss"],
                metrics=self.metrics,
                curvatures=row.get("curvatures", []),
                seconds=self.seconds,
                seconds_left=left,
                at_most=not self.length.known,
            )
        )

    def _checkpoint(self) -> Checkpoint:
        # a state just taken is written once, not twice
        state = self.good if self.good_epoch == self.epoch else self.learner.state()
        return Checkpoint(
            epoch=self.epoch,
            state=state,
            good_epoch=self.good_epoch,
            good=self.good,
            best=self.best,
            metrics=self.metrics,
            stale=self.stale,
            lowered=self.lowered,
            seconds=self.seconds,
        )

    def _maybe_save(self) -> None:
        if self.run and time.monotonic() - self._saved_at >= self.settings.checkpoint_seconds:
            self._save()

    def _save(self, *, must: bool = False) -> None:
        if self.run and self._saved != self.epoch and self.run.save_checkpoint(self._checkpoint(), must=must):
            self._saved = self.epoch
        self._saved_at = time.monotonic()  # after a failure too: not again at every epoch

    def _rescue(self) -> None:
        """Write the last good state, unless there is a checkpoint that is as new: another process has gone."""
        epoch = self.good_epoch
        if self.run is None or not epoch or (self._saved is not None and self._saved >= epoch):
            return
        self.run.save_checkpoint(dc.replace(self._checkpoint(), epoch=epoch, state=self.good))

    def _interrupt(self) -> None:
        if self.run is None:
            raise KeyboardInterrupt if is_first() else EchoedError(Interrupted.exit_code)
        self._save(must=True)
        raise Interrupted(self.run.path, self.epoch)

    def _outcome(self) -> Outcome:
        """Leave the model in the best state and tell how it went."""
        self._save(must=True)
        if self.best is not None:
            self.learner.load_weights(self.best.weights)
        self.learner.train(False)
        return Outcome(
            epochs=self.epoch,
            best_epoch=self.best.epoch if self.best else self.epoch,
            metrics=self.best.metrics if self.best else self.metrics,
            history=self.rows.rows,
            stopped="patience"
            if self.out_of_patience
            else "converged"
            if self.length.converged
            else "finished",
            seconds=self.seconds,
            lowered=self.lowered,
            compiled=self.settings.compile,
        )
