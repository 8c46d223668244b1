"""The one reader of a run: what a folder holds, whatever became of the files it was made from."""

import json
import logging

import numpy as np
import pytest
import torch
from small_graphs import write_blocks
from small_runs import job_on

import gyroformer as gf
from gyroformer.errors import CorruptFileError, DataError, MissingPartError, UsageError
from gyroformer.jobs.run import run_job
from gyroformer.options import as_plain
from gyroformer.runs import files
from gyroformer.runs.folder import RunFolder
from gyroformer.runs.read import load_graph, upgraded
from gyroformer.settings import make_job


@pytest.fixture(scope="module")
def classified(tmp_path_factory):
    folder = tmp_path_factory.mktemp("read")
    paths = write_blocks(folder)
    done = run_job(job_on("classify", paths), out=folder / "run")
    for path in paths:
        path.unlink()
    return folder / "run", done


def test_a_run_gives_back_everything_without_its_files(classified):
    folder, done = classified
    run = gf.open_run(folder)
    assert run.settings == done.plan.job
    assert run.results == done.results
    assert run.history == done.outcome.history
    assert run.ids == [str(name) for name in done.plan.graph.ids]
    for key in ("x", "y", "edge_index"):
        assert torch.equal(run.graph[key], done.plan.graph[key])
    assert run.graph.label_names == done.plan.graph.label_names
    assert run.embeddings.keys() == {"embedding", "curvature", "probability"}
    assert torch.equal(run.model.scores(done.plan.data), done.plan.model.scores(done.plan.data))
    assert run.manifest["versions"]["gyroformer"] == gf.__version__


def test_the_file_says_what_it_holds(classified):
    with np.load(classified[0] / "embeddings.npz") as arrays:
        assert "tangent vectors at the origin" in str(arrays["meaning"])


def test_a_table_by_id(classified, monkeypatch):
    pandas = pytest.importorskip("pandas")
    folder, done = classified
    table = gf.open_run(folder).frame()
    assert isinstance(table, pandas.DataFrame)
    assert table.index.tolist() == gf.open_run(folder).ids
    row = table.index.get_loc("n3")
    assert table.loc["n3", "h0_0"] == gf.open_run(folder).embeddings["embedding"][row, 0, 0]
    assert [name for name in table.columns if name.startswith("P(")] == [
        f"P({name})" for name in done.results["label_names"]
    ]
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingPartError, match="pandas"):
        gf.open_run(folder).frame()


def test_what_is_no_run_is_named(tmp_path, classified):
    with pytest.raises(DataError, match="holds no run"):
        gf.open_run(tmp_path)
    gf.FPST(3).save_pretrained(tmp_path)
    with pytest.raises(DataError, match="no finished run"):
        gf.open_run(tmp_path)


def changed(paths, change):
    edges, features, labels = paths
    match change:
        case "edges":
            edges.write_text("".join(edges.read_text().splitlines(keepends=True)[:-5]))
        case "nodes":
            for path in paths:
                path.write_text(path.read_text().replace("n", "m").replace("soumce", "source"))
            edges.write_text("source,target\n" + edges.read_text().split("\n", 1)[1])
        case "features":
            features.write_text(features.read_text().replace(".1", ".2"))
        case "labels":
            labels.write_text(labels.read_text().replace("red", "green"))


@pytest.mark.parametrize("change", ["edges", "nodes", "features", "labels"])
def test_a_run_goes_on_with_its_own_graph_or_not_at_all(change, tmp_path):
    paths = write_blocks(tmp_path)
    job = job_on("classify", paths).but(training=job_on("classify", paths).training.but(epochs=40))

    def stop(progress):
        if progress.epoch == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(job, out=tmp_path / "run", listen=stop)
    changed(paths, change)
    with pytest.raises(UsageError, match=rf"was begun on another graph .*changed: .*{change}"):
        run_job(job, out=tmp_path / "run", resume=True)
    paths[0].unlink()  # gone altogether: the run has its graph
    assert run_job(job, out=tmp_path / "run", resume=True).results["epochs"] == 40


def test_a_run_killed_before_its_graph_was_written_has_it_in_the_end(tmp_path):
    paths = write_blocks(tmp_path)
    job = job_on("classify", paths)
    with RunFolder(tmp_path / "run") as run:
        run.begin(as_plain(job), resume=False)
    run_job(job, out=tmp_path / "run", resume=True)
    assert torch.equal(gf.open_run(tmp_path / "run").graph.x, load_graph(job.graph).x)
    assert gf.open_run(tmp_path / "run").stored_graph is not None


def test_a_mistake_leaves_nothing_behind(tmp_path):
    paths = write_blocks(tmp_path)
    job = make_job("classify", graph={"source": str(paths[0])}, training={"epochs": 2})
    with pytest.raises(DataError, match="no labels"):
        run_job(job, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    run_job(job_on("classify", paths), out=tmp_path / "run")


def as_format_1(folder):
    """Make a run look as version 0.1 left it: no graph, settings that differ from defaults only, old names."""
    config = json.loads((folder / "config.json").read_text())
    config["format"] = 1
    job = config["job"]
    job["model"]["options"] = {"identifiers": 4}
    job["objective"] = {
        {"val_fraction": "val_share", "test_fraction": "test_share"}.get(key, key): value
        for key, value in job["objective"].items()
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "graph.npz").unlink()
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["files"]["graph.npz"], manifest["sha256"]
    manifest["files"]["config.json"] = files.sha256_of(folder / "config.json")
    manifest["sha256"] = files._own_checksum(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def test_a_run_of_the_first_format_is_read_and_not_resumed(tmp_path, caplog):
    paths = write_blocks(tmp_path)
    job = job_on("link", paths)
    done = run_job(job, out=tmp_path / "run")
    as_format_1(tmp_path / "run")
    with caplog.at_level(logging.WARNING):
        run = gf.open_run(tmp_path / "run")
    assert run.settings.objective == job.objective
    assert run.results == done.results
    assert torch.equal(run.graph.edge_index, done.plan.graph.edge_index)
    assert gf.LinkPredictor.from_run(tmp_path / "run").score() == done.results["test_auc"] / 100
    with pytest.raises(UsageError, match="folder format 1, and this version goes on with format 2 only"):
        run_job(job, out=tmp_path / "run", resume=True)
    for path in paths[:2]:
        path.write_text(path.read_text().replace("n7", "n700"))
    with pytest.raises(DataError, match="now has other nodes"):
        _ = gf.open_run(tmp_path / "run").graph


def test_a_format_of_the_future_is_refused(tmp_path, classified):
    import shutil

    shutil.copytree(classified[0], tmp_path / "run")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    (tmp_path / "run" / "config.json").write_text(json.dumps(config | {"format": 99}))
    with pytest.raises(CorruptFileError, match="format 99 is none that this version reads"):
        _ = gf.open_run(tmp_path / "run", verify=False).settings


def test_names_that_changed_are_upgraded_in_old_settings_only():
    old = {"task": "link", "objective": {"val_share": 0.2, "radius": 1.0}}
    assert upgraded(old, 1)["objective"] == {"val_fraction": 0.2, "radius": 1.0}
    assert upgraded(old, 2) is old
