import csv
import json

import numpy as np
import pyarrow.parquet
import pytest
import torch
from small_graphs import write_blocks
from small_runs import make_runs
from typer.testing import CliRunner

import gyroformer
from gyroformer.cli.app import app
from gyroformer.cli.pair_option import as_pairs, joined
from gyroformer.errors import UsageError
from gyroformer.ops.neighbours import Neighbours
from gyroformer.tasks.average_precision import mean_average_precision


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return make_runs(tmp_path_factory.mktemp("runs"), write_blocks(tmp_path_factory.mktemp("graph")))


def predict(*args):
    return CliRunner().invoke(app, ["predict", *map(str, args)], catch_exceptions=False)


def invoke(*args):
    return CliRunner().invoke(app, [*map(str, args)], catch_exceptions=False)


def answer(*args):
    done = predict(*args, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "task, key, words",
    [
        ("classify", "labels", ("test F1", "P(blue)")),
        ("link", "new_edges", ("test AUC", "probability", "edges it was trained on")),
        ("embed", "nearest", ("mAP", "neighbour")),
    ],
)
def test_without_options_it_tells_what_the_run_is_for(runs, task, key, words):
    done = predict(runs[task])
    assert done.exit_code == 0, done.stderr
    said = " ".join(done.stdout.split())  # a long path wraps the lines
    for word in ("the run's own", *words):
        assert word in said
    found = answer(runs[task])
    assert found["task"] == task
    assert found[key]
    assert len(found["ids"]) == 48


def test_labels_of_all_nodes_and_of_some(runs):
    found = answer(runs["classify"], "--labels")
    assert [row["node"] for row in found["labels"]] == found["ids"]
    with np.load(runs["classify"] / "embeddings.npz") as stored:
        shares = stored["probability"]
    assert [row["P(red)"] for row in found["labels"]] == shares[:, 2].tolist()
    one = answer(runs["classify"], "--labels", "--node", "n3")
    assert one["ids"] == ["n3"]
    assert one["labels"] == [row for row in found["labels"] if row["node"] == "n3"]


