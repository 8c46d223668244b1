import json

import numpy as np
import pytest
from small_graphs import write_blocks
from typer.testing import CliRunner

from gyroformer.cli.app import app
from gyroformer.report.links import missing_edges, roc
from gyroformer.report.page import read_runs

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


def hub_graph(folder):
    """Write a graph of a few hubs with many neighbours each, where degrees tell more than distances."""
    rng = np.random.default_rng(0)
    rows = {(f"hub{i}", f"hub{j}") for i in range(6) for j in range(i)}
    for leaf in range(150):
        rows |= {(f"leaf{leaf}", f"hub{hub}") for hub in rng.choice(6, size=2, replace=False)}
    path = folder / "hubs.csv"
    path.write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in sorted(rows)))
    return path, rows


def test_the_command_answers_which_edges_are_missing(tmp_path):
    path, rows = hub_graph(tmp_path)
    done = run(path, "--epochs", "60", "--out", tmp_path / "run", "--new-edges", "7", "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)["new_edges"]
    assert len(found) == 7
    assert not {(one["source"], one["target"]) for one in found} & rows
    assert not {(one["target"], one["source"]) for one in found} & rows
    chances = [one["probability"] for one in found]
    assert chances == sorted(chances, reverse=True)
    written = (tmp_path / "run" / "new_edges.csv").read_text().splitlines()
    assert written[0] == "source,target,distance,probability"
    assert [line.split(",")[:2] for line in written[1:]] == [[one["source"], one["target"]] for one in found]
    # the same question to the finished run has the same answer
    asked = CliRunner().invoke(app, ["predict", str(tmp_path / "run"), "--new-edges", "7", "--json"])
    assert [one["source"] for one in json.loads(asked.stdout)["new_edges"]] == [o["source"] for o in found]


def test_the_missing_edges_of_one_node(tmp_path):
    path, _ = hub_graph(tmp_path)
    options = ("--epochs", "60", "--for", "leaf3", "--out", tmp_path / "run")
    done = run(path, *options)
    assert done.exit_code == 0, done.stderr
    assert "most likely missing edges" in done.stdout
    written = [line.split(",") for line in (tmp_path / "run" / "new_edges.csv").read_text().splitlines()[1:]]
    assert {row[0] for row in written} == {"leaf3"}
    # a node with two hubs is likelier to have a third than another leaf
    assert written[0][1].startswith("hub")
    asked = CliRunner().invoke(app, ["predict", str(tmp_path / "run"), "--for", "leaf3", "--json"])
    assert [one["target"] for one in json.loads(asked.stdout)["new_edges"]] == [row[1] for row in written]


def test_a_wrong_node_is_refused_before_anything_is_done(tmp_path):
    path, _ = hub_graph(tmp_path)
    done = run(path, "--for", "leef3", "--out", tmp_path / "run")
    assert (done.exit_code, "did you mean 'leaf3'" in done.stderr) == (2, True)
    assert not (tmp_path / "run").exists()


def test_degrees_find_what_distances_do_not(tmp_path):
    path, _ = hub_graph(tmp_path)
    found = {}
    for flag in ("--degrees", "--no-degrees"):
        done = run(path, "--epochs", "60", flag, "--out", tmp_path / flag, "--new-edges", "0", "--json")
        found[flag] = json.loads(done.stdout)
    assert found["--degrees"]["val_auc"] > found["--no-degrees"]["val_auc"] + 2
    assert found["--degrees"]["decoder"]["degree_weight"] > 0
    assert found["--no-degrees"]["decoder"]["degree_weight"] is None


def test_probabilities_are_calibrated(tmp_path):
    path, *_ = write_blocks(tmp_path, size=40)
    held_out = ("--val-fraction", "0.2", "--test-fraction", "0.2", "--new-edges", "0")
    done = run(path, "--epochs", "60", *held_out, "--json", "--out", tmp_path / "run")
    found = json.loads(done.stdout)
    assert found["test_calibration"] < 8  # 780 test pairs: chance alone gives some points
    scale, shift = found["decoder"]["calibration"]
    assert scale > 0
    assert (scale, shift) != (1.0, 0.0)


@pytest.fixture(scope="module")
def one_way(tmp_path_factory):
    """A run on a graph whose nodes point to two nearer to its centre, by a header of the user's own."""
    folder = tmp_path_factory.mktemp("directed")
    edges = [(u, v) for u in range(1, 200) for v in {u // 2, u // 3}]
    (folder / "g.csv").write_text("package,needs\n" + "".join(f"p{u},p{v}\n" for u, v in edges))
    words = ["--directed", "--epochs", "200", "--out", folder / "run", "--json"]
    done = run(folder / "g.csv", *words)
    assert done.exit_code == 0, done.stderr
    return folder / "run", json.loads(done.stdout)


def test_direction_is_learned_and_said(one_way):
    found = one_way[1]
    assert found["test_direction"] > 85
    assert found["split"]["directed"] is True
    assert found["decoder"]["depth_weight"] is not None
    assert len(found["decoder"]["degree_weight"]) == 2


def test_the_page_shows_directed_pairs_as_predict_does(one_way):
    folder, found = one_way
    (record,) = read_runs([folder])
    false, true = roc(record)
    assert np.trapezoid(true, false) == pytest.approx(found["test_auc"] / 100, abs=1e-6)
    asked = json.loads(CliRunner().invoke(app, ["predict", str(folder), "--new-edges", "5", "--json"]).stdout)
    pairs = [(row["source"], row["target"]) for row in asked["new_edges"]]
    assert [(one.source, one.target) for one in missing_edges(record, 5)] == pairs


def test_directed_pairs_are_asked_for_in_their_direction(one_way):
    folder, _ = one_way

    def ask(*words):
        done = CliRunner().invoke(app, ["predict", str(folder), *words, "--json"], catch_exceptions=False)
        assert done.exit_code == 0, done.stderr
        return json.loads(done.stdout)

    ahead, back = (ask("--distance", *pair)["distances"][0] for pair in (("p20", "p10"), ("p10", "p20")))
    assert ahead["distance"] == pytest.approx(back["distance"], rel=1e-5)
    assert ahead["probability"] > back["probability"]
    likely = ask("--new-edges", "5", "--for", "p20")["new_edges"]
    assert [row["source"] for row in likely] == ["p20"] * 5
    assert not {row["target"] for row in likely} & {"p10", "p6"}
