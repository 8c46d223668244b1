"""A task is one file and its registration: a toy goes through command, run folder, resume, predict and report."""

import json
from typing import Literal

import pytest
import typer
from small_graphs import write_blocks
from typer.testing import CliRunner

import gyroformer as gf
from gyroformer.cli.app import guarded
from gyroformer.cli.job import run_command
from gyroformer.cli.job_flags import job_command
from gyroformer.jobs.predict import usual_answer
from gyroformer.jobs.restore import restore
from gyroformer.options import Options, option
from gyroformer.report import write_report
from gyroformer.tasks import TASKS, Task


class SpreadObjective(Options):
    """What ``spread`` is to reach."""

    radius: float = option("distance of the nodes from the origin", default=1.0, above=0)
    power: Literal["first", "second"] = option("which power of the difference", default="second")


class Spread(Task):
    """Put all nodes at one distance from the first."""

    name = "spread"
    title = "spreading"
    help = "Put all nodes at one distance from the first."
    Objective = SpreadObjective
    shown = ("spread_error",)

    def __init__(self, data, objective):
        self.data, self.objective = data, objective

    @classmethod
    def from_graph(cls, graph, objective, ready, *, seed, **given):
        return cls(ready(graph, False), objective)

    def _difference(self, model):
        rows = model.positions(self.data).squared_dist_rows(self.data.edge_index.new_zeros(1))[0, 1:]
        return (rows - self.objective.radius**2).abs()

    def loss(self, model):
        difference = self._difference(model)
        return (difference if self.objective.power == "first" else difference.square()).mean()

    def evaluate(self, model):
        return {"spread_error": float(self._difference(model).mean())}

    def results(self, model, metrics):
        return dict(metrics)


@pytest.fixture
def command(monkeypatch):
    monkeypatch.setitem(TASKS, "spread", Spread)
    app = typer.Typer()
    function, kind = job_command("spread", run_command, guarded)
    app.command(cls=kind)(function)
    app.command("other")(lambda: None)
    return lambda *words: CliRunner().invoke(app, ["spread", *map(str, words)])


@pytest.mark.parametrize("model", ["fpst", "hgcn", "gcn"])
def test_a_new_task_has_a_command_a_run_a_prediction_and_a_page(command, model, tmp_path):
    edges = write_blocks(tmp_path)[0]
    words = (edges, "--model", model, "--radius", 2, "--epochs", 30, "--out", tmp_path / "run", "--json")
    done = command(*words)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert found["spread_error"] < 0.7 * rows[0]["metrics"]["spread_error"]
    assert json.loads(command(*words, "--resume").stdout)["spread_error"] == found["spread_error"]
    run = gf.open_run(tmp_path / "run")
    assert run.settings.objective == SpreadObjective(radius=2.0)
    restored = restore(tmp_path / "run")
    assert usual_answer(restored, restored.indices(["n0"])).name == "nearest"
    page = write_report([tmp_path / "run"], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "spreading" in page
    assert "spread error" in page


def test_its_options_are_flags_with_checks(command, tmp_path):
    said = " ".join(command("--help").output.replace("│", " ").split())
    assert "Distance of the nodes from the origin (default: 1)" in said
    assert "first|second" in said
    done = command(write_blocks(tmp_path)[0], "--radius", 0, "--out", tmp_path / "run")
    assert done.exit_code == 2
    assert done.stderr == "error: --radius must be a finite number above 0; got '0'\n"
