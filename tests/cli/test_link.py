import json

import pytest
from small_graphs import write_blocks
from typer.testing import CliRunner

from gyroformer.cli.app import app

FAST = ["--epochs", "6", "--eval-every", "2", "--identifiers", "2"]


def run(*args):
    return CliRunner().invoke(app, ["link", *map(str, args)], catch_exceptions=False)


@pytest.fixture
def files(tmp_path):
    return write_blocks(tmp_path, size=16)


def test_json_has_the_figures(files, tmp_path):
    done = run(files[0], "--features", files[1], *FAST, "--out", tmp_path / "run", "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert {"test_auc", "test_ap", "val_auc", "curvatures", "epochs", "seconds"} <= set(found)
    assert found["test_hits@10"] is not None
    assert found["test_hits@100"] is None
    assert found["run"] == str(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "results.json").read_text())["test_auc"] == found["test_auc"]


def test_the_screen_shows_figures_that_there_are(files, tmp_path):
    done = run(files[0], *FAST, "--out", tmp_path / "run", "--decoder", "distance", "--learn-decoder")
    assert done.exit_code == 0, done.stderr
    for word in ("test AUC", "test AP", "test Hits@10", "validation AUC", "train/validation/test"):
        assert word in done.stdout
    assert "Hits@100" not in done.stdout
    settings = json.loads((tmp_path / "run" / "config.json").read_text())["job"]["objective"]
    assert (settings["decoder"], settings["learn_decoder"]) == ("distance", True)


def test_seeds_give_a_mean_over_draws(files, tmp_path):
    done = run(files[0], *FAST, "--out", tmp_path / "runs", "--seeds", "2", "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    sums = {one["split"]["sha256"] for one in found["runs"]}
    assert len(sums) == 2
    assert found["test_auc"] == pytest.approx(sum(one["test_auc"] for one in found["runs"]) / 2)
    assert found["interval"]["test_auc"] is not None


@pytest.mark.parametrize(
    "options, word",
    [
        (["--decoder", "dot"], "fermi-dirac"),
        (["--val-fraction", "0.9", "--test-fraction", "0.2"], "must be below 1 together"),
        (["--temperature", "0"], "--temperature must be a finite number above 0"),
    ],
)
def test_wrong_options_are_one_line_and_code_2(files, tmp_path, options, word):
    done = run(files[0], *FAST, "--out", tmp_path / "run", *options)
    assert done.exit_code == 2
    assert word in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_graph_that_is_too_small_is_code_3(tmp_path):
    (tmp_path / "tiny.csv").write_text("source,target\na,b\nb,c\n")
    done = run(tmp_path / "tiny.csv", *FAST, "--out", tmp_path / "run")
    assert done.exit_code == 3
    assert "2 edges: too few" in done.stderr
