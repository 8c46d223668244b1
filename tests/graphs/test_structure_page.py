"""The page docs/structure.md does what it says."""

import os
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gyroformer.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "structure.md"


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)


def test_the_python_runs(capsys):
    assert len(blocks("python")) == 3
    for block in blocks("python"):
        exec(compile(block, str(PAGE), "exec"), {})
    said = capsys.readouterr().out
    assert "mostly cycle-like: positive" in said
    assert "torch.Size([5, 20])" in said


@pytest.mark.data
def test_the_commands_run(tmp_path, monkeypatch):
    if not os.environ.get("GYROFORMER_DATA"):
        pytest.skip("GYROFORMER_DATA is not set")
    monkeypatch.setenv("GYROFORMER_DATA", str(Path(os.environ["GYROFORMER_DATA"]).absolute()))
    monkeypatch.chdir(tmp_path)
    lines = [line for block in blocks("console") for line in block.splitlines()]
    assert len(lines) == 4
    for line in lines:
        prompt, program, *args = shlex.split(line)
        assert (prompt, program) == ("$", "gyroformer")
        done = CliRunner().invoke(app, args, catch_exceptions=False)
        assert done.exit_code == 0, done.stderr
        assert ("per hop²" if "--fit" in args else "-0.6267") in done.stdout
    assert (tmp_path / "web-edu.html").exists()
