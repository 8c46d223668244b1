"""How long a run is: until its loss has converged, and the end of the schedule after that."""

import json
import math

import pytest
from small_graphs import write_tree
from typer.testing import CliRunner

from gyroformer.cli.app import app
from gyroformer.errors import UsageError
from gyroformer.options.training import TrainOptions
from gyroformer.runs.rows import settings_sha256
from gyroformer.settings import make_job
from gyroformer.train.length import WINDOW, Length

#: falls by half every hundred epochs, to 100
LOSSES = [100 + 100 * 0.5 ** (epoch / 100) for epoch in range(2000)]


def options(**changes):
    return TrainOptions(**{"epochs": 1500, "schedule": "linear", "converged": 0.01, **changes})


def converged_at(limit):
    """Return the epoch at which the windows' means differ by less than ``limit``, by the definition."""
    for done in range(2 * WINDOW, 2000):
        before, last = LOSSES[done - 2 * WINDOW : done - WINDOW], LOSSES[done - WINDOW : done]
        if sum(before) - sum(last) < limit * sum(before):
            return done
    raise AssertionError


@pytest.mark.parametrize("limit", [0.05, 0.01])
def test_the_schedule_ends_as_that_of_a_run_of_that_length(limit):
    found = Length(options(converged=limit), LOSSES)
    e = converged_at(limit)
    assert (found.epochs, found.known, found.converged) == (2 * e, True, True)
    assert Length(options(converged=limit), LOSSES[: e - 1]).known is False
    short = options(epochs=2 * e)
    assert [options().factor(epoch, found.epochs) for epoch in range(e, 2 * e)] == [
        short.factor(epoch) for epoch in range(e, 2 * e)
    ]


def test_other_schedules_and_ends():
    e = converged_at(0.01)
    assert Length(options(schedule="constant"), LOSSES).epochs == e + 1
    assert Length(options(decay_from=0.8), LOSSES).epochs == math.ceil(e / 0.8)
    assert Length(options(epochs=2 * e - 1), LOSSES).epochs == 2 * e - 1, "no longer than the settings say"
    assert Length(options(converged=None), LOSSES).epochs == 1500
    rising = Length(options(), [1.0 + i for i in range(2 * WINDOW)])
    assert rising.converged, "a loss that rises does not fall"
    with pytest.raises(UsageError, match="converged needs a schedule"):
        options(schedule="cosine")


def test_own_graphs_are_fast_by_default_and_named_ones_as_published():
    own = make_job("embed", graph={"source": "own.csv"})
    assert own.training.converged == 0.01
    assert make_job("embed", graph={"source": "own.csv"}, training={"epochs": 9}).training.converged is None
    assert make_job("embed", recipe="paper", graph={"source": "own.csv"}).training.converged is None
    named = make_job("embed", dataset="web-edu", graph={"source": "web-edu"})
    assert named.training.converged is None
    longer = named.but(training=named.training.but(converged=0.01))
    assert settings_sha256(longer) != settings_sha256(named)


def embed(*words):
    done = CliRunner().invoke(app, ["embed", *map(str, words)], catch_exceptions=False)
    assert done.exit_code in (0, 2), done.stderr
    return done


def test_the_command_stops_when_converged_and_goes_on_if_asked(tmp_path):
    tree = write_tree(tmp_path / "tree.csv")[0]
    words = [tree, "--model", "points", "--dim", 2, "--heads", 1, "--out", tmp_path / "run", "--json"]
    fast = embed(*words)
    found = json.loads(fast.stdout)
    assert found["stopped"] == "converged"
    assert 2 * WINDOW < found["epochs"] < 1500
    assert f"{found['epochs']} epochs in all (--thorough trains all 1500)" in fast.stderr
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len(rows) == found["epochs"]
    assert rows[0]["lr"] == 0.01
    assert rows[-1]["lr"] < 0.001
    assert "metrics" in rows[-1]
    longer = json.loads(embed(*words, "--resume", "--thorough").stdout)
    assert (longer["epochs"], longer["stopped"]) == (1500, "finished")
    again = json.loads(embed(*words, "--resume", "--thorough").stdout)
    assert again == longer
    both = embed(*words, "--thorough", "--converged", "0.1")
    assert (both.exit_code, "leave one out" in both.stderr) == (2, True)
