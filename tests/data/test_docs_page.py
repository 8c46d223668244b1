"""The page docs/datasets.md does what it says, on the real files."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gyroformer.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "datasets.md"


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)


@pytest.mark.data
def test_the_python_runs(real, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks("python"):
        exec(compile(block, str(PAGE), "exec"), names)
    said = capsys.readouterr().out
    assert "LEAKS: 225 of 506" in said
    assert names["hgcn"].x.shape == (3188, 11)


@pytest.mark.data
def test_the_commands_run(real):
    lines = [line for block in blocks("console") for line in block.splitlines()]
    assert len(lines) == 5
    for line in lines:
        prompt, program, *args = shlex.split(line)
        assert (prompt, program) == ("$", "gyroformer")
        if args != ["datasets", "--check"]:  # has a test of its own, and takes long
            done = CliRunner().invoke(app, args, catch_exceptions=False)
            assert done.exit_code == 0, done.stderr
