"""The page docs/predict.md does what it says, from its first block to its last in one folder."""

import csv
import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from gyroformer.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "predict.md"


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    names = {}
    said = {}
    for kind, block in re.findall(r"^```(python|console)\n(.*?)^```", text, flags=re.M | re.S):
        if kind == "python":
            exec(compile(block, str(PAGE), "exec"), names)
            continue
        for line in block.splitlines():
            prompt, program, *args = shlex.split(line)
            assert (prompt, program) == ("$", "gyroformer")
            done = CliRunner().invoke(app, args, catch_exceptions=False)
            assert done.exit_code == 0, (line, done.stderr)
            said[line] = done.stdout
    assert len(said) == 15
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
    assert float(printed[1]) > 50
