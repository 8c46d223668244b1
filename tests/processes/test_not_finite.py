"""A loss that is not a number in one process: all go back together, and give up together."""

import json

import several
import several_calls


def found(times, folder):
    several.run_in(2, several_calls.train_with_nan, times, str(folder), folder=folder)
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


def test_all_go_back(tmp_path):
    one, other = found(1, tmp_path)
    assert one == other
    assert one["lowered"]
    assert len(one["losses"]) == 12


def test_all_give_up(tmp_path):
    # the step that is repeated to find the culprit counts as well
    one, other = found(6, tmp_path)
    assert "for the second time" in one["error"]
    assert "for the second time" in other["error"]
