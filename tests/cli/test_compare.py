"""Comparing models from the outside: files, the command, and what it leaves."""

import contextlib
import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from small_graphs import write_blocks, write_tree
from typer.testing import CliRunner

from gyroformer.cli.app import app
from gyroformer.errors import UsageError
from gyroformer.jobs.compare import Comparison
from gyroformer.report.page import read_runs
from gyroformer.settings import make_job


def call(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.stderr or done.output
    return done


def test_models_are_compared_seed_by_seed_and_nothing_is_done_twice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_tree(tmp_path / "tree.csv")
    words = ["compare", "embed", "tree.csv", "--epochs", 4, "--heads", 1, "--header"]
    first = call(*words, "--models", "fpst,gcn", "--seeds", 2, "--workers", 2, "--json")
    assert "--heads is for the models that have it, not for gcn" in first.stderr
    assert "the nodes of all models start in disorder, since gcn cannot start along a tree" in first.stderr
    assert "4/4 runs" in first.stderr
    found = json.loads(first.stdout)
    out = tmp_path / found["out"]
    assert (found["out"], found["metric"], found["failed"]) == ("runs/compare-tree-embed", "map", [])
    assert [(row["model"], row["seeds"]) for row in found["rows"]] == [("fpst", 2), ("gcn", 2)]
    for row in found["rows"]:
        runs = [json.loads((tmp_path / run / "results.json").read_text()) for run in row["runs"]]
        assert [run["seed"] for run in runs] == [0, 1]
        configs = [json.loads((tmp_path / run / "config.json").read_text()) for run in row["runs"]]
        assert [config["job"]["objective"]["start"] for config in configs] == ["random"] * 2
        assert row["values"] == {str(run["seed"]): pytest.approx(run["map"], rel=1e-5) for run in runs}
        assert row["mean"] == pytest.approx(sum(run["map"] for run in runs) / 2, rel=1e-5)
        assert row["low"] <= row["mean"] <= row["high"]
        assert (row["parameters"], row["recipe"]) == (runs[0]["parameters"], runs[0]["recipe"])
    [pair] = found["differences"]
    fpst, gcn = (row["mean"] for row in found["rows"])
    assert (pair["first"], pair["model"], pair["pairs"]) == ("fpst", "gcn", 2)
    assert pair["mean"] == pytest.approx(fpst - gcn)
    assert pair["t"] == pair["holm"]
    assert json.loads((out / "compare.json").read_text()) == found
    # another seed: four runs are there, two are done; the table says what the object says
    again = call(*words, "--models", "fpst,gcn", "--seeds", 3)
    said = again.stderr
    assert "5/6 runs" in said
    assert "seed 2: mAP" in said
    assert "seed 0: mAP" not in said
    assert "seed 1: mAP" not in said
    assert "fpst minus the others, paired by seed" in again.stdout
    page = (out / "report.html").read_text()
    assert all(f"{model} seed {seed}" in page for model in ("fpst", "gcn") for seed in range(3))
    assert "FPS-T minus" in page
    assert len(read_runs([out])) == 6, "the folder can be given to report"
    with (tmp_path / "tree.csv").open("a") as file:
        file.write("n0,new\n")
    other = call(*words, "--models", "fpst,gcn", "--seeds", 3, code=2)
    assert "was begun on another graph" in other.stderr


def test_models_are_not_compared_on_different_nodes(tmp_path):
    edges, _, labels = write_blocks(tmp_path)
    graph = {"source": str(edges), "labels": str(labels)}
    jobs = {
        model: make_job("classify", graph=graph, model={"name": model}, objective={"split": split})
        for model, split in (("mlp", "random"), ("gcn", "clean"))
    }
    with pytest.raises(UsageError, match="mlp would be tested on the split random and gcn on clean"):
        Comparison(jobs, 1, tmp_path / "out").run(workers=1, threads=1)


def test_models_that_can_start_along_a_tree_do(tmp_path):
    graph, _ = write_tree(tmp_path / "tree.csv")
    words = ["--models", "fpst,tokengt", "--epochs", 1, "--seeds", 1, "--out", tmp_path / "out", "--json"]
    done = call("compare", "embed", graph, *words)
    assert "disorder" not in done.stderr
    for row in json.loads(done.stdout)["rows"]:
        config = json.loads((Path(row["runs"][0]) / "config.json").read_text())
        assert config["job"]["objective"]["start"] == "tree"


def test_classes_and_own_files(tmp_path):
    edges, features, labels = write_blocks(tmp_path)
    files = ["--features", features, "--labels", labels, "--split", "random"]
    words = ["compare", "classify", edges, *files, "--epochs", 3, "--models", "mlp,gcn", "--seeds", 2]
    found = json.loads(call(*words, "--out", tmp_path / "out", "--json").stdout)
    assert found["metric"] == "test_f1"
    assert found["differences"][0]["corrected"], "drawn splits overlap"


@pytest.mark.parametrize(
    "words, said",
    [
        (["embd", "g.csv", "--models", "fpst,gcn"], "no task is called 'embd'; did you mean 'embed'?"),
        (["embed", "g.csv", "--models", "fpst,hgcm"], "'hgcm'; did you mean 'hgcn'?"),
        (["embed", "g.csv", "--models", "fpst"], "--models names one model"),
        (["embed", "g.csv"], "--models names no model"),
        (["embed", "g.csv", "--models", "fpst,gcn,fpst"], "--models names 'fpst' twice"),
        (["embed", "g.csv", "--models", "gcn,mlp", "--heads", "2"], "none of the models gcn, mlp has such"),
        (["embed", "none.csv", "--models", "gcn,mlp"], "none.csv"),
        (["classify", "g.csv", "--models", "gcn,mlp"], "the graph has no labels"),
        (["embed", "g.csv", "--models", "gcn,mlp", "--seeds", "0"], "--seeds must be"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.csv").write_text("source,target\na,b\nb,c\n")
    done = CliRunner().invoke(app, ["compare", *words])
    assert done.exit_code in (2, 3)
    assert said in done.stderr
    lines = [line for line in done.stderr.splitlines() if "directed edges of" not in line]
    assert len(lines) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["g.csv"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stop_leaves_a_checkpoint_and_no_process(tmp_path, how):
    write_tree(tmp_path / "tree.csv")
    words = ["compare", "embed", "tree.csv", "--models", "gcn,mlp", "--seeds", "2", "--epochs", "10000000"]
    # a job in the background of a shell would ignore the signal
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        f"sys.argv = ['gyroformer', *{words}]; from gyroformer.__main__ import main; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        said = next((line for line in process.stderr if "/10,000,000" in line), "")
        assert "left: gcn seed 0" in said
        workers = psutil.Process(process.pid).children()
        assert workers
        for _ in range(5):  # Python drops a signal that meets a destructor
            process.send_signal(how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                _, err = process.communicate(timeout=30)
                break
    assert psutil.wait_procs(workers, timeout=60)[1] == [], "a process is left"
    assert len(list(tmp_path.glob("runs/*/*/seed-0/checkpoints/*.json"))) == 1, "of the run under way"
    if how != signal.SIGKILL:
        assert process.returncode == 130, err
        assert "Traceback" not in err
        again = shlex.join(["gyroformer", *words])
        assert err.strip().splitlines()[-2:] == [
            "interrupted; 0 of 4 runs are done. To go on:",
            f"  {again}",
        ]


def test_after_a_job_two_lines_say_what_to_do_next(tmp_path):
    edges, features, labels = write_blocks(tmp_path)
    words = [edges, "--features", features, "--labels", labels, "--epochs", 2, "--out", tmp_path / "run"]
    said = call("classify", *words).stdout.splitlines()[-2:]
    assert said == [
        f"next: gyroformer predict {tmp_path / 'run'} --labels --out predicted.csv",
        f"      gyroformer compare classify {edges} --features {features} --labels {labels} "
        "--models fpst,tokengt --seeds 5",
    ]
    assert "next:" not in call("classify", *words, "--resume", "--json").stdout
    words = [edges, "--header", "--features", features, "--epochs", 2, "--out", tmp_path / "points"]
    assert (
        call("embed", *words).stdout.splitlines()[-1] == f"      gyroformer curvature {edges} --header --fit"
    )
