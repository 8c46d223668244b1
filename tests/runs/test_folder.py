import json
import os
import shutil

import numpy as np
import pytest
import torch
from toy_training import NODES, DecodingTask, ToyTask, toy_model, train

import gyroformer as gf
from gyroformer.errors import CorruptFileError, DataError, UsageError
from gyroformer.runs.files import verify_run
from gyroformer.runs.folder import RunFolder, first_difference
from gyroformer.runs.read import open_run
from gyroformer.train import TrainOptions, fit

JOB = {"task": "embed", "train": {"lr": 0.1, "epochs": 3}, "seed": 7}


def test_a_fresh_folder_gets_its_config_first(tmp_path):
    with RunFolder(tmp_path / "a" / "b") as run:
        run.begin(JOB, resume=True)
        about = json.loads((tmp_path / "a" / "b" / "config.json").read_text())
        assert about["job"] == JOB
        assert about["gyroformer"] == gf.__version__
        assert not run.finished
    with pytest.raises(
        DataError, match="the run is not finished, it holds no model yet; continue it with --resume"
    ):
        gf.FPST.from_pretrained(tmp_path / "a" / "b")
    with pytest.raises(DataError, match="holds no finished run"):
        open_run(tmp_path / "a" / "b")


@pytest.mark.parametrize(
    "job, key",
    [
        ({**JOB, "seed": 8}, "seed = 7, now it is 8"),
        ({**JOB, "train": {"lr": 0.2, "epochs": 3}}, "train.lr = 0.1, now it is 0.2"),
        ({**JOB, "train": {"lr": 0.1, "epochs": 4}}, "train.epochs = 3, now it is 4"),
        ({"task": "embed", "seed": 7}, "train = .*, now it is None"),
        ({**JOB, "more": 1}, "more = None, now it is 1"),
    ],
)
def test_resume_wants_the_same_settings(job, key, tmp_path):
    with RunFolder(tmp_path) as run:
        run.begin(JOB, resume=False)
    with RunFolder(tmp_path) as run, pytest.raises(UsageError, match=f"the run here has {key}"):
        run.begin(job, resume=True)
    with RunFolder(tmp_path) as run:
        run.begin(JOB, resume=True)


def test_first_difference_sees_equal_things_as_equal():
    assert first_difference(JOB, json.loads(json.dumps(JOB))) is None


def test_a_folder_in_use_needs_resume_or_another_name(tmp_path, without_sync):
    train(tmp_path)
    with (
        RunFolder(tmp_path) as run,
        pytest.raises(UsageError, match="continue it with --resume, or choose another"),
    ):
        run.begin(JOB, resume=False)
    with RunFolder(tmp_path / "empty") as run:
        run.begin(JOB, resume=False)
    with RunFolder(tmp_path / "empty") as run:
        run.begin({**JOB, "seed": 7}, resume=False)  # nothing was done in it yet
        assert run.job["seed"] == 7
    toy_model().save_pretrained(tmp_path / "model")
    with (
        RunFolder(tmp_path / "model") as run,
        pytest.raises(UsageError, match="holds a saved model, not a run"),
    ):
        run.begin(JOB, resume=True)


def test_checkpoints_of_a_run_without_settings_are_not_taken_for_this_one_s(tmp_path, without_sync):
    train(tmp_path)
    (tmp_path / "config.json").unlink()
    for leave in ("results.json", "checkpoints"):
        with RunFolder(tmp_path) as run, pytest.raises(UsageError, match=r"whose config.json is missing"):
            run.begin(JOB, resume=True)
        if leave == "results.json":
            (tmp_path / leave).unlink()


def test_a_damaged_config_is_named(tmp_path):
    (tmp_path / "config.json").write_text('{"job": ')
    with RunFolder(tmp_path) as run, pytest.raises(CorruptFileError, match=r"config.json: cannot be read"):
        run.begin(JOB, resume=True)


def test_a_version_change_is_said(tmp_path, caplog):
    with RunFolder(tmp_path) as run:
        run.begin(JOB, resume=False)
    about = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(about | {"gyroformer": "0.0.1"}))
    with RunFolder(tmp_path) as run:
        run.begin(JOB, resume=True)
    assert "begun with gyroformer 0.0.1" in caplog.text


def test_two_in_one_process_are_refused_too(tmp_path):
    with RunFolder(tmp_path), pytest.raises(UsageError, match=rf"another run \(pid {os.getpid()}, host .+\)"):
        RunFolder(tmp_path).__enter__()
    with RunFolder(tmp_path):
        pass


def test_settings_that_json_does_not_know_are_refused(tmp_path):
    for wrong in (float("nan"), tmp_path):
        with RunFolder(tmp_path) as run, pytest.raises(UsageError, match="finite values that JSON knows"):
            run.begin({"value": wrong}, resume=False)


def test_begin_comes_first(tmp_path, model, task):
    with RunFolder(tmp_path) as run, pytest.raises(UsageError, match="call begin"):
        fit(model, task, TrainOptions(epochs=1), run=run)


def test_a_place_that_cannot_be_is_found_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be created"):
        RunFolder(tmp_path / "file" / "run").__enter__()


