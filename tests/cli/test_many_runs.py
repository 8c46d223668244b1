"""Commands of many runs say where they are and, when they are stopped, how to go on."""

import shlex

import pytest
from typer.testing import CliRunner

from gyroformer.cli.app import app
from gyroformer.jobs.pool import State


def stop(*args, **kwargs):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "words, does, kept",
    [
        (
            ["reproduce", "table1", "--results", "my rows", "--datasets", "web-edu"],
            "gyroformer.paper.run.run_cells",
            "interrupted; finished runs have their rows. To go on:",
        ),
        (
            ["tune", "embed", "web-edu", "--model", "gcn", "--trials", "2"],
            "gyroformer.search.run.run_search",
            "interrupted; finished trials are kept. To go on:",
        ),
    ],
)
def test_a_stop_says_how_to_go_on(words, does, kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(does, stop)
    monkeypatch.setattr("sys.argv", ["gyroformer", *words])
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 130
    assert done.stderr.splitlines() == [kept, f"  gyroformer {shlex.join(words)}"]


def test_a_long_run_of_a_table_is_not_silent(tmp_path, monkeypatch):
    def runs(cells, *, tell, watch, **options):
        watch(State(0, 15, 70.0, "web-edu gcn seed 0 20/1,500"))
        tell(State(1, 15, 65.0, "web-edu gcn seed 0: mAP 87.00 (5 s)"))
        return []

    monkeypatch.setattr("gyroformer.cli.progress.PATIENCE", 0.0)
    monkeypatch.setattr("gyroformer.paper.run.run_cells", runs)
    words = ["reproduce", "table1", "--results", str(tmp_path), "--datasets", "web-edu"]
    said = CliRunner().invoke(app, words).stderr.splitlines()
    assert said[0] == "0/15 runs, 1 min 10 s left: web-edu gcn seed 0 20/1,500"
    assert said[-1] == "1/15 runs, 1 min 05 s left: web-edu gcn seed 0: mAP 87.00 (5 s)"
