import json

import pytest
from evil_runs import small_run
from typer.testing import CliRunner

from gyroformer.cli.app import app


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    root = tmp_path_factory.mktemp("seeds")
    for seed in (0, 1):
        small_run(root / f"seed-{seed}", seed=seed)
    return root


def call(*args):
    return CliRunner().invoke(app, ["report", *map(str, args)])


def test_json_names_the_page(seeds, tmp_path):
    target = tmp_path / "page.html"
    done = call(seeds / "seed-0", "--out", target, "--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer == {"report": str(target), "bytes": target.stat().st_size}


def test_the_page_goes_here_and_a_folder_stands_for_its_runs(seeds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call(seeds)
    assert done.exit_code == 0, done.output
    assert "report.html" in done.stdout
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "seed-0" in text
    assert "seed-1" in text


def test_errors_are_one_line(tmp_path):
    done = call(tmp_path / "none")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1
