"""Every model, task, option and objective on a device that is not the CPU: nothing stays behind, results are equal.

``helpers/stand_in_device.py`` says what the device is, and what it cannot show.
"""

import typing

import pytest
import torch
from device_checks import close, job_of, on_both, planned, step
from small_graphs import graph, labelled_graph
from stand_in_device import StandIn
from torch_geometric.data import Batch

import gyroformer
from gyroformer import compiled
from gyroformer.jobs.run import embedding_arrays
from gyroformer.models import get_model
from gyroformer.tasks import TASKS


@pytest.mark.parametrize("model", gyroformer.MODELS)
@pytest.mark.parametrize("task", TASKS)
def test_a_step_and_the_results(task, model):
    def run(device):
        task_, model_, learner = planned(job_of(task, model, device=device))
        loss = step(task_, model_, learner)
        assert loss.device.type == device
        assert all(
            p.device.type == device and p.grad.device.type == device for p in learner.parameters.values()
        )
        with torch.no_grad():
            metrics = task_.evaluate(model_)
            results = task_.results(model_, metrics)
            arrays = embedding_arrays(model_, task_.data)
        return {"loss": loss, "metrics": metrics, "results": results, "arrays": arrays}

    expected, found = on_both(run)
    close(found, expected)


#: options that change numbers and not the code that runs
PLAIN = ("activation", "learn_curvature", "identifier_norm")


def variants(name):
    """Yield one option each that is not the default, of those that decide which code runs."""
    choices = {one.name: one for one in get_model(name).choices() if one.name not in PLAIN}
    for one in choices.values():
        if isinstance(one.default, bool):
            yield {one.name: not one.default}
        elif typing.get_origin(one.hint) is typing.Literal:
            yield from ({one.name: value} for value in typing.get_args(one.hint) if value != one.default)
        elif one.name in ("dropout", "feature_dropout"):
            yield {one.name: 0.5}
    for options in (
        {"layers": 2},
        {"identifiers": 0},
        {"edge_features": 2},
        {"time_dim": 3},
        {"graph_layers": 0},
    ):
        if options.keys() <= choices.keys():
            yield options
    if "share_curvature" in choices:
        yield {"curvature": [[-1.0, 1.0]]}


CHOICES = [(name, options) for name in gyroformer.MODELS for options in ({}, *variants(name))]


@pytest.mark.parametrize("name, options", CHOICES, ids=[f"{name} {options}" for name, options in CHOICES])
def test_every_option_on_one_graph_and_on_a_batch(name, options):
    graphs = [graph(8, seed=seed) for seed in range(2)]
    for one in graphs:
        one.edge_attr = torch.ones(one.edge_index.size(1), 2)

    def run(device):
        torch.manual_seed(0)
        spec = get_model(name)
        one_layer = {"layers": 1} if any(one.name == "layers" for one in spec.choices()) else {}
        model = spec.make(3, classes=3, **one_layer | options).to(device)
        one, batch = graphs[0].clone().to(device), Batch.from_data_list(graphs).to(device)
        results = [model(model.prepare(one)), model(batch)]
        sum(result.square().sum() for result in results).backward()
        return [*results, *(p.grad for p in model.parameters() if p.grad is not None)]

    expected, found = on_both(run)
    assert all(isinstance(one, StandIn) for one in found)
    close(found, expected)


ORDER = {"hierarchy": True, "break_cycles": True, "closure": True}
OBJECTIVES = {
    "embed": [
        *(
            {"negatives": 7},
            {"negatives": "near", "near": 3, "far": 4},
            {"map_nodes": 7},
            {"squared": False},
            {"use_features": True},
        ),
        *(ORDER, ORDER | {"rank_by": "dot", "negatives": 7}, ORDER | {"rank_by": "distance"}),
    ],
    "classify": [{"balanced": True}, {"stratified": True}],
    "link": [{"decoder": "distance"}, {"learn_decoder": True}],
}


@pytest.mark.parametrize("model", ["fpst", "q-gcn"])
@pytest.mark.parametrize(
    "task, objective", [(task, objective) for task in OBJECTIVES for objective in OBJECTIVES[task]]
)
def test_every_objective(task, objective, model):
    data = labelled_graph()
    if "hierarchy" in objective:  # edges that lead one way
        data.edge_index = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]

    def run(device):
        parts = planned(job_of(task, model, device=device, objective=objective), data)
        loss = step(*parts)
        with torch.no_grad():
            return loss, parts[0].evaluate(parts[1])

    expected, found = on_both(run)
    close(found, expected)


def test_double_precision_is_the_same_to_its_own_rounding():
    expected, found = on_both(
        lambda device: step(*planned(job_of("embed", "fpst", device=device, dtype="float64")))
    )
    close(found, expected, 1e-12)


def test_the_kernels_and_the_device_agree(monkeypatch):
    with monkeypatch.context() as patch:  # undone here: the fixture around sets it too
        patch.setattr(compiled, "_switched_off", False)
        expected, found = on_both(lambda device: step(*planned(job_of("embed", "fpst", device=device))))
    close(found, expected)
