"""One, two and three processes give the same course of training and the same results, up to rounding."""

import json

import numpy as np
import pytest
import several
import several_calls
from small_graphs import write_blocks, write_tree

from gyroformer.runs.read import open_run

#: number of processes -> jobs
JOBS = {
    1: [*several_calls.JOBS],
    2: [*several_calls.JOBS],
    3: ["embed-float64", "embed-float32", "embed-softmax", "near-float32", "link"],
}
#: relative difference of losses: rounding, and what training makes of it
CLOSE = {"float64": 1e-6, "float32": 1e-4}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    graph, features, labels = write_blocks(folder)
    tree, _ = write_tree(folder / "tree.csv")
    files = {"GRAPH": str(graph), "FEATURES": str(features), "LABELS": str(labels), "TREE": str(tree)}
    for count, names in JOBS.items():
        (folder / str(count)).mkdir()
        out = str(folder / str(count))
        several.run_in(count, several_calls.train_all, names, files, out, folder=folder)
    return folder


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name, count", [(name, count) for count in (2, 3) for name in JOBS[count]])
def test_course_and_results_are_those_of_one_process(runs, name, count):
    dtype = several_calls.JOBS[name][1].get("dtype", "float32")
    one, found = rows(runs / "1" / name), rows(runs / str(count) / name)
    assert len(one) == len(found)
    np.testing.assert_allclose(
        [row["loss"] for row in found], [row["loss"] for row in one], rtol=CLOSE[dtype]
    )
    wanted, results = (json.loads((runs / part / f"{name}.json").read_text()) for part in ("1", str(count)))
    assert wanted.keys() == results.keys()
    for key, value in wanted.items():
        if key != "seconds" and isinstance(value, float):
            assert results[key] == pytest.approx(value, rel=0.02 if dtype == "float32" else 1e-3), key


@pytest.mark.parametrize("count", JOBS)
def test_the_folder_is_that_of_any_run(runs, count):
    found = open_run(runs / str(count) / "embed-float64")
    assert found.results["epochs"] == 40
    assert len(found.history) == 40
    manifest = json.loads((runs / str(count) / "embed-float64" / "manifest.json").read_text())
    assert f'"processes": {count}' in json.dumps(manifest)


def largest_difference(folder, name, start):
    """Return the largest relative difference of losses in two processes from one; ``start`` trains in them."""
    courses = []
    for count in (1, 2):
        (folder / str(count)).mkdir()
        start(count, str(folder / str(count)))
        courses.append(np.array([row["loss"] for row in rows(folder / str(count) / name)]))
    return np.max(np.abs(courses[1] / courses[0] - 1))


def test_flat_starts_differ_by_the_rounding_of_the_first_step_alone(tmp_path):
    """In float32 from curvature 0: without it, two processes agree as no other runs in float32 do."""
    files = {"GRAPH": str(write_blocks(tmp_path)[0])}

    def start(count, out):
        several.run_in(count, several_calls.train_flat, files, out, folder=tmp_path)

    assert largest_difference(tmp_path, "embed-flat", start) < 2e-6


def test_a_real_graph_in_float64(data_folder, tmp_path):
    def start(count, out):
        several.run_in(count, several_calls.train_all, ["texas"], {}, out, folder=tmp_path)

    assert largest_difference(tmp_path, "texas", start) < CLOSE["float64"]
