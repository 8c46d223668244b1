"""Link prediction as a job: what the model may know of held-out edges is nothing."""

import json
import os

import pytest
import torch
from small_graphs import blocks_graph

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.non_edges import pair_numbers
from gyroformer.jobs.plan import plan_model, plan_task, ready_for
from gyroformer.jobs.run import run_job
from gyroformer.runs.read import open_run
from gyroformer.settings import make_job
from gyroformer.tasks.link import link_split_of
from gyroformer.tokens.prepare import graph_tokens


def job_of(model="fpst", *, epochs=60, options=None, **values):
    """Return a small job in which every way that edges could take into the model is open."""
    options = {"identifiers": 4, "edge_tokens": "undirected", "dropout": 0.0, **(options or {})}
    values.setdefault("features", {"mixing": "joined", "hops": 2})
    return make_job(
        "link",
        model={"name": model, "options": options},
        training={"epochs": epochs, "weight_decay": 0.0, "eval_every": 5},
        **values,
    )


def without(data, pairs, instead=None):
    """Return ``data`` without ``pairs``, and with the edges ``instead``."""
    changed = data.clone()
    kept = ~torch.isin(pair_numbers(data.edge_index), pair_numbers(pairs))
    changed.edge_index = data.edge_index[:, kept]
    if instead is not None:
        changed.edge_index = torch.cat((changed.edge_index, instead, instead.flip(0)), 1)
    return changed


@pytest.mark.parametrize("model", ["fpst", "tokengt"])
@pytest.mark.parametrize("change", ["remove", "replace"])
def test_held_out_edges_change_nothing_that_the_model_sees(model, change):
    data = blocks_graph(features=4)
    job = job_of(model)
    split = link_split_of(data, job.objective, job.seed)
    held_out = torch.cat((split.val, split.test), 1)
    instead = torch.cat((split.val_non, split.test_non), 1) if change == "replace" else None
    graphs = (data, without(data, held_out, instead))
    plans = [plan_model(job, graph, plan_task(job, graph, split=split)) for graph in graphs]
    for key in ("x", "edge_index"):
        assert torch.equal(*(plan.data[key] for plan in plans)), key
    tokens = [graph_tokens(plan.data, plan.model.options) for plan in plans]
    assert torch.equal(*(one.identifiers for one in tokens))
    assert torch.equal(*(one.edges for one in tokens))
    losses = []
    for plan in plans:
        torch.manual_seed(7)
        losses.append(plan.task.loss(plan.model))
    assert torch.equal(*losses)
    assert torch.equal(*(plan.model.positions(plan.data).coordinates() for plan in plans))
    # the test would see a leak: the whole graph gives other features and identifiers
    assert not torch.equal(ready_for(job)(data, True).x, plans[0].data.x)


@pytest.mark.parametrize("model", ["fpst", "tokengt"])
def test_held_out_edges_are_found(model, tmp_path):
    data = blocks_graph(features=4, size=16)
    done = run_job(job_of(model, epochs=40, options={"identifiers": 0}), data=data, out=tmp_path / "run")
    found = done.results
    assert found["test_auc"] > 80
    assert found["test_ap"] > 75
    assert set(found) >= {"test_hits@10", "test_hits@50", "test_hits@100", "val_auc", "curvatures", "seconds"}
    split = link_split_of(data, done.plan.job.objective, 0)
    assert found["split"]["sha256"] == split.sha256
    assert found["split"]["train"] == split.train.size(1)
    assert found["split"]["test_non"] == found["split"]["test"] == split.test.size(1)
    assert json.loads((tmp_path / "run" / "results.json").read_text()) == found


def test_a_graph_without_features_has_a_vector_for_each_node():
    done = run_job(job_of(epochs=30), data=blocks_graph())
    assert done.plan.model.config["num_nodes"] == 48
    losses = [row["loss"] for row in done.outcome.history]
    assert losses[-1] < 0.7 * losses[0]


def test_the_best_epoch_is_chosen_on_validation():
    done = run_job(job_of(epochs=30), data=blocks_graph())
    evaluated = [row["metrics"]["val_auc"] for row in done.outcome.history if "metrics" in row]
    assert done.results["val_auc"] == max(evaluated)


def test_a_learned_decoder_is_kept_with_the_run(tmp_path):
    done = run_job(
        job_of(epochs=10, objective={"learn_decoder": True}), data=blocks_graph(), out=tmp_path / "run"
    )
    kept = open_run(tmp_path / "run").task_weights
    learned = {"radius_change", "log_temperature_change", "degree_weight", "calibration"}
    assert set(kept) == {f"decoder.{name}" for name in learned}
    assert done.results["decoder"]["radius"] == pytest.approx(2.0 + float(kept["decoder.radius_change"]))
    assert done.results["decoder"]["radius"] != 2.0


def test_seeds_draw_other_edges_unless_the_split_is_named():
    data = blocks_graph()
    objective = job_of().objective
    assert len({link_split_of(data, objective, seed).sha256 for seed in range(3)}) == 3
    objective = objective.but(split_seed=9)
    named = {link_split_of(data, objective, seed).sha256 for seed in range(3)}
    assert len(named) == 1


def test_features_that_know_all_edges_are_refused():
    airport = blocks_graph(features=4)
    airport.name = "airport"
    with pytest.raises(UsageError, match="degrees"):
        plan_task(job_of(graph={"source": "airport", "features": "hgcn"}), airport)


def test_a_graph_that_is_too_small_is_refused():
    data = blocks_graph(groups=1, size=3, inside=1.0)
    with pytest.raises(DataError, match=r"too few|without an edge"):
        run_job(job_of(), data=data)


@pytest.mark.data
def test_cora_for_a_moment(data_folder):
    assert os.environ["GYROFORMER_DATA"]
    done = run_job(
        make_job("link", dataset="cora", graph={"source": "cora"}, training={"epochs": 5}), ignore_memory=True
    )
    assert (
        done.results["split"]["train"] + done.results["split"]["val"] + done.results["split"]["test"] == 5278
    )
    assert 50 < done.results["test_auc"] <= 100
