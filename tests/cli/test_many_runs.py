"""Commands of many runs say where they are and, when they are stopped, how to go on."""

import shlex

import pytest
from typer.testing import CliRunner

from gyroformer.cli.app import app
from gyroformer.cli.progress import Progress
from gyroformer.errors import DataError
from gyroformer.jobs.pool import State
from gyroformer.search.study import Told, Underway


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


def test_a_search_is_not_silent_within_a_trial(tmp_path, monkeypatch):
    said = []

    def search(asked, storage, *, tell, watch, **options):
        watch(Underway(0, 1, 3))
        watch(Underway(0, 2, 3, 40, 800))
        watch(Underway(1, 1, 3, 5, 800))
        tell(Told(0, "complete", 84.94, "", 1, 84.94))
        watch(Underway(1, 1, 3, 90, 800))
        raise DataError("that is enough")

    monkeypatch.setattr(Progress, "show", lambda shown, text: said.append(text))
    monkeypatch.setattr(Progress, "tell", lambda shown, text: said.append(text))
    monkeypatch.setattr("gyroformer.search.run.run_search", search)
    monkeypatch.setattr("gyroformer.cli.training_bar.duration", lambda seconds: "no time")
    words = ["tune", "classify", "texas", "--model", "mlp", "--trials", "12", "--out", str(tmp_path)]
    CliRunner().invoke(app, words)
    assert said == [
        "0/12: trial 0 run 1/3 starts",
        "0/12: trial 0 run 2/3 epoch 40/800",
        "0/12: trial 0 run 2/3 epoch 40/800, trial 1 run 1/3 epoch 5/800",
        "1/12, no time left: trial 0 validation F1 84.94, best 84.94",
        "1/12, no time left: trial 1 run 1/3 epoch 90/800",
    ]