@pytest.mark.skipif(
    os.geteuid() == 0 if hasattr(os, "geteuid") else True, reason="nothing is read-only for root"
)
def test_a_read_only_folder_is_found_at_once(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(DataError, match="cannot write here"):
        RunFolder(tmp_path).__enter__()


def test_a_full_disk_is_found_before_training(tmp_path, model, task, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    task.loss = lambda model: pytest.fail("training had begun")
    with RunFolder(tmp_path) as run:
        run.begin(JOB, resume=False)
        with pytest.raises(DataError, match=r"needs .* MB and 0\.0 MB are free"):
            fit(model, task, TrainOptions(epochs=1), run=run)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    return folder, train(folder)[0]


def test_a_finished_run_is_whole(finished):
    folder, model = finished
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) == [
        *(
            "checkpoints",
            "config.json",
            "embeddings.npz",
            "manifest.json",
            "metrics.jsonl",
            "model.safetensors",
        ),
        "results.json",
    ]
    verify_run(folder)
    run = open_run(folder)
    assert run.config["job"] == {"task": "toy", "seed": 0, "epochs": 12}
    assert run.results.keys() == {"accuracy", "likelihood"}
    assert all(torch.equal(t, run.model.state_dict()[name]) for name, t in model.state_dict().items())
    assert run.ids == [str(i) for i in range(NODES)]
    task = ToyTask()
    np.testing.assert_array_equal(run.embeddings["embedding"], run.model.tangent(task.data).detach().numpy())
    assert run.task_weights == {}
    again = gf.FPST.from_pretrained(folder)
    assert torch.equal(again(task.data), model(task.data))


def test_the_manifest_says_what_a_result_depends_on(finished):
    manifest = json.loads((finished[0] / "manifest.json").read_text())
    assert manifest["versions"].keys() == {"python", "torch", "numpy", "gyroformer"}
    assert manifest["seed"] == 0
    assert manifest["threads"] == torch.get_num_threads()
    assert (manifest["dtype"], manifest["device"], manifest["compiled"]) == ("float32", "cpu", False)
    assert manifest["started"] <= manifest["finished"]
    assert set(manifest["files"]) == {
        *("config.json", "metrics.jsonl", "model.safetensors", "embeddings.npz", "results.json")
    }


def test_a_finished_run_is_not_run_again(finished):
    with RunFolder(finished[0]) as run:
        run.begin({"task": "toy", "seed": 0, "epochs": 12}, resume=True)
        assert run.finished
        assert run.results()["accuracy"] > 0.5


@pytest.mark.parametrize(
    "name",
    ["config.json", "metrics.jsonl", "model.safetensors", "embeddings.npz", "results.json", "manifest.json"],
)
def test_a_flipped_bit_is_found_in_every_file(name, tmp_path, without_sync):
    train(tmp_path)
    content = bytearray((tmp_path / name).read_bytes())
    place = content.index(b"0", len(content) // 2) if name.endswith(("json", "jsonl")) else -40
    content[place] ^= 1  # a digit stays a digit
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorruptFileError, match=name):
        verify_run(tmp_path)
    with pytest.raises(CorruptFileError, match=name):
        open_run(tmp_path)
    with pytest.raises(CorruptFileError, match=name):
        train(tmp_path)


def test_a_missing_file_is_named(tmp_path, without_sync):
    train(tmp_path)
    (tmp_path / "embeddings.npz").unlink()
    with pytest.raises(CorruptFileError, match=r"embeddings.npz: is missing"):
        open_run(tmp_path)


def test_unchecked_loading_still_names_what_it_cannot_read(tmp_path, without_sync):
    train(tmp_path)
    content = (tmp_path / "embeddings.npz").read_bytes()
    for damaged in (content[: len(content) // 2], b"", content[:200] + b"?" + content[201:]):
        (tmp_path / "embeddings.npz").write_bytes(damaged)
        with pytest.raises(CorruptFileError, match=r"embeddings.npz: "):
            _ = open_run(tmp_path, verify=False).embeddings


def test_parameters_of_the_task_are_kept_with_the_model(model, tmp_path):
    task = DecodingTask()
    with RunFolder(tmp_path) as run:
        run.begin({}, resume=False)
        fit(model, task, TrainOptions(epochs=3), run=run)
        run.finish(model, {}, {}, [])
    found = open_run(tmp_path).task_weights
    assert torch.equal(found["scale"], task.module.scale)
    assert gf.FPST.from_pretrained(tmp_path).state_dict().keys() == model.state_dict().keys()
    fresh = DecodingTask()
    fresh.module.load_state_dict(found)
    assert fresh.module.scale.item() == task.module.scale.item() != 2.0


@pytest.mark.parametrize(
    "results, embeddings, ids, message",
    [
        ({"map": float("nan")}, {}, [], "results must be finite"),
        ({"map": torch.ones(1)}, {}, [], "values that JSON knows"),
        ({}, {"points": np.zeros((3, 2))}, ["a", "b"], "has 3 rows for 2 ids"),
        ({}, {"points": np.array([None, None])}, ["a", "b"], "holds Python objects"),
        ({}, {"ids": np.zeros(2)}, ["a", "b"], "cannot be called 'ids'"),
    ],
)
def test_wrong_results_are_refused_before_anything_is_written(
    results, embeddings, ids, message, model, task, tmp_path
):
    with RunFolder(tmp_path) as run:
        run.begin({}, resume=False)
        fit(model, task, TrainOptions(epochs=1), run=run)
        with pytest.raises(UsageError, match=message):
            run.finish(model, results, embeddings, ids)
    assert not (tmp_path / "model.safetensors").exists()


def test_ids_of_any_alphabet_come_back_as_text(model, task, tmp_path):
    ids = ["Ωμέγα", "x" * 300, *range(NODES - 2)]
    with RunFolder(tmp_path) as run:
        run.begin({}, resume=False)
        fit(model, task, TrainOptions(epochs=1), run=run)
        run.finish(model, {}, {"embedding": np.zeros((NODES, 2, 4))}, ids)
    assert open_run(tmp_path).ids == [str(i) for i in ids]
