"""The command ``tune``: the flags of the graph, what it refuses, and the line that says how to use what it found."""

import shlex

import pytest
from small_graphs import write_blocks
from typer.testing import CliRunner

from gyroformer.cli.app import app
from gyroformer.cli.tune import _outside
from gyroformer.runs.read import open_run
from gyroformer.settings import make_job

pytest.importorskip("optuna")


def called(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


def test_a_graph_of_ones_own_is_searched_and_the_line_that_is_printed_works(tmp_path):
    edges, features, labels = write_blocks(tmp_path)
    own = tmp_path / "my graph.csv"
    own.write_text(edges.read_text().replace("source,target", "from,to"))
    graph = ["--labels", labels, "--features", features, "--source", "to", "--target", "from"]
    held = ["--fix", "epochs=3", "--fix", "split=random", "--fix", "dtype=float64", "--header"]
    words = ["tune", "classify", own, *graph, *held, "--model", "mlp", "--trials", 2]
    words += ["--out", tmp_path / "tune"]
    done = called(*words)
    line = next(line for line in done.stdout.splitlines() if line.startswith("to use it: "))
    program, *pasted = shlex.split(line.removeprefix("to use it: "))
    assert program == "gyroformer"
    called(*pasted, "--out", tmp_path / "run")
    job = open_run(tmp_path / "run").settings
    assert (job.graph.labels, job.graph.features) == (str(labels), str(features))
    assert (job.graph.source_column, job.graph.target_column) == ("to", "from")
    assert job.graph.header is True
    assert (job.dtype, job.training.epochs, job.objective.split) == ("float64", 3, "random")
    # as a flag or held, it is the same study
    again = [f"--fix=labels={labels}" if word == labels else word for word in words if word != "--labels"]
    assert "0 failed" in called(*again).stdout
    assert len(list((tmp_path / "tune").glob("*.toml"))) == 1


def test_what_a_recipe_does_not_hold_is_said_by_flags():
    graph = {"source": "g.csv", "header": False, "directed": True, "weight_column": "3"}
    job = make_job("link", graph=graph, device="cuda", seed=1000)
    assert _outside(job) == ["--directed", "--no-header", "--weight", "3", "--device", "cuda"]


@pytest.mark.parametrize(
    "words, said",
    [
        (["--fix", "seed=3"], "--fix seed has no effect: each trial has seeds of its own; --seed is"),
        (["--fix", "device=nowhere"], "the device 'nowhere' cannot be used here"),
        (["--device", "nowhere"], "the device 'nowhere' cannot be used here"),
        (["--write", "best.txt"], "--write best.txt: the name must end in .toml"),
        (["--labels", "a.csv", "--fix", "labels=b.csv"], "labels is given twice, as --labels and by --fix"),
    ],
)
def test_what_would_fail_later_is_refused_at_once(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = called("tune", "classify", "texas", *words, code=2)
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_flag_of_another_task_is_named(tmp_path):
    done = called("tune", "embed", "web-edu", "--labels", "x.csv", "--out", tmp_path / "tune", code=2)
    assert "embed has no option --labels" in done.stderr


def test_the_fastest_device_is_one_that_is_there(tmp_path):
    edges, _, _ = write_blocks(tmp_path)
    words = ["tune", "embed", edges, "--model", "hgcn", "--trials", 1, "--fix", "epochs=1"]
    called(*words, "--device", "auto", "--out", tmp_path / "tune")
