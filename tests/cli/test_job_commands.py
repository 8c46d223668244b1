import json
import os
import signal
import subprocess
import sys
import time

import pytest
from small_graphs import labelled_graph, write_tree
from typer.testing import CliRunner

from gyroformer.cli.app import app
from gyroformer.models import MODELS
from gyroformer.runs.files import verify_run

RUN_FILES = {
    "config.json",
    "metrics.jsonl",
    "model.safetensors",
    "embeddings.npz",
    "results.json",
    "manifest.json",
}


def call(*args, code=0):
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == code, done.stderr or done.output
    return done


@pytest.fixture
def tree(tmp_path):
    return write_tree(tmp_path / "tree.csv")[0]


@pytest.fixture
def friends(tmp_path):
    """Return the paths of an edge list, of features and of labels, some of them missing."""
    data = labelled_graph(45)
    edges = "".join(f"v{u},v{v}\n" for u, v in data.edge_index.mT.tolist() if u < v)
    (tmp_path / "edges.csv").write_text("source,target\n" + edges)
    rows = "".join(
        f"v{i}," + ",".join(f"{x:.4f}" for x in row) + "\n" for i, row in enumerate(data.x.tolist())
    )
    (tmp_path / "x.csv").write_text("id,a,b,c,d,e,f\n" + rows)
    names = ["red", "green", "blue"]
    labels = "".join(f"v{i},{names[y]}\n" for i, y in enumerate(data.y.tolist()) if i % 9)
    (tmp_path / "y.csv").write_text("id,label\n" + labels)
    return tmp_path / "edges.csv", tmp_path / "x.csv", tmp_path / "y.csv"


def test_help_names_every_model():
    said = "".join(call("embed", "--help").stdout.split())
    assert all(name in said for name in MODELS)


def test_embed_writes_a_run_and_prints_one_object(tree, tmp_path):
    done = call("embed", tree, "--epochs", 12, "--out", tmp_path / "run", "--dim", 8, "--json")
    found = json.loads(done.stdout)
    assert {"map", "curvatures", "epochs", "seconds", "run"} <= set(found)
    assert found["epochs"] == 12
    assert {path.name for path in (tmp_path / "run").iterdir()} >= RUN_FILES
    verify_run(tmp_path / "run")
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == list(range(1, 13))
    assert json.loads((tmp_path / "run" / "config.json").read_text())["config"]["dim"] == 8


def test_embed_prints_a_table(tree, tmp_path):
    done = call("embed", tree, "--epochs", 3, "--out", tmp_path / "run", "--model", "tokengt")
    assert "mAP" in done.stdout
    assert "40 nodes, 39 edges" in done.stdout
    assert "flat" in done.stdout


def test_curvatures_are_said_in_words(tree, tmp_path):
    still = [tree, "--epochs", 3, "--heads", 1, "--dim", 4, "--no-learn-curvature", "--seeds", 2]
    for k, said in (
        (-400.0, "hyperbolic: room grows"),
        (400.0, "spherical: it closes"),
        (-1e-6, "nearly flat:"),
    ):
        done = call("embed", *still, "--curvature", k, "--out", tmp_path / f"run{k}")
        assert said in done.stdout
    assert "closes on itself" not in done.stdout


def test_classify_from_three_files(friends, tmp_path):
    edges, features, labels = friends
    options = [
        "--features",
        features,
        "--labels",
        labels,
        "--epochs",
        20,
        "--out",
        tmp_path / "run",
        "--json",
    ]
    found = json.loads(call("classify", edges, *options).stdout)
    assert {"test_f1", "val_f1", "test_accuracy", "split", "curvatures", "epochs", "seconds", "run"} <= set(
        found
    )
    split = found["split"]
    assert split["train"] + split["val"] + split["test"] == 40, "five nodes have no label"


def test_several_seeds_give_means_with_intervals(friends, tmp_path):
    edges, features, labels = friends
    options = [
        "--features",
        features,
        "--labels",
        labels,
        "--epochs",
        3,
        "--seeds",
        3,
        "--out",
        tmp_path / "runs",
    ]
    found = json.loads(call("classify", edges, *options, "--json").stdout)
    assert [run["seed"] for run in found["runs"]] == [0, 1, 2]
    assert found["test_f1"] == pytest.approx(sum(run["test_f1"] for run in found["runs"]) / 3)
    assert found["interval"]["test_f1"] > 0
    again = json.loads(call("classify", edges, *options, "--json", "--resume").stdout)
    assert again == found
    assert "±" in call("classify", edges, *options, "--resume").stdout


