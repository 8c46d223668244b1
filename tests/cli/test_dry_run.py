import json

import pytest
from small_graphs import write_tree
from typer.testing import CliRunner

from gyroformer.cli.app import app


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_tree(tmp_path / "tree.csv")[0]


def test_a_dry_run_says_what_the_job_takes_and_writes_nothing(tree, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    done = run("embed", tree, "--epochs", 70, "--eval-every", 20, "--seeds", 2, "--dry-run", "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert sorted(tmp_path.rglob("*")) == before
    assert found["tokens"] == found["nodes"] + found["edges"]
    assert (found["epochs"], found["evaluations"], found["seeds"]) == (70, 4, 2)
    assert found["memory"]["total"] == sum(v for k, v in found["memory"].items() if k != "total")
    assert found["memory_in_use"] > 1e8
    assert found["seconds_per_epoch"] > 0
    each = 70 * found["seconds_per_epoch"] + 4 * found["seconds_per_evaluation"]
    assert found["seconds"] == pytest.approx(each)


@pytest.mark.parametrize("task", ["embed", "link"])
def test_it_is_said_in_words(tree, task):
    done = run(task, tree, "--dry-run")
    assert done.exit_code == 0, done.stderr
    for word in ("tokens", "GB estimated", "an epoch", "at most", "nothing was written"):
        assert word in done.stdout
    assert not (tree.parent / "runs").exists()


def test_what_the_job_would_refuse_is_refused(tree):
    done = run("link", tree, "--for", "nobody", "--dry-run")
    assert done.exit_code == 2
    assert "--for nobody: no node has this id" in done.stderr