def test_all_answers_in_one_object(runs, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("n8,n9\n")
    words = [
        "--nearest",
        "2",
        "--node",
        "n1",
        "--node",
        "n2",
        "--distance",
        "n1",
        "n2",
        "--distance",
        "n4",
        "n5",
    ]
    found = answer(runs["link"], *words, "--pairs", pairs, "--new-edges", "7")
    assert found["ids"] == ["n1", "n2"]
    assert [(row["node"], row["rank"]) for row in found["nearest"]] == [
        ("n1", 1),
        ("n1", 2),
        ("n2", 1),
        ("n2", 2),
    ]
    ends = [(row["source"], row["target"]) for row in found["distances"]]
    assert ends == [("n1", "n2"), ("n4", "n5"), ("n8", "n9")]
    assert len(found["new_edges"]) == 7
    assert all(0 < row["probability"] < 1 for row in found["new_edges"] + found["distances"])
    shown = predict(runs["link"], *words).stdout
    assert "nearest" in shown
    assert "distances" in shown


def test_files(runs, tmp_path):
    done = predict(runs["embed"], "--embeddings", tmp_path / "points.npz")
    assert done.exit_code == 0, done.stderr
    assert "points.npz" in done.stdout
    with np.load(tmp_path / "points.npz") as now, np.load(runs["embed"] / "embeddings.npz") as stored:
        assert set(now.files) == set(stored.files)
        assert all(np.array_equal(now[name], stored[name]) for name in now.files)
    done = predict(runs["link"], "--new-edges", "30", "--out", tmp_path / "new.csv")
    assert done.exit_code == 0, done.stderr
    assert "and 10 more rows" in done.stdout
    with (tmp_path / "new.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30
    assert [row["source"] for row in rows] == [
        r["source"] for r in answer(runs["link"], "--new-edges", "30")["new_edges"]
    ]


def test_another_graph(runs, tmp_path):
    edges, features, _ = write_blocks(tmp_path, prefix="m", groups=2, seed=3)
    found = answer(runs["classify"], edges, "--features", features)
    assert found["ids"] == [row["node"] for row in found["labels"]]
    assert len(found["ids"]) == 24
    assert {row["label"] for row in found["labels"]} <= {"red", "green", "blue", "white"}
    assert "another than the run" in predict(runs["classify"], edges, "--features", features).stdout
    done = predict(runs["embed"], edges)
    assert done.exit_code == 3
    assert "learned a vector for each" in done.stderr


@pytest.mark.parametrize(
    "task, words, line",
    [
        ("link", ["--nearest", "3", "--node", "n111"], "has the id 'n111'; did you mean 'n11'?"),
        ("link", ["--distance", "n1", "x"], "has the id 'x'"),
        ("link", ["--distance", "n1"], "takes two ids"),
        ("link", ["--node", "n1"], "add --nearest"),
        ("link", ["--node", "n1", "--new-edges", "3"], "--node chooses"),
        ("embed", ["--labels"], "needs a classify run"),
        ("embed", ["--embeddings", "points.doc"], "are written as"),
    ],
)
def test_wrong_questions_are_one_line_and_code_2(runs, task, words, line):
    done = predict(runs[task], *words)
    assert done.exit_code == 2
    assert line in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_folder_without_a_finished_run_is_code_3(tmp_path):
    done = predict(tmp_path)
    assert done.exit_code == 3
    assert "holds no run" in done.stderr


def test_pairs_of_words_survive_the_parser():
    words = joined(["run", "--distance", "-1", "--x", "--distance", "a", "b", "--", "--distance", "c", "d"])
    assert words[:3] == ["run", "--distance", "-1\0--x"]
    assert words[-3:] == ["--distance", "c", "d"]
    assert as_pairs(["-1\0--x", "a\0b"]) == [("-1", "--x"), ("a", "b")]
    with pytest.raises(UsageError, match="takes two ids"):
        as_pairs(["a"])


def test_exports_say_what_they_hold(tmp_path):
    edges, *_ = write_blocks(tmp_path, size=10)
    done = invoke("embed", edges, "--epochs", "30", "--out", tmp_path / "run")
    assert done.exit_code == 0, done.stderr
    done = invoke("predict", tmp_path / "run", "--embeddings", tmp_path / "points.csv")
    assert "tangent vectors at the origin, curvature of each head:" in done.stdout
    assert "not the distances of the nodes" in done.stdout.replace("\n", " ")
    about = json.loads((tmp_path / "points.csv.json").read_text())
    assert (about["heads"], about["width"], len(about["curvature"])) == (2, 8, 2)
    invoke("predict", tmp_path / "run", "--embeddings", tmp_path / "points.parquet")
    metadata = pyarrow.parquet.read_schema(tmp_path / "points.parquet").metadata
    assert json.loads(metadata[b"curvature"]) == about["curvature"]


def test_flat_vectors_keep_more_than_tangent_vectors(tmp_path):
    (tmp_path / "tree.csv").write_text("".join(f"n{(i - 1) // 4},n{i}\n" for i in range(1, 341)))
    options = ("--epochs", "80", "--eval-every", "80", "--curvature", "-2")
    done = invoke("embed", tmp_path / "tree.csv", *options, "--out", tmp_path / "run")
    assert done.exit_code == 0, done.stderr
    asked = ("predict", tmp_path / "run", "--embeddings", tmp_path / "flat.csv", "--flatten", "16")
    found = json.loads(invoke(*asked, "--json").stdout)["flatten"]
    assert found["tangent_map"] + 2 < found["map"] <= found["true_map"] + 1e-6
    assert f"mAP {found['map']:.2f} by them" in invoke(*asked).stdout
    # what was written is what was measured
    with (tmp_path / "flat.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    vectors = torch.tensor([[float(cell) for cell in row[1:]] for row in rows])
    assert vectors.shape == (341, 16)
    graph = gyroformer.load(tmp_path / "tree.csv")
    assert [row[0] for row in rows] == graph.ids
    distances = torch.cdist(vectors, vectors)
    again = mean_average_precision(lambda nodes: distances[nodes], Neighbours.of(graph.edge_index, 341))
    assert 100 * again == pytest.approx(found["map"], abs=0.5)
    assert invoke("predict", tmp_path / "run", "--flatten", "3").exit_code == 2
