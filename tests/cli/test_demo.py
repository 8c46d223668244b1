import json
import os
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def answer():
    done = subprocess.run(
        [sys.executable, "-m", "gyroformer", "demo", "--json", "--seed", "3", "--threads", "1"],
        capture_output=True,
        text=True,
        env=os.environ | {"NO_COLOR": "1"},
        timeout=300,
        check=True,
    )
    return json.loads(done.stdout)


def test_json_has_both_spaces_of_every_graph(answer):
    rows = answer["rows"]
    assert [row["space"] for row in rows] == ["flat", "learned"] * 3
    assert answer["seed"] == 3
    assert answer["seconds"] > sum(row["seconds"] for row in rows) > 0


def test_the_learned_space_fits_better_with_the_sign_that_the_graph_asks_for(answer):
    flat, learned = answer["rows"][::2], answer["rows"][1::2]
    assert all(row["curvature"] == 0 for row in flat)
    assert [row["curvature"] > 0 for row in learned] == [False, True, False]
    assert all(b["distortion"] < 0.9 * a["distortion"] for a, b in zip(flat, learned, strict=True))
