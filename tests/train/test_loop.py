import logging
import signal
import sys
import threading
import types

import pytest
import torch
from toy_training import SETTINGS, DecodingTask, ToyTask, toy_model

from gyroformer.errors import MissingPartError, UsageError
from gyroformer.runs.folder import RunFolder
from gyroformer.train import TrainOptions, fit


def settings_with(**changes):
    return TrainOptions(**SETTINGS | changes)


class Scripted(ToyTask):
    """A task whose figures are given beforehand, one for each evaluation."""

    def __init__(self, figures):
        super().__init__()
        self.figures, self.seen = iter(figures), []

    def evaluate(self, model):
        assert not model.training
        assert not torch.is_grad_enabled()
        self.seen.append({name: t.clone() for name, t in model.state_dict().items()})
        return {"figure": next(self.figures)}

    def rank(self, metrics):
        return (metrics["figure"],)


def test_training_lowers_the_loss_and_tells_each_epoch(model, task):
    heard = []
    outcome = fit(model, task, settings_with(epochs=30), listen=heard.append)
    assert outcome.history[-1]["loss"] < 0.7 * outcome.history[0]["loss"]
    assert [row["epoch"] for row in outcome.history] == list(range(1, 31))
    assert [row["epoch"] for row in outcome.history if "metrics" in row] == list(range(3, 31, 3))
    assert {"epoch", "loss", "lr", "curvatures"} <= outcome.history[0].keys()
    assert len(outcome.history[0]["curvatures"]) == 2
    assert (outcome.epochs, outcome.stopped, outcome.lowered) == (30, "finished", False)
    assert [progress.epoch for progress in heard] == list(range(1, 31))
    assert heard[-1].seconds_left == 0 < heard[0].seconds_left
    assert heard[-1].metrics == outcome.history[-1]["metrics"]
    assert not model.training


def test_rows_hold_the_rates_of_the_schedule(model, task):
    settings = settings_with(epochs=4, schedule="linear", decay_from=0.0, lr=0.1)
    rates = [row["lr"] for row in fit(model, task, settings).history]
    assert rates == pytest.approx([0.1, 0.075, 0.05, 0.025])


def test_the_best_state_is_restored(model):
    task = Scripted([1.0, 5.0, 5.0, 2.0])
    outcome = fit(model, task, settings_with())
    assert (outcome.best_epoch, outcome.metrics, outcome.epochs) == (6, {"figure": 5.0}, 12)
    assert all(torch.equal(t, task.seen[1][name]) for name, t in model.state_dict().items())
    assert not torch.equal(task.seen[1]["tokenizer.node_type"], task.seen[3]["tokenizer.node_type"])


def test_without_an_order_the_last_state_stays(model, task):
    task.rank = lambda metrics: ()
    states = []
    outcome = fit(
        model, task, settings_with(), listen=lambda _: states.append(model.tokenizer.node_type.tolist())
    )
    assert outcome.best_epoch == 12
    assert outcome.metrics == outcome.history[-1]["metrics"]
    assert model.tokenizer.node_type.tolist() == states[-1]


def test_patience_counts_evaluations_without_improvement(model):
    task = Scripted([1.0, 3.0, 2.0, 3.0, 9.0])
    outcome = fit(model, task, settings_with(epochs=100, patience=2))
    assert (outcome.stopped, outcome.epochs, outcome.best_epoch) == ("patience", 12, 6)


def test_the_last_epoch_is_always_evaluated(model, task):
    outcome = fit(model, task, settings_with(epochs=4, eval_every=50))
    assert ["metrics" in row for row in outcome.history] == [False, False, False, True]


def test_a_loss_that_is_no_number_is_refused(model, task):
    task.loss = lambda model: model(task.data)
    with pytest.raises(UsageError, match=r"the loss of the task 'toy' has the shape \(30, 3\), not \(\)"):
        fit(model, task, settings_with())


def test_clipping_limits_the_step(task):
    moved = {}
    for clip in (None, 1e-12):  # so small that Adam's epsilon of 1e-8 swallows the step
        torch.manual_seed(0)
        model = toy_model()
        before = model.tokenizer.node_type.detach().clone()
        fit(model, task, settings_with(epochs=1, clip=clip))
        moved[clip] = float((model.tokenizer.node_type.detach() - before).norm())
    assert moved[1e-12] < 1e-3 * moved[None]


