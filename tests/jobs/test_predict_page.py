"""The page docs/predict.md does what it says, from its first block to its last in one folder."""

import ast
import csv
from pathlib import Path

from page_runner import run_page

PAGE = Path(__file__).parents[2] / "docs" / "predict.md"


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    said = run_page(PAGE)
    assert len(said) == 20
    with (tmp_path / "new.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 20
    with (tmp_path / "labels_found.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (tmp_path / "labels.csv").open(newline="") as file:
        truth = {row["id"]: row["label"] for row in csv.DictReader(file)}
    assert sum(row["label"] == truth[row["node"]] for row in rows) > 90
    assert len((tmp_path / "points.csv").read_text().splitlines()) == 121
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 123  # two nodes more
    printed = capsys.readouterr().out.splitlines()
    assert any("new1" not in line and line.startswith("[('n") for line in printed)  # the new node's nearest
    assert {name for name, _ in ast.literal_eval(printed[1])} == {"bear", "mammal", "animal"}
    assert float(printed[2]) > 50
