"""A run is useful at every moment: interrupted, failed, too short."""

import json
import os
import signal

import pytest
from small_graphs import write_blocks
from typer.testing import CliRunner

import gyroformer as gf
from gyroformer.cli.app import app
from gyroformer.cli.training_bar import TrainingBar
from gyroformer.errors import Interrupted
from gyroformer.runs.files import RESULTS
from gyroformer.tasks.embed import Reconstruction


def run(*args):
    return CliRunner().invoke(app, [*map(str, args)], catch_exceptions=False)


@pytest.fixture
def stop_at(monkeypatch):
    """Return a function that lets Ctrl-C come after an epoch of the next command."""

    def stop(epoch):
        def listen(self, progress):
            if progress.epoch == epoch:
                os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(TrainingBar, "__call__", listen)

    return stop


@pytest.fixture
def files(tmp_path):
    return write_blocks(tmp_path, size=10)


OPTIONS = ("--epochs", "12", "--eval-every", "5", "--identifiers", "2")


@pytest.mark.parametrize("task", ["embed", "classify", "link"])
def test_an_interrupted_run_can_be_asked_and_shown(files, tmp_path, stop_at, task):
    more = ("--labels", files[2], "--features", files[1]) if task == "classify" else ()
    stop_at(7)
    done = run(task, files[0], *OPTIONS, *more, "--out", tmp_path / "run")
    assert done.exit_code == 130
    asked = run("predict", tmp_path / "run", "--nearest", "2", "--node", "n0", "--json")
    assert asked.exit_code == 0, asked.stderr
    assert "is not finished: this is its state after epoch 7 of 12" in asked.stderr
    assert len(json.loads(asked.stdout)["nearest"]) == 2
    # the test is not looked at before a run is finished
    so_far = json.loads((tmp_path / "run" / "so-far" / RESULTS).read_text())
    assert not [key for key in so_far if key.startswith("test_")]
    assert ("by validation alone" in asked.stderr) == (task != "embed")
    assert {"embed": "map", "classify": "val_f1", "link": "val_auc"}[task] in so_far
    shown = run("report", tmp_path / "run", "--out", tmp_path / "page.html")
    assert shown.exit_code == 0, shown.stderr
    page = (tmp_path / "page.html").read_text()
    held_out = {
        "embed": "",
        "classify": "On the validation nodes",
        "link": "ROC curve of the validation pairs",
    }
    assert held_out[task] in page
    assert "the test nodes:" not in page
    assert "ROC curve of the test" not in page
    # asking changes nothing for the run itself
    stop_at(0)
    again = run(task, files[0], *OPTIONS, *more, "--out", tmp_path / "run", "--resume", "--json")
    assert again.exit_code == 0, again.stderr
    assert "going on after epoch 7" in again.stderr
    whole = run(task, files[0], *OPTIONS, *more, "--out", tmp_path / "whole", "--json")
    metrics = [(tmp_path / name / "metrics.jsonl").read_bytes() for name in ("run", "whole")]
    assert metrics[0] == metrics[1]
    assert json.loads(again.stdout)["epochs"] == json.loads(whole.stdout)["epochs"] == 12


def test_resume_with_more_epochs_or_fewer(files, tmp_path, stop_at):
    stop_at(4)
    assert run("embed", files[0], *OPTIONS, "--out", tmp_path / "run").exit_code == 130
    stop_at(0)
    epochs = {}
    for count in (6, 9):
        command = ("embed", files[0], *OPTIONS[2:], "--epochs", count, "--out", tmp_path / "run")
        done = run(*command, "--resume", "--json")
        assert done.exit_code == 0, done.stderr
        epochs[count] = json.loads(done.stdout)["epochs"]
        assert (
            json.loads((tmp_path / "run" / "config.json").read_text())["job"]["training"]["epochs"] == count
        )
        assert run("predict", tmp_path / "run", "--nearest", "1").exit_code == 0
    assert epochs == {6: 6, 9: 9}
    # shorter than it is: the results that are there
    done = run(
        "embed", files[0], *OPTIONS[2:], "--epochs", 5, "--out", tmp_path / "run", "--resume", "--json"
    )
    assert json.loads(done.stdout)["epochs"] == 9
    other = run("embed", files[0], *OPTIONS, "--lr", "0.5", "--out", tmp_path / "run", "--resume")
    assert (other.exit_code, "training.lr" in other.stderr) == (2, True)


def test_a_failed_run_does_not_block_its_correction(files, tmp_path, monkeypatch):
    with monkeypatch.context() as broken:
        loss = Reconstruction.loss
        broken.setattr(Reconstruction, "loss", lambda self, model: loss(self, model) * float("nan"))
        done = run("embed", files[0], *OPTIONS, "--out", tmp_path / "run")
        assert done.exit_code == 4
    done = run("embed", files[0], *OPTIONS, "--lr", "0.001", "--out", tmp_path / "run", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["epochs"] == 12
    finished = run("embed", files[0], *OPTIONS, "--out", tmp_path / "run")
    assert (finished.exit_code, "holds a run already" in finished.stderr) == (2, True)


def test_an_estimator_goes_on_after_an_interruption(files, tmp_path, monkeypatch):
    options = {"epochs": 9, "random_state": 0, "out": tmp_path / "run", "verbose": True}

    def stop(progress):
        if progress.epoch == 5:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr("gyroformer.estimators.base._told", stop)
        with pytest.raises(Interrupted):
            gf.GraphEmbedder(**options).fit(files[0])
    assert not (tmp_path / "run" / RESULTS).exists()
    embedder = gf.GraphEmbedder(**{**options, "verbose": False}).fit(files[0])
    assert len(embedder.history_) == 9
    whole = gf.GraphEmbedder(epochs=9, random_state=0).fit(files[0])
    assert (embedder.embedding_ == whole.embedding_).all()
