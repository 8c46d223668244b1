"""A run that is interrupted and resumed ends in the bits of one that is not."""

import multiprocessing
import os
import random
import re
import signal
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from toy_training import train

from gyroformer.errors import Interrupted, UsageError
from gyroformer.runs.files import verify_run
from gyroformer.train.loop import _Training

EPOCHS = 8


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run without interruption."""
    folder = tmp_path_factory.mktemp("whole")
    train(folder, epochs=EPOCHS)
    return folder


def assert_same_run(folder, whole):
    """Compare weights, best weights, Adam's moments, random state and rows, bit for bit."""
    verify_run(folder)
    assert (folder / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()
    assert (folder / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    last = sorted((whole / "checkpoints").glob("*.safetensors"))[-1].name
    ours, theirs = (load_file(path / "checkpoints" / last) for path in (folder, whole))
    assert ours.keys() == theirs.keys()
    assert {name.split(".")[0] for name in ours} >= {"model", "best", "adam", "rng"}
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


class Crash(Exception):
    pass


@pytest.mark.parametrize("k", range(1, EPOCHS + 1))
@pytest.mark.parametrize("where", ["before its checkpoint", "after its checkpoint", "asked to stop"])
def test_interrupted_after_any_epoch(k, where, whole, tmp_path, monkeypatch, without_sync):
    tell, save = _Training._tell, _Training._maybe_save

    def crash_in_tell(self, row):
        tell(self, row)
        if self.epoch == k:
            raise Crash

    def crash_after_save(self):
        save(self)
        if self.epoch == k:
            raise Crash

    def ask_in_tell(self, row):
        tell(self, row)
        if self.epoch == k:
            signal.raise_signal(signal.SIGTERM)

    with monkeypatch.context() as patch:
        if where == "after its checkpoint":
            patch.setattr(_Training, "_maybe_save", crash_after_save)
        else:
            patch.setattr(_Training, "_tell", ask_in_tell if where == "asked to stop" else crash_in_tell)
        with pytest.raises((Crash, Interrupted)):
            train(tmp_path, epochs=EPOCHS)
    # what a crash leaves behind must not be read
    with (tmp_path / "metrics.jsonl").open("ab") as rows:
        rows.write(b'{"epoch": 99')
    train(tmp_path, epochs=EPOCHS)
    assert_same_run(tmp_path, whole)


def test_checkpoints_far_apart_start_over_or_go_on(whole, tmp_path, monkeypatch):
    tell = _Training._tell

    def crash(self, row):
        tell(self, row)
        if self.epoch == 5:
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(_Training, "_tell", crash)
        with pytest.raises(Crash):
            train(tmp_path, epochs=EPOCHS, checkpoint_seconds=1e9)
    assert not (tmp_path / "checkpoints").exists()
    train(tmp_path, epochs=EPOCHS, checkpoint_seconds=1e9)
    assert_same_run(tmp_path, whole)


def test_an_interruption_between_two_evaluations_keeps_the_state_to_go_back_to(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        tell = _Training._tell
        patch.setattr(
            _Training,
            "_tell",
            lambda self, row: (tell(self, row), self.epoch == 5 and signal.raise_signal(signal.SIGINT)),
        )
        with pytest.raises(Interrupted) as caught:
            train(tmp_path)
    assert (caught.value.run, caught.value.epoch, caught.value.exit_code) == (tmp_path, 5, 130)
    tensors = load_file(tmp_path / "checkpoints" / "epoch-000005.safetensors")
    assert not torch.equal(tensors["good.model.tokenizer.node_type"], tensors["model.tokenizer.node_type"])
    assert not torch.equal(tensors["good.rng.cpu"], tensors["rng.cpu"])


@pytest.fixture(scope="module")
def processes():
    """Give a context whose processes start in a moment: they are forked from a server that has torch loaded."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system cannot fork")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["toy_process"])
    with pytest.MonkeyPatch.context() as patch:
        helpers = str(Path(__file__).parents[1] / "helpers")
        paths = [helpers, *filter(None, [os.environ.get("PYTHONPATH")])]
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        patch.setenv("OMP_NUM_THREADS", "1")
        yield context


def start(processes, folder, **options):
    from toy_process import train_in_process

    process = processes.Process(target=train_in_process, args=(str(folder),), kwargs=options)
    process.start()
    return process


def wait_until(true, process, timeout=60.0):
    """Return as soon as something is true, or the process has ended well without being asked to."""
    deadline = time.monotonic() + timeout
    while not true() and process.exitcode != 0:
        assert process.is_alive(), f"ended with {process.exitcode} too early"
        assert time.monotonic() < deadline
        time.sleep(0.002)


def holder(folder):
    """Return the pid in the folder's lock; 0 if there is none."""
    lock = folder / ".lock"
    found = re.match(r"pid (\d+),", lock.read_text()) if lock.exists() else None
    return int(found[1]) if found else 0


def checkpoints(folder):
    """Return the names of the checkpoints that are there; later ones compare as greater."""
    return sorted((path.name for path in (folder / "checkpoints").glob("*.json")), reverse=True)


def test_killed_at_random_moments(processes, tmp_path):
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    # an epoch takes long enough that eight moments, each up to 0.1 s after a checkpoint, come before the last one
    training = {"epochs": 40, "slow": 0.05}
    first = start(processes, whole, **training)
    first.join(60)
    assert first.exitcode == 0
    draw, killed = random.Random(0), 0
    for turn in range(8):
        before = checkpoints(folder)
        process = start(processes, folder, **training)
        if turn % 3 == 0:  # while it starts or resumes
            wait_until(lambda pid=process.pid: holder(folder) == pid, process)
        else:  # while it trains, evaluates or saves
            wait_until(lambda before=before: checkpoints(folder) > before, process)
        time.sleep(draw.uniform(0.0, 0.1))
        process.kill()
        process.join(60)
        if process.exitcode == 0:  # this test was not given a core for seconds, and the run was over
            break
        assert process.exitcode == -signal.SIGKILL
        killed += 1
    assert killed >= 3, "the run was over before it could be killed"
    last = start(processes, folder, **training)
    last.join(60)
    assert last.exitcode == 0
    assert_same_run(folder, whole)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_it_checkpoints_and_exits_with_130(processes, number, whole, tmp_path):
    process = start(processes, tmp_path, epochs=EPOCHS, slow=0.05)
    wait_until((tmp_path / "checkpoints" / "epoch-000002.json").exists, process)
    os.kill(process.pid, number)
    process.join(60)
    assert process.exitcode == 130
    assert not (tmp_path / "results.json").exists()
    done = len((tmp_path / "metrics.jsonl").read_bytes().splitlines())
    assert (tmp_path / "checkpoints" / f"epoch-{done:06d}.json").exists(), "the last step is lost"
    train(tmp_path, epochs=EPOCHS)
    assert_same_run(tmp_path, whole)


def test_a_second_run_in_the_folder_is_refused_at_once(processes, tmp_path):
    process = start(processes, tmp_path, epochs=EPOCHS, slow=0.2)
    wait_until((tmp_path / "metrics.jsonl").exists, process)
    with pytest.raises(UsageError, match=rf"another run \(pid {process.pid}, host .+\) is writing here"):
        train(tmp_path, epochs=EPOCHS)
    process.kill()
    process.join(60)
    train(tmp_path, epochs=EPOCHS)  # the lock died with its holder