def test_weight_decay_pulls_weights_not_curvatures(task):
    ends = {}
    for decay in (0.0, 10.0):
        torch.manual_seed(0)
        model = toy_model(curvature=1.0)
        task.loss = lambda model: 0.0 * model(task.data).sum()
        fit(model, task, settings_with(epochs=3, weight_decay=decay))
        ends[decay] = (
            float(model.tokenizer.features.table.weight.detach().norm()),
            model.curvatures.tolist(),
        )
    assert ends[10.0][0] < ends[0.0][0]
    assert ends[10.0][1] == ends[0.0][1] == [[1.0, 1.0]]


def test_parameters_of_the_task_are_trained_and_kept(model, tmp_path):
    task = DecodingTask()
    with RunFolder(tmp_path) as run:
        run.begin({"seed": 0}, resume=False)
        outcome = fit(model, task, settings_with(), run=run)
        assert outcome.best_epoch == 12
        assert task.module.scale.item() != 2.0
        assert task.module.curvature.item() != 0.5
        kept = run.checkpoints.load(12).state
        assert torch.equal(kept["task.scale"], task.module.scale.detach())
        assert "adam.task.scale.exp_avg" in kept


def test_the_best_state_of_the_task_comes_back_too(model):
    task = DecodingTask()
    task.rank = lambda metrics: (-metrics["epoch"],)
    seen = []

    def evaluate(model):
        seen.append(task.module.scale.item())
        return {"epoch": float(len(seen))}

    task.evaluate = evaluate
    assert fit(model, task, settings_with()).best_epoch == 3
    assert task.module.scale.item() == seen[0] != seen[-1]


def test_two_seeded_runs_are_the_same(task):
    def once():
        torch.manual_seed(1)
        model = toy_model()
        return fit(model, task, settings_with()).history

    assert once() == once()


def test_without_a_folder_a_signal_is_a_keyboard_interrupt(model, task):
    before = signal.getsignal(signal.SIGINT)
    heard = []

    def listen(progress):
        heard.append(progress.epoch)
        if progress.epoch == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fit(model, task, settings_with(), listen=listen)
    assert heard == [1, 2], "the step is finished first"
    assert signal.getsignal(signal.SIGINT) is before


def test_in_a_thread_no_handler_is_set(model, task):
    done = []
    thread = threading.Thread(target=lambda: done.append(fit(model, task, settings_with()).epochs))
    thread.start()
    thread.join()
    assert done == [12]


def test_a_finished_run_is_not_trained_again(model, task, tmp_path):
    with RunFolder(tmp_path) as run:
        run.begin({}, resume=False)
        fit(model, task, settings_with(), run=run)
        run.finish(model, {}, {}, [])
        with pytest.raises(UsageError, match="this run is finished"):
            fit(model, task, settings_with(), run=run)


def test_missing_tensorboard_is_said_before_training(model, task, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(UsageError, match="need a run folder"):
        fit(model, task, settings_with(tensorboard=True))
    with RunFolder(tmp_path) as run:
        run.begin({}, resume=False)
        with pytest.raises(MissingPartError, match=r"pip install 'gyroformer\[tensorboard\]'"):
            fit(model, task, settings_with(tensorboard=True), run=run)
        assert run.metrics.rows == []


def test_tensorboard_gets_every_number(model, task, tmp_path, monkeypatch):
    written = []

    class Writer:
        def __init__(self, folder, purge_step):
            written.append((folder, purge_step))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            written.append("closed")

        def add_scalar(self, name, value, step):
            written.append((name, value, step))

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", types.SimpleNamespace(SummaryWriter=Writer))
    with RunFolder(tmp_path) as run:
        run.begin({}, resume=False)
        outcome = fit(model, task, settings_with(tensorboard=True), run=run)
    assert written[0] == (str(tmp_path / "tensorboard"), 1)
    assert written[-1] == "closed"
    assert ("loss", outcome.history[4]["loss"], 5) in written
    assert ("curvature/1", outcome.history[4]["curvatures"][1], 5) in written
    assert ("metrics/accuracy", outcome.history[5]["metrics"]["accuracy"], 6) in written


def test_compiled_for_the_run_only(model, task, monkeypatch):
    compiled = []

    def record(function):
        compiled.append(function.__name__)
        return function

    monkeypatch.setattr(torch, "compile", record)
    outcome = fit(model, task, settings_with(compile=True))
    assert outcome.compiled
    assert compiled == ["forward", "tangent"]
    assert not {"forward", "tangent"} & vars(model.encoder).keys()


def test_a_resume_is_logged(model, task, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    for resume in (False, True):
        with RunFolder(tmp_path) as run:
            run.begin({}, resume=resume)
            fit(model, task, settings_with(), run=run)
    assert "going on after epoch 12" in caplog.text
