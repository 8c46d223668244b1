"""A run that goes on under other conditions says that its bits may differ, and a manifest says which it had."""

import json

import pytest
import torch
from toy_training import train

from gyroformer.errors import CorruptFileError
from gyroformer.ops.native import build
from gyroformer.runs.environment import differences, environment
from gyroformer.runs.files import verify_run
from gyroformer.runs.folder import RunFolder


def edit_checkpoints(folder, **changes):
    for path in (folder / "checkpoints").glob("*.json"):
        scalars = json.loads(path.read_text())
        scalars["environment"] |= changes
        path.write_text(json.dumps(scalars))


@pytest.mark.parametrize(
    "name, value", [("threads", 77), ("kernels", "0" * 24), ("torch", "1.0"), ("machine", "vax")]
)
def test_each_condition_is_compared(name, value, tmp_path, caplog):
    train(tmp_path, epochs=2)
    edit_checkpoints(tmp_path, **{name: value})
    (tmp_path / "results.json").unlink()
    job = json.loads((tmp_path / "config.json").read_text())["job"]
    with RunFolder(tmp_path) as run:
        run.begin(job, resume=True)
        assert run.load_checkpoint() is not None
    assert f"{name} {value}, now {environment()[name]}" in caplog.text
    assert "may differ from an uninterrupted run's" in caplog.text


def test_the_same_conditions_need_no_word(tmp_path, caplog):
    train(tmp_path, epochs=2)
    (tmp_path / "results.json").unlink()
    job = json.loads((tmp_path / "config.json").read_text())["job"]
    with RunFolder(tmp_path) as run:
        run.begin(job, resume=True)
        run.load_checkpoint()
    assert "otherwise" not in caplog.text


def test_a_run_begun_without_kernels_goes_on_with_them(monkeypatch):
    if build.library() is None:
        pytest.skip("no kernels on this machine")
    assert differences({"kernels": "none"})[0].startswith("kernels none, now ")
    assert differences({"kernels": None}) == []  # it never asked for them


def test_the_manifest_names_threads_and_kernels(tmp_path):
    train(tmp_path, epochs=1)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["threads"] == torch.get_num_threads()
    assert manifest["kernels"] == build.used()


@pytest.mark.parametrize("more", [b" ", b"\n", b"junk", b"{}"])
def test_a_byte_behind_the_manifest_is_seen(more, tmp_path):
    train(tmp_path, epochs=1)
    verify_run(tmp_path)
    with (tmp_path / "manifest.json").open("ab") as file:
        file.write(more)
    with pytest.raises(CorruptFileError, match=r"manifest\.json"):
        verify_run(tmp_path)
