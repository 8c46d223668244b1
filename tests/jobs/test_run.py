import json

import numpy as np
import pytest
import torch
from small_graphs import labelled_graph, write_tree

import gyroformer as gf
from gyroformer.errors import DataError, UsageError
from gyroformer.geometry import ProductSpace
from gyroformer.graphs.reading.convert import to_graph
from gyroformer.jobs.run import run_job
from gyroformer.settings import make_job
from gyroformer.tasks.embed_objective import ALL_PAIRS_NODES


def embed_job(path, epochs=120, **values):
    return make_job("embed", graph={"source": str(path)}, training={"epochs": epochs}, **values)


def test_a_tree_is_reconstructed(tmp_path):
    path, nodes = write_tree(tmp_path / "tree.csv")
    done = run_job(embed_job(path), out=tmp_path / "run")
    assert done.results["map"] > 95
    assert done.results["nodes"] == nodes
    assert any(abs(k) > 1e-3 for k in done.results["curvatures"][0]), "the curvature is learned"
    assert (tmp_path / "run" / "results.json").is_file()


def test_saved_embeddings_give_the_models_distances(tmp_path):
    path, nodes = write_tree(tmp_path / "tree.csv")
    done = run_job(embed_job(path, epochs=30), out=tmp_path / "run")
    saved = np.load(tmp_path / "run" / "embeddings.npz")
    assert saved["ids"].tolist() == done.plan.data.ids
    space = ProductSpace([float(k) for k in saved["curvature"]])
    points = space.expmap0(torch.from_numpy(saved["embedding"]))
    want = done.plan.model.positions(done.plan.data).squared_dist_rows(torch.arange(nodes)).sqrt()
    # close pairs: the root of a squared distance of rounding size
    torch.testing.assert_close(space.pairwise_dist(points, points), want, rtol=1e-3, atol=2e-3)


def test_a_saved_run_is_a_saved_model(tmp_path):
    path, _ = write_tree(tmp_path / "tree.csv")
    done = run_job(embed_job(path, epochs=5), out=tmp_path / "run")
    loaded = gf.open_run(tmp_path / "run")
    data = done.plan.data
    assert torch.equal(loaded.model(data), done.plan.model(data))
    assert torch.equal(gf.FPST.from_pretrained(tmp_path / "run")(data), done.plan.model(data))


def test_equal_settings_give_equal_results(tmp_path):
    path, _ = write_tree(tmp_path / "tree.csv")
    first, second = (run_job(embed_job(path, epochs=8)).plan for _ in range(2))
    assert torch.equal(first.model(first.data), second.model(second.data))
    other = run_job(embed_job(path, epochs=8, seed=1)).plan
    assert not torch.equal(other.model(other.data), first.model(first.data))


def test_nodes_are_classified_better_than_by_chance(tmp_path):
    data = to_graph(labelled_graph(90))
    job = make_job("classify", training={"epochs": 60})
    done = run_job(job, data=data, out=tmp_path / "run")
    assert done.results["test_f1"] > 70
    assert done.results["split"]["name"] == "random"
    row = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[0])
    assert not any("test" in key for key in row["metrics"]), "the test nodes are looked at once, at the end"


def test_each_seed_has_a_split_of_its_own_unless_one_is_named():
    data = to_graph(labelled_graph(60))
    sums = [
        run_job(
            make_job("classify", training={"epochs": 1}, seed=seed, objective=objective), data=data
        ).results["split"]["sha256"]
        for seed, objective in ((0, {}), (1, {}), (1, {"split_seed": 0}))
    ]
    assert sums[0] != sums[1]
    assert sums[0] == sums[2]


@pytest.mark.parametrize("use", [False, True])
def test_features_are_used_only_when_asked_for(use):
    data = to_graph(labelled_graph(30))
    job = make_job("embed", training={"epochs": 2}, objective={"use_features": use})
    model = run_job(job, data=data).plan.model
    assert model.config["in_features"] == (6 if use else 0)
    assert data.x is not None, "the caller's graph is left alone"


def test_sampled_negatives_are_said(tmp_path, caplog):
    path, _ = write_tree(tmp_path / "tree.csv")
    run_job(embed_job(path, epochs=2, objective={"negatives": 10}))
    assert "10 of 40 nodes stand for all others" in caplog.text
    assert ALL_PAIRS_NODES >= 10_000


def test_a_finished_run_is_not_run_again(tmp_path):
    path, _ = write_tree(tmp_path / "tree.csv")
    job = embed_job(path, epochs=3)
    first = run_job(job, out=tmp_path / "run")
    again = run_job(job, out=tmp_path / "run", resume=True)
    assert again.plan is None
    assert again.results == first.results
    with pytest.raises(UsageError, match="--resume"):
        run_job(job, out=tmp_path / "run")
    other = make_job("embed", graph={"source": str(path)}, training={"epochs": 3, "lr": 0.5})
    with pytest.raises(UsageError, match=r"training\.lr"):
        run_job(other, out=tmp_path / "run", resume=True)


def test_what_a_job_lacks_is_named():
    data = to_graph(labelled_graph(20))
    with pytest.raises(UsageError, match="the model 'fpst' has no option 'head'; did you mean 'heads'"):
        run_job(make_job("embed", model={"options": {"head": 3}}), data=data)
    bare = data.clone()
    del bare.x, bare.y
    with pytest.raises(DataError, match="no labels"):
        run_job(make_job("classify"), data=bare)
    with pytest.raises(DataError, match="no features"):
        run_job(make_job("embed", objective={"use_features": True}), data=bare)
