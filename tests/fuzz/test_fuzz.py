"""A few hostile cases of every target; ``make fuzz`` runs them for longer."""

import csv
from pathlib import Path

import pytest
from fuzz_targets import TARGETS
from fuzzing import run_target

#: cases and seconds for each target
COUNT, SECONDS = 60, 4.0
RESULTS = Path(__file__).parents[2] / "results" / "fuzz.csv"


@pytest.mark.parametrize("name", TARGETS)
def test_each_case_ends_well_or_in_one_clear_error(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tally = run_target(name, TARGETS[name], tmp_path, count=COUNT, seconds=SECONDS)
    assert tally.ran > 0
    assert tally.failures == []


def test_a_failure_is_seen(tmp_path):
    def crash():
        raise KeyError("x")

    def lines():
        from gyroformer.errors import DataError

        raise DataError("one\ntwo")

    def target(folder, stream):
        yield "crash", crash
        yield "two lines", lines
        yield "fine", lambda: None

    tally = run_target("t", target, tmp_path, count=10, seconds=10)
    assert (tally.ran, tally.refused, len(tally.failures)) == (3, 1, 2)
    assert "KeyError" in tally.failures[0]


def test_the_committed_count_has_every_target_and_no_failure():
    with RESULTS.open(newline="", encoding="utf-8") as file:
        rows = {row["target"]: row for row in csv.DictReader(file)}
    assert rows.keys() == TARGETS.keys()
    assert all(int(row["cases"]) >= 50 and row["failed"] == "0" for row in rows.values())
