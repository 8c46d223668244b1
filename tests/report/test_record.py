import json

import numpy as np
import pytest
from evil_runs import NODES

from gyroformer.errors import UsageError
from gyroformer.jobs.run import run_job
from gyroformer.report.record import graph_of, held_out, read_run, run_folders, run_names
from gyroformer.runs.read import open_run
from gyroformer.settings import make_job


def test_a_folder_of_runs_stands_for_them(tmp_path):
    for name in ("seed-9", "seed-10", "seed-0"):
        (tmp_path / name).mkdir()
        for file in ("config.json", "results.json"):
            (tmp_path / name / file).write_text("{}")
    (tmp_path / "unfinished").mkdir()
    found = run_folders([tmp_path, tmp_path / "seed-0"])
    assert [folder.name for folder in found] == ["seed-0", "seed-9", "seed-10"]
    with pytest.raises(UsageError, match="no run was named"):
        run_folders([])


def test_names_are_short_and_different(tmp_path):
    a, b = tmp_path / "x" / "fpst", tmp_path / "y" / "fpst"
    assert run_names([a]) == ["fpst"]
    assert run_names([a, b]) == ["x/fpst", "y/fpst"]
    with pytest.raises(UsageError, match="twice"):
        run_names([a, a])


def test_a_run_is_read_whole(runs):
    record = read_run(runs["curved"], "it")
    assert record.embedding.shape == (NODES, 2, 4)
    assert record.embedding.dtype == np.float64
    assert record.curvature.tolist() == pytest.approx(record.results["curvatures"][-1])
    assert len(record.rows) == record.results["epochs"] == 6
    assert record.graph.edges.shape[1] == NODES - 1 + 3
    assert record.graph.degree.sum() == 2 * record.graph.edges.shape[1]
    assert record.predicted is None
    labelled = read_run(runs["labelled"], "it")
    assert set(labelled.predicted) <= {0, 1, 2}
    assert labelled.held_out.sha256 == labelled.results["split"]["sha256"]
    linked = read_run(runs["linked"], "it")
    assert linked.held_out.test.size(1) == linked.results["split"]["test"]
    assert record.held_out is None


def test_a_split_that_is_another_now_is_not_used(runs):
    run = open_run(runs["labelled"])
    run.results["split"]["sha256"] = "another"
    assert held_out(run) is None


def test_a_graph_is_shown_from_the_run_itself(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text("source,target\na,b\nb,c\n")
    run_job(make_job("embed", graph={"source": str(file)}, training={"epochs": 1}), out=tmp_path / "run")
    file.unlink()
    found = graph_of(open_run(tmp_path / "run"))
    assert found.edges.tolist() == [[0, 1], [1, 2]]
    assert found.degree.tolist() == [1, 2, 1]
    assert found.labels is None
    assert found.missing == ""
    (tmp_path / "run" / "graph.npz").unlink()
    gone = graph_of(open_run(tmp_path / "run", verify=False))
    assert gone.edges is None
    assert "is not to be had" in gone.missing
    assert "edges.csv" in gone.missing


def test_a_model_without_curvatures_is_flat(runs, monkeypatch):
    about = json.loads((runs["flat"] / "config.json").read_text())
    assert about["model"] == "tokengt"
    assert read_run(runs["flat"], "it").curvature.tolist() == [0.0, 0.0]
