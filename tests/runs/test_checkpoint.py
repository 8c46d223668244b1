import errno
import json
import logging
import os

import pytest
import torch
from toy_training import SETTINGS, train

from gyroformer.errors import CorruptFileError, DataError
from gyroformer.runs.checkpoint import Best, Checkpoint, CheckpointFolder
from gyroformer.runs.folder import RunFolder
from gyroformer.train import TrainOptions, fit


def checkpoint(epoch, **changes):
    state = {"model.w": torch.full((3,), float(epoch)), "rng.cpu": torch.get_rng_state()}
    fields = {
        "epoch": epoch,
        "state": state,
        "good_epoch": epoch,
        "good": state,
        "best": Best(epoch, (0.1, float("-inf")), {"map": 0.1}, {"model.w": torch.ones(3)}),
        "metrics": {"map": 0.1},
        "stale": 2,
        "lowered": True,
        "seconds": 1.5,
        "rows": (10, "abc"),
    }
    return Checkpoint(**fields | changes)


def test_saved_and_loaded_it_is_the_same(tmp_path):
    folder = CheckpointFolder(tmp_path / "checkpoints")
    older = {"model.w": torch.zeros(3), "rng.cpu": torch.get_rng_state()}
    for saved in (checkpoint(7), checkpoint(8, good_epoch=5, good=older), checkpoint(9, best=None)):
        folder.save(saved)
        loaded = folder.load(saved.epoch)
        for name in ("epoch", "good_epoch", "metrics", "stale", "lowered", "seconds", "rows"):
            assert getattr(loaded, name) == getattr(saved, name)
        for ours, theirs in ((loaded.state, saved.state), (loaded.good, saved.good)):
            assert ours.keys() == theirs.keys()
            assert all(torch.equal(ours[name], theirs[name]) for name in ours)
        assert (loaded.good is loaded.state) == (saved.good is saved.state)
        if saved.best is None:
            assert loaded.best is None
        else:
            assert loaded.best.rank == saved.best.rank
            assert torch.equal(loaded.best.weights["model.w"], torch.ones(3))


def test_the_last_two_are_kept(tmp_path):
    folder = CheckpointFolder(tmp_path)
    for epoch in (1, 2, 10, 1_000_000):
        folder.save(checkpoint(epoch))
    assert folder.epochs() == [1_000_000, 10]
    assert len(list(tmp_path.iterdir())) == 4


@pytest.fixture
def stopped(tmp_path, without_sync):
    """A run folder with checkpoints of epochs 11 and 12 and without results."""
    train(tmp_path)
    for name in ("results.json", "manifest.json", "model.safetensors"):
        (tmp_path / name).unlink()
    return tmp_path


def flip(path, place=-5):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("spoil", [flip, cut, lambda path: path.unlink()])
@pytest.mark.parametrize("kind", ["safetensors", "json"])
def test_a_damaged_newest_one_falls_back_and_says_so(spoil, kind, stopped, caplog, tmp_path):
    rows = (stopped / "metrics.jsonl").read_bytes()
    spoil(stopped / "checkpoints" / f"epoch-000012.{kind}")
    caplog.set_level(logging.INFO)
    _, outcome = train(stopped)
    assert "going on after epoch 11" in caplog.text
    if not (kind == "json" and spoil not in (flip, cut)):  # without its scalars a checkpoint was never there
        assert "the checkpoint of epoch 12 is damaged" in caplog.text
    assert outcome.epochs == 12
    assert (stopped / "metrics.jsonl").read_bytes() == rows


def test_a_damaged_one_does_not_count_as_one_of_the_last_two(stopped):
    flip(stopped / "checkpoints" / "epoch-000012.safetensors")
    with RunFolder(stopped) as run:
        run.begin({"task": "toy", "seed": 0, "epochs": 12}, resume=True)
        assert run.load_checkpoint().epoch == 11
        assert run.checkpoints.epochs() == [11]


def test_rows_that_were_altered_make_a_checkpoint_useless(stopped, caplog):
    flip(stopped / "metrics.jsonl", -20)  # in the last row
    _, outcome = train(stopped)
    assert "metrics.jsonl is not the one that the checkpoint was written with" in caplog.text
    assert outcome.epochs == 12


def test_if_none_is_whole_it_says_what_to_delete(stopped):
    for path in (stopped / "checkpoints").glob("*.safetensors"):
        flip(path)
    with pytest.raises(
        CorruptFileError, match="no checkpoint is whole; delete this folder to start the run over"
    ):
        train(stopped)
    for path in (stopped / "checkpoints").iterdir():
        path.unlink()
    assert train(stopped)[1].epochs == 12


def test_what_a_killed_process_left_is_removed(stopped):
    folder = stopped / "checkpoints"
    before = sorted(folder.iterdir())
    for name in ("epoch-000013.safetensors.part", "epoch-000013.safetensors", "epoch-000013.json.part"):
        (folder / name).write_bytes(b"half")
    train(stopped)
    assert sorted(folder.iterdir()) == before


def test_an_unknown_format_is_refused(tmp_path):
    folder = CheckpointFolder(tmp_path)
    folder.save(checkpoint(3))
    scalars = json.loads((tmp_path / "epoch-000003.json").read_text())
    (tmp_path / "epoch-000003.json").write_text(json.dumps(scalars | {"format": 2}))
    with pytest.raises(CorruptFileError, match="format 2 is not 1"):
        folder.load(3)


def full_disk(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_in_mid_run_warns_and_goes_on(model, task, tmp_path, monkeypatch, caplog):
    fsync = os.fsync

    def listen(progress):
        monkeypatch.setattr(os, "fsync", full_disk if 4 <= progress.epoch < 9 else fsync)

    with RunFolder(tmp_path) as run:
        run.begin({}, resume=False)
        outcome = fit(model, task, TrainOptions(**SETTINGS), run=run, listen=listen)
    said = [record.getMessage() for record in caplog.records]
    assert [text for text in said if "no checkpoint of epoch 4 (No space left on device)" in text]
    assert len(said) == 5
    assert outcome.epochs == 12
    assert run.checkpoints.epochs() == [12, 11]
    assert not list(tmp_path.rglob("*.part"))
    assert len((tmp_path / "metrics.jsonl").read_bytes().splitlines()) == 12


def test_the_last_write_does_not_fail_in_silence(model, task, tmp_path, monkeypatch):
    def listen(progress):
        monkeypatch.setattr(os, "fsync", full_disk)

    with RunFolder(tmp_path) as run:
        run.begin({}, resume=False)
        with pytest.raises(DataError, match=r"checkpoint could not be written \(No space left"):
            fit(model, task, TrainOptions(**SETTINGS), run=run, listen=listen)