def test_the_default_folder_is_new_each_time(tree, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = [json.loads(call("embed", tree, "--epochs", 1, "--json").stdout)["run"] for _ in range(2)]
    assert runs == ["runs/tree-embed-fpst", "runs/tree-embed-fpst-2"]


def test_options_of_the_model_by_name(tree, tmp_path):
    options = ["--epochs", 1, "--set", "curvature=[-1.0, 0.5]", "--set", "learn_curvature=false"]
    found = json.loads(call("embed", tree, *options, "--out", tmp_path / "run", "--json").stdout)
    assert found["curvatures"] == [[-1.0, 0.5]]


@pytest.mark.parametrize(
    "args, code, words",
    [
        (["--model", "fpts"], 2, "did you mean 'fpst'"),
        (["--set", "head=3"], 2, "did you mean 'heads'"),
        (["--set", "heads"], 2, "--set takes NAME=VALUE"),
        (["--heads", "3"], 2, "heads"),
        (["--recipe", "papr"], 2, "did you mean 'paper'"),
        (["--negatives", "many"], 2, "negatives must be one of all, near, auto or a whole number"),
        (["--negatives", "5000"], 2, "number of nodes, 40"),
        (["--lr", "-1"], 2, "lr must be"),
        (["--device", "abacus"], 2, "device 'abacus' cannot be used"),
        (["--features", "absent.csv"], 2, "absent.csv"),
    ],
)
def test_wrong_options_are_named_and_leave_nothing(tree, tmp_path, args, code, words):
    done = call("embed", tree, "--out", tmp_path / "run", *args, code=code)
    assert words in done.stderr
    assert not (tmp_path / "run" / "results.json").exists()
    assert done.stdout == ""


def test_a_graph_that_is_not_there(tmp_path):
    assert "absent.csv" in call("embed", tmp_path / "absent.csv", code=2).stderr
    assert "did you mean 'cora'" in call("classify", "corra", code=2).stderr


def test_a_second_run_in_a_folder_is_refused(tree, tmp_path):
    call("embed", tree, "--epochs", 2, "--out", tmp_path / "run")
    done = call("embed", tree, "--epochs", 2, "--out", tmp_path / "run", code=2)
    assert "--resume" in done.stderr


def started(tree, out, *, epochs, more=()):
    command = [
        sys.executable,
        "-m",
        "gyroformer",
        "embed",
        str(tree),
        "--epochs",
        str(epochs),
        "--out",
        str(out),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*command, "--threads", "1", *more],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def wait_for_rows(process, out, rows):
    """Wait until the run has written so many rows."""
    metrics = out / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return
        if metrics.exists() and metrics.read_bytes().count(b"\n") >= rows:
            return
        time.sleep(0.01)
    raise AssertionError(f"no {rows} rows in time: {process.communicate()}")


def finished(process):
    said = process.communicate(timeout=300)
    assert process.returncode == 0, said


def outcome(out):
    files = {
        name: (out / name).read_bytes() for name in ("model.safetensors", "metrics.jsonl", "embeddings.npz")
    }
    results = json.loads((out / "results.json").read_text())
    return files, {key: value for key, value in results.items() if key != "seconds"}


def test_a_killed_command_resumes_to_the_same_bits(tree, tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    finished(started(tree, whole, epochs=150))
    for rows in (20, 90):
        process = started(tree, broken, epochs=150, more=["--resume"])
        wait_for_rows(process, broken, rows)
        process.kill()
        process.communicate()
    finished(started(tree, broken, epochs=150, more=["--resume"]))
    verify_run(broken)
    assert outcome(broken) == outcome(whole)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_command_says_how_to_go_on(tree, tmp_path, number):
    out = tmp_path / "run"
    process = started(tree, out, epochs=100_000)
    wait_for_rows(process, out, 10)
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert f"--out {out} " in said
    assert "--resume" in said
    assert list((out / "checkpoints").iterdir())
