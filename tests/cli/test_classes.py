"""Classification as people use it, from files and commands: classes by name, given labels, a final model."""

import csv
import json

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from small_graphs import write_blocks
from typer.testing import CliRunner

import gyroformer as gf
from gyroformer.cli.app import app

WORDS = ["red", "green", "blue", "white"]


def call(*words):
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return the folder of files and of two runs, the second with a final model; every eighth node has no label."""
    folder = tmp_path_factory.mktemp("classes")
    edges, features, labels = write_blocks(folder, size=15, prefix="python3-a-long-name-of-a-package-")
    lines = labels.read_text().splitlines()
    labels.write_text(
        "\n".join(line for number, line in enumerate(lines) if number == 0 or number % 8) + "\n"
    )
    words = ["--features", features, "--labels", labels, "--split", "random", "--epochs", 3]
    said = {}
    for name, more in (("plain", []), ("final", ["--final"])):
        said[name] = call("classify", edges, *words, *more, "--out", folder / name).stdout
    return folder, said


def results(folder):
    return json.loads((folder / "results.json").read_text())


def test_classes_are_shown_by_name_with_scores_and_confusions(runs):
    folder, said = runs
    found = results(folder / "plain")
    run = gf.open_run(folder / "plain")
    names = found["label_names"]
    chosen = run.embeddings["probability"].argmax(-1)
    truth = run.graph.y.numpy()
    # which nodes were for the test is drawn again from the seed
    from gyroformer.report.record import held_out

    test = held_out(run).test.numpy()
    want = confusion_matrix(truth[test], chosen[test], labels=range(4))
    assert found["test_confusion"] == want.tolist()
    assert (want != want.T).any(), "a matrix that could not be told from its transpose says nothing"
    precision, recall, f1, nodes = precision_recall_fscore_support(
        truth[test], chosen[test], labels=range(4), zero_division=0.0
    )
    lines = {line.split()[0]: line.split() for line in said["plain"].splitlines() if line.split()}
    for label, name in enumerate(names):
        shown = [cell.replace("–", "0.0") for cell in lines[name][1:5]]
        scores = [f"{100 * score[label]:.1f}" for score in (precision, recall, f1)]
        assert shown == [str(nodes[label]), *scores]
        assert [int(cell) for cell in lines[name][5:]] == want[label].tolist()
    page = (folder / "plain" / "report.html").read_text()
    assert all(f'<th scope="row">{name}</th>' in page for name in WORDS)


def test_the_given_label_stands_beside_the_found_one(runs, tmp_path):
    folder, _ = runs
    call("predict", folder / "plain", "--labels", "--out", tmp_path / "found.csv")
    with (tmp_path / "found.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (folder / "labels.csv").open(newline="") as file:
        given = {row["id"]: row["label"] for row in csv.DictReader(file)}
    assert len(rows) == 60 > len(given)
    assert {row["node"]: row["given"] for row in rows} == {
        row["node"]: given.get(row["node"], "") for row in rows
    }
    empty = json.loads(call("predict", folder / "plain", "--labels", "--json").stdout)["labels"]
    assert {row["given"] for row in empty} == {*WORDS, None}


def test_ids_are_whole_however_narrow_the_terminal(runs, monkeypatch):
    folder, _ = runs
    monkeypatch.setenv("COLUMNS", "70")
    said = call("predict", folder / "plain", "--labels").stdout
    ids = gf.open_run(folder / "plain").ids[:20]
    assert [line.split()[0] for line in said.splitlines() if line.startswith("python3")] == ids
    assert "P(white)" not in said
    assert "more columns: --out FILE or --json has all" in said
    monkeypatch.setenv("COLUMNS", "200")
    assert "P(white)" in call("predict", folder / "plain", "--labels").stdout


def test_the_final_model_learns_from_all_and_keeps_the_metrics_of_the_tested_one(runs):
    folder, said = runs
    plain, final = results(folder / "plain"), results(folder / "final")
    assert {key: plain[key] for key in plain if key.startswith(("test_", "val_"))} == {
        key: final[key] for key in final if key.startswith(("test_", "val_"))
    }
    assert final["final"] == {"nodes": 53, "epochs": final["best_epoch"]}
    assert "final" not in plain
    assert "no test of its own" in " ".join(said["final"].split())
    one, other = (gf.open_run(folder / name).embeddings["probability"] for name in ("plain", "final"))
    assert not np.allclose(one, other), "predict uses the final model"
    truth = gf.open_run(folder / "final").graph.y.numpy()
    known = truth >= 0
    right = [(chances.argmax(-1) == truth)[known].mean() for chances in (one, other)]
    assert right[1] >= right[0]
    asked = json.loads(call("predict", folder / "final", "--labels", "--json").stdout)["labels"]
    assert [row["probability"] for row in asked] == pytest.approx(other.max(-1).tolist(), abs=1e-5)
    page = (folder / "final" / "report.html").read_text()
    assert "has no test of its own" in page
    assert "which is not the final one of this page" in page
    assert "Can the probabilities be trusted?" not in page, "it has seen all nodes"


def test_a_final_model_from_python(runs):
    folder, _ = runs
    labels = {row.split(",")[0]: row.split(",")[1] for row in (folder / "labels.csv").read_text().split()[1:]}
    options = {"epochs": 5, "random_state": 0}
    plain, final = (
        gf.NodeClassifier(**options, final=value).fit(folder / "edges.csv", labels) for value in (False, True)
    )
    assert not np.allclose(plain.predict_proba(), final.predict_proba())
