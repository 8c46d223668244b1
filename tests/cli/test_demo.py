import functools
import json

import pytest
from typer.testing import CliRunner

from gyroformer.cli.app import app
from gyroformer.cli.demo import explanation
from gyroformer.demo import twins
from gyroformer.demo.stdlib_graph import ImportGraph
from gyroformer.errors import Interrupted

GRAPH = ImportGraph(
    names=tuple(f"m{i:02d}" for i in range(31)),
    edges=tuple(((i - 1) // 2, i) for i in range(1, 31)),
    python="3.0",
)


@pytest.fixture
def short(monkeypatch, tmp_path):
    """Make the demo small: another graph, a few epochs."""
    monkeypatch.setattr(twins, "run", functools.partial(twins.run, epochs=3, graph=GRAPH))
    monkeypatch.chdir(tmp_path)


def call(*args):
    return CliRunner().invoke(app, ["demo", "--threads", "1", *args])


def test_json_has_both_models_and_the_page(short, tmp_path):
    done = call("--json", "--seed", "3")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    for name in ("fpst", "flat"):
        assert {"map", "curvatures", "seconds"} <= answer[name].keys()
    assert answer["report"] == "runs/demo/report.html"
    assert (tmp_path / answer["report"]).stat().st_size < 2_000_000
    assert answer["seed"] == 3
    assert answer["seconds"] >= answer["fpst"]["seconds"] + answer["flat"]["seconds"]


def test_the_table_says_where_to_look_and_what_to_type(short, tmp_path):
    done = call("--out", "elsewhere")
    assert done.exit_code == 0, done.output
    for part in ("FPS-T", "flat twin", "mAP", "curvatures", "seconds", "0 (fixed)", "elsewhere/report.html"):
        assert part in done.stdout
    command = next(line for line in done.stdout.splitlines() if "gyroformer embed" in line)
    assert (tmp_path / command.split()[2]).is_file()
    assert call("--out", "elsewhere").exit_code == 0  # and again


def test_an_interruption_says_how_to_go_on(short, monkeypatch, tmp_path):
    def stopped(*args, **kwargs):
        raise Interrupted(tmp_path, 7)

    monkeypatch.setattr(twins, "run", stopped)
    done = call()
    assert done.exit_code == 130
    assert "after epoch 7; the same command goes on" in done.stderr


@pytest.mark.parametrize(
    "ahead, curvatures, said",
    [
        (11.0, [[-0.3, -1.2]], ("11.0 points ahead", "all its heads became hyperbolic")),
        (-2.0, [[0.3, 0.2]], ("2.0 points behind", "spherical")),
        (0.3, [[-0.3, 0.2]], ("equally well", "1 of its heads became hyperbolic and 1 spherical")),
        (0.0, [[0.0, 0.0]], ("equally well", "stayed flat")),
    ],
)
def test_the_sentence_says_what_was_found(ahead, curvatures, said):
    text = explanation({"map": 70 + ahead, "curvatures": curvatures}, {"map": 70.0})
    assert all(part in text for part in said)


def test_the_demo_takes_the_standard_library(monkeypatch, tmp_path):
    class Stop(Exception):
        pass

    def job(settings, **options):
        raise Stop

    monkeypatch.setattr(twins, "stdlib_graph", lambda: GRAPH)
    monkeypatch.setattr(twins, "run_job", job)
    with pytest.raises(Stop):
        twins.run(tmp_path)
    assert (tmp_path / "python-3.0-imports.csv").read_text().splitlines()[:2] == ["source,target", "m00,m01"]
