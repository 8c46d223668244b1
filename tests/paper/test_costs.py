"""What passes cost: measured once, kept by all that decides it, compared with what is alike."""

import json
import os
from pathlib import Path

import pytest
from paper_rows import call

from gyroformer.errors import CorruptFileError
from gyroformer.paper import costs as costs_module
from gyroformer.paper.costs import Cost, add_costs, cost_rows, not_measured, read_costs

KEPT = Path(__file__).parents[2] / "results" / "costs.csv"


def cost(model="tokengt", part="training", milliseconds=10.0, threads=1, **more):
    return Cost("web-edu", model, part, milliseconds, 0.1, None, repeats=20, threads=threads, **more)


def test_costs_that_were_measured_before_stay():
    kept = cost_rows([cost("tokengt", "training", 10.0), cost("gcn", "training", 4.0)])
    rows = cost_rows([cost("fpst", "training", 12.0), cost("gcn", "training", 5.0)], kept)
    assert [(row["model"], row["ratio"]) for row in rows] == [("fpst", 1.2), ("tokengt", 1.0), ("gcn", 0.5)]


@pytest.mark.skipif(not os.environ.get("GYROFORMER_DATA"), reason="GYROFORMER_DATA is not set")
def test_costs_are_measured_and_shown(tmp_path):
    words = ["costs", "--models", "fpst,tokengt", "--datasets", "web-edu", "--results", tmp_path]
    found = json.loads(call(*words, "--json").stdout)["rows"]
    assert {(row["model"], row["part"]) for row in found} == {
        (model, part) for model in ("fpst", "tokengt") for part in ("inference", "training")
    }
    assert all(row["milliseconds"] > 0 and row["repeats"] == 20 for row in found)
    # a step forms tensors of all tokens, whatever earlier steps have left to the allocator
    assert all(row["megabytes"] is None or row["megabytes"] > 1 for row in found if row["part"] == "training")
    assert [row["ratio"] for row in found if row["model"] == "tokengt"] == [1.0, 1.0]
    assert all(row["torch"] and row["gyroformer"] and row["processor"] for row in found)
    assert json.loads(call(*words, "--collect-only", "--json").stdout)["rows"] == found
    again = call(*words, "--json")  # nothing is left to measure
    assert again.stderr == ""
    assert json.loads(again.stdout)["rows"] == found


def test_costs_that_nobody_has_measured_are_said(tmp_path):
    assert "there are no rows yet" in call("costs", "--collect-only", "--results", tmp_path).stdout


def test_costs_of_a_graph_that_is_not_there_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("GYROFORMER_DATA", str(tmp_path / "nothing"))
    words = ["costs", "--models", "gcn", "--datasets", "web-edu", "--results", tmp_path]
    done = call(*words, code=3)
    assert "web-edu" in done.stderr
    assert "Traceback" not in done.output
    assert len(done.stderr.strip().splitlines()) == 1


def test_times_of_other_threads_are_kept_apart():
    kept = cost_rows([cost(milliseconds=10.0), cost("gcn", milliseconds=4.0)])
    rows = cost_rows([cost(milliseconds=8.0, threads=2), cost("gcn", milliseconds=2.0, threads=2)], kept)
    found = {(row["model"], row["threads"]): (row["milliseconds"], row["ratio"]) for row in rows}
    assert found == {
        ("tokengt", 1): (10.0, 1.0),
        ("tokengt", 2): (8.0, 1.0),
        ("gcn", 1): (4.0, 0.4),
        ("gcn", 2): (2.0, 0.25),
    }


def test_times_of_another_processor_are_no_ratio():
    gcn, twin = cost_rows([cost(processor="one"), cost("gcn", processor="another")])[::-1]
    assert (gcn["ratio"], twin["ratio"]) == (None, 1.0)


def test_what_has_rows_by_this_code_and_threads_is_not_measured_again(monkeypatch):
    both = [cost(part=part, generation=1) for part in ("inference", "training")]
    rows = cost_rows(both)
    wanted = ["web-edu"], ["tokengt", "gcn"]
    assert not_measured(rows, *wanted, threads=1) == [("web-edu", "gcn")]
    assert len(not_measured(rows[:1], *wanted, threads=1)) == 2  # one of two passes
    assert len(not_measured(rows, *wanted, threads=2)) == 2
    assert len(not_measured([{**row, "generation": None} for row in rows], *wanted, threads=1)) == 2
    monkeypatch.setattr(costs_module, "generation", lambda job: 2)
    assert len(not_measured(rows, *wanted, threads=1)) == 2


@pytest.mark.parametrize("more, measured", [([], []), (["--again"], [("web-edu", "tokengt")])])
def test_the_command_measures_again_only_if_asked(more, measured, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(costs_module, "measure_costs", lambda left, **options: seen.extend(left) or [])
    add_costs(tmp_path / "costs.csv", [cost(part=part, generation=1) for part in costs_module.PASSES])
    call("costs", "--models", "tokengt", "--datasets", "web-edu", "--results", tmp_path, *more)
    assert seen == measured


def test_rows_have_the_keys_of_every_table(tmp_path):
    add_costs(tmp_path / "costs.csv", [cost(milliseconds=10.0, commit="abc")])
    [row] = json.loads(call("costs", "--collect-only", "--json", "--results", tmp_path).stdout)["rows"]
    assert (row["mean"], row["low"], row["high"]) == (10.0, 9.0, 11.0)
    assert (row["seeds"], row["paper"], row["paper_std"]) == (20, None, None)
    assert (row["commit"], row["generation"]) == ("abc", None)


def test_rows_that_are_older_than_some_columns_are_kept(tmp_path):
    file = tmp_path / "costs.csv"
    file.write_text(
        "dataset,model,part,milliseconds,spread,megabytes,repeats,threads,ratio\n"
        "web-edu,tokengt,training,10.0,0.1,,20,1,1.0\n"
    )
    add_costs(file, [cost("gcn", commit="abc", processor="a processor")])
    gcn, twin = read_costs(file)[::-1]
    assert (twin["milliseconds"], twin["megabytes"], twin["commit"]) == (10.0, None, "")
    assert (gcn["commit"], gcn["ratio"]) == ("abc", None)  # where the old one was measured is not known
    assert len(read_costs(KEPT)) == len(KEPT.read_text().splitlines()) - 1


@pytest.mark.parametrize(
    "before, after, said",
    [
        (",0.1,", ",wide,", "line 2: spread must be a number of at least 0 or empty, got 'wide'"),
        (",1.0,", ",nan,", "line 2: ratio must be a number of at least 0 or empty, got 'nan'"),
        (",20,1,", ",20,one,", "line 2: threads must be a number of at least 1, got 'one'"),
        ("ratio", "share", "it has no column 'ratio'"),
        ("tokengt", "tokenizer", "line 2: model must be one of fpst, tokengt, "),
        (",1,abc", ",x,abc", "line 2: generation must be a number of at least 1 or empty, got 'x'"),
    ],
)
def test_a_damaged_file_of_costs_is_one_line(before, after, said, tmp_path):
    file = tmp_path / "costs.csv"
    add_costs(file, [cost(generation=1, commit="abc")])
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))
    done = call("costs", "--collect-only", "--results", tmp_path, code=3)
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_two_rows_of_one_measurement_that_differ_are_said(tmp_path):
    file = tmp_path / "costs.csv"
    add_costs(file, [cost()])
    head, row = file.read_text().splitlines()
    file.write_text("\n".join([head, row, row]) + "\n")
    assert len(read_costs(file)) == 1
    file.write_text("\n".join([head, row, row.replace("10.0", "11.0")]) + "\n")
    with pytest.raises(
        CorruptFileError, match=r"two rows of web-edu, tokengt, training .* remove one of them"
    ):
        read_costs(file)
