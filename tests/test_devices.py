"""Every model and every task on a device that is not the CPU: no tensor stays behind, and results are the same.

``helpers/stand_in_device.py`` says what the device is, and what it cannot show.
"""

import typing

import numpy as np
import pytest
import torch
from small_graphs import graph, labelled_graph, renumbered
from stand_in_device import StandIn, real, stand_in
from torch_geometric.data import Batch

import gyroformer
from gyroformer.data.splits import make_split
from gyroformer.estimators import GraphEmbedder, LinkPredictor, NodeClassifier
from gyroformer.geometry import ProductSpace, Stereographic
from gyroformer.graphs.adjacency import simple_adjacency
from gyroformer.graphs.features import prepared_features
from gyroformer.graphs.non_edges import NonEdges
from gyroformer.jobs.plan import build_model, plan_task, usable_device
from gyroformer.jobs.predict import usual_answer
from gyroformer.jobs.restore import restore
from gyroformer.jobs.run import embedding_arrays, run_job
from gyroformer.models import get_model
from gyroformer.ops.native import fused
from gyroformer.ops.nearest import nearest_nodes, nearest_pairs
from gyroformer.ops.positions import StereographicPositions
from gyroformer.options.features import FeatureOptions
from gyroformer.settings import make_job
from gyroformer.tasks import TASKS
from gyroformer.testing.samples import OPERATIONS, operation, sample_arguments
from gyroformer.train.learner import Learner, load_random_state, random_state
from gyroformer.train.loop import fit

#: what a graph without a split of its own needs
OBJECTIVE = {"classify": {"split": "random"}}


@pytest.fixture(autouse=True)
def _torch_forms():
    """The CPU computes as other devices do, so that results can be compared closely."""
    with fused.torch_forms():
        yield


def on_both(run):
    """Return what ``run(device)`` gives on the CPU and on the stand-in device."""
    expected = run("cpu")
    with stand_in() as device:
        found = run(device)
    return expected, found


def job_of(task, model, *, device="cpu", objective=None, options=None, **values):
    objective = {**OBJECTIVE.get(task, {}), **(objective or {})}
    job = make_job(task, model={"name": model, "options": options or {}}, objective=objective, **values)
    return job.but(device=device)


def planned(job, data=None):
    """Return the job's task, its model and its learner."""
    task = plan_task(job, labelled_graph() if data is None else data)
    model = build_model(job, task)
    model.prepare(task.data)
    return task, model, Learner(model, task, job.training)


def step(task, model, learner):
    """Do a step and return the loss."""
    torch.manual_seed(1)
    learner.train()
    learner.optimizer.zero_grad()
    loss = task.loss(model)
    loss.backward()
    learner.optimizer.step()
    learner.train(False)
    return loss.detach()


def close(found, expected, tolerance=1e-4):
    """Assert that numbers, texts and what holds them are equal to rounding."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            close(found[key], expected[key], tolerance)
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            close(one, other, tolerance)
    elif isinstance(expected, (float, np.ndarray)):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    elif isinstance(expected, torch.Tensor):
        np.testing.assert_allclose(
            real(found).detach().numpy(), expected.detach().numpy(), rtol=tolerance, atol=tolerance
        )
    else:
        assert found == expected


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
        model = get_model(name).make(3, classes=3, **{"layers": 1, **options}).to(device)
        one, batch = graphs[0].clone().to(device), Batch.from_data_list(graphs).to(device)
        results = [model(model.prepare(one)), model(batch)]
        sum(result.square().sum() for result in results).backward()
        return [*results, *(p.grad for p in model.parameters() if p.grad is not None)]

    expected, found = on_both(run)
    assert all(isinstance(one, StandIn) for one in found)
    close(found, expected)


OBJECTIVES = {
    "embed": [{"negatives": 7}, {"map_nodes": 7}, {"squared": False}, {"use_features": True}],
    "classify": [{"balanced": True}, {"stratified": True}],
    "link": [{"decoder": "distance"}, {"learn_decoder": True}],
}


@pytest.mark.parametrize("model", ["fpst", "q-gcn"])
@pytest.mark.parametrize(
    "task, objective", [(task, objective) for task in OBJECTIVES for objective in OBJECTIVES[task]]
)
def test_every_objective(task, objective, model):
    def run(device):
        parts = planned(job_of(task, model, device=device, objective=objective))
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


def test_the_kernels_and_the_device_agree():
    fused._switched_off = False  # the fixture puts it back
    expected, found = on_both(lambda device: step(*planned(job_of("embed", "fpst", device=device))))
    close(found, expected)


@pytest.mark.parametrize("task", TASKS)
def test_a_learner_goes_back_to_its_state(task):
    with stand_in() as device:
        task_, model, learner = planned(job_of(task, "fpst", device=device))
        step(task_, model, learner)
        state = learner.state()
        step(task_, model, learner)
        after = learner.state()
        # as it was kept, and as it comes from a file
        for kept in (state, {name: tensor.cpu() for name, tensor in state.items()}):
            learner.load_state(kept)
            step(task_, model, learner)
            assert all(torch.equal(real(t), real(after[name])) for name, t in learner.state().items())


def test_a_state_holds_the_random_numbers_of_every_gpu(monkeypatch):
    states = [torch.tensor([1], dtype=torch.uint8), torch.tensor([2], dtype=torch.uint8)]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: states)
    found = []
    monkeypatch.setattr(torch.cuda, "set_rng_state_all", found.extend)
    load_random_state(random_state())
    assert found == states


@pytest.mark.parametrize("task", TASKS)
def test_a_short_fit(task):
    def run(device):
        job = job_of(task, "fpst", device=device, training={"epochs": 3, "eval_every": 2, "clip": 1.0})
        task_, model, _ = planned(job)
        torch.manual_seed(job.seed)
        outcome = fit(model, task_, job.training)
        return {"metrics": outcome.metrics, "losses": [row["loss"] for row in outcome.history]}

    expected, found = on_both(run)
    close(found, expected, 1e-3)


def test_a_step_that_is_not_finite_is_explained():
    with stand_in() as device:
        job = job_of("embed", "fpst", device=device, training={"epochs": 3})
        task, model, _ = planned(job)
        with torch.no_grad():
            next(p for name, p in model.named_parameters() if name.endswith("curvature")).fill_(torch.inf)
        with pytest.raises(gyroformer.errors.DivergedError, match="curvature"):
            fit(model, task, job.training)


@pytest.mark.parametrize("task", TASKS)
def test_a_whole_run_is_kept_and_resumed(task, tmp_path):
    def run(device):
        job = job_of(task, "fpst", device=device, training={"epochs": 2, "eval_every": 1})
        done = run_job(job, data=named(labelled_graph()), out=tmp_path / device, report=False)
        again = run_job(job, data=named(labelled_graph()), out=tmp_path / device, resume=True)
        assert again.results == done.results
        return {name: value for name, value in done.results.items() if name != "seconds"}

    expected, found = on_both(run)
    close(found, expected, 1e-3)


@pytest.mark.parametrize("task", TASKS)
def test_a_graph_that_is_on_the_device_already(task, tmp_path):
    def run(device):
        data = named(labelled_graph(20)).to(device)
        job = job_of(
            task, "fpst", device=device, training={"epochs": 1}, features={"mixing": "power", "hops": 2}
        )
        done = run_job(job, data=data, out=tmp_path / device, report=False)
        restored = restore(tmp_path / device, data)
        assert restored.same
        assert restored.positions().device.type == "cpu"
        usual_answer(restored, torch.arange(20))
        return {name: value for name, value in done.results.items() if name != "seconds"}

    expected, found = on_both(run)
    close(found, expected, 1e-3)


def test_a_graph_on_the_device_with_its_nodes_in_another_order(tmp_path):
    data = named(labelled_graph(20))
    run_job(job_of("embed", "gcn", training={"epochs": 1}), data=data, out=tmp_path / "run", report=False)
    order = torch.randperm(20, generator=torch.Generator().manual_seed(0))
    turned = renumbered(labelled_graph(20), order)
    turned.ids = order.tolist()
    with stand_in() as device:
        found = restore(tmp_path / "run", turned.to(device))
    close(found.positions().coordinates(), restore(tmp_path / "run").positions().coordinates())


def test_a_public_split_of_a_graph_on_the_device():
    data = graph(12)
    for number, part in enumerate(("train", "val", "test")):
        data[f"{part}_mask"] = torch.arange(12) % 3 == number
    with stand_in() as device:
        moved = data.clone().to(device)
        assert make_split(moved, "public").sha256 == make_split(data, "public").sha256


def named(data):
    """Return the graph with ids, as a graph that was read has them."""
    data.ids = list(range(data.num_nodes))
    return data


FITTED = {"epochs": 2, "random_state": 0, "dim": 8}


def test_embedder():
    data = named(labelled_graph(20))

    def run(device):
        embedder = GraphEmbedder(device=device, **FITTED).fit(data)
        return {
            "embedding": embedder.embedding_,
            "again": embedder.transform(data),
            "score": embedder.score(),
            "score of a graph": embedder.score(data),
            "distance": embedder.distance(0, 5),
            "distances": embedder.distance([0, 1, 2], [5, 6, 7]),
            "distances from one": embedder.distance(0, [5, 6, 7]),
            "nearest": [distance for _, distance in embedder.nearest(3, n=4)],
            "curvatures": embedder.curvatures_,
        }

    expected, found = on_both(run)
    close(found, expected, 1e-3)


def test_classifier():
    data = named(labelled_graph(20))

    def run(device):
        classifier = NodeClassifier(device=device, **FITTED).fit(data)
        return {
            "probabilities": classifier.predict_proba(),
            "of a graph": classifier.predict_proba(data),
            "score": classifier.score(data, data.y.numpy()),
        }

    expected, found = on_both(run)
    close(found, expected, 1e-3)


def test_link_predictor():
    data = named(labelled_graph(20))
    pairs, truth = [(0, 1), (2, 9), (3, 4)], [1, 0, 1]

    def run(device):
        predictor = LinkPredictor(device=device, **FITTED).fit(data)
        return {"odds": predictor.decision_function(pairs), "score": predictor.score(pairs, truth)}

    expected, found = on_both(run)
    close(found, expected, 1e-3)


@pytest.mark.parametrize("estimator", [GraphEmbedder, NodeClassifier, LinkPredictor])
def test_an_estimator_is_saved_and_loaded(estimator, tmp_path):
    with stand_in() as device:
        fitted = estimator(device=device, **FITTED).fit(named(labelled_graph(20)).to(device))
        fitted.save(tmp_path / "run")
        loaded = estimator.load(tmp_path / "run")
        assert all(isinstance(p, StandIn) for p in loaded.model_.parameters())
        close(loaded.curvatures_, fitted.curvatures_)
        if estimator is GraphEmbedder:
            close(loaded.embedding_, fitted.embedding_)


def test_nearest_nodes_and_pairs():
    data = graph(12)
    joined = simple_adjacency(data.edge_index, 12)
    points = torch.randn(12, 2, 3, generator=torch.Generator().manual_seed(0))

    def run(device):
        curvature = torch.tensor([[-1.0], [1.0]], device=device)
        positions = StereographicPositions.from_tangent(points.to(device), curvature)
        rows = torch.arange(5, device=device)
        return [
            *nearest_nodes(positions, rows, 3),
            *nearest_nodes(positions, rows[:0], 3),
            *nearest_pairs(positions, joined, 6),
        ]

    expected, found = on_both(run)
    assert all(isinstance(one, StandIn) for one in found)
    close(found, expected)


def test_non_edges_of_a_graph_stay_with_it():
    data = graph(12)

    def run(device):
        torch.manual_seed(0)
        return NonEdges.of(data.edge_index.to(device), 12).draw(9)

    expected, found = on_both(run)
    assert isinstance(found, StandIn)
    assert real(found).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "mixing, sparse",
    [("none", False), *((mixing, s) for mixing in ("power", "ppr", "joined") for s in (0, 1))],
)
def test_features_are_prepared_where_they_are(mixing, sparse):
    data, options = graph(12), FeatureOptions(mixing=mixing, hops=2, entries="raw", size="l2")

    def run(device):
        x = data.x.to(device)
        return prepared_features(x.to_sparse() if sparse else x, data.edge_index.to(device), options)

    expected, found = on_both(run)
    assert isinstance(found, StandIn)
    close(found, expected)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_of_the_geometry(name):
    drawn = sample_arguments(
        name, k=-1.0, generator=torch.Generator().manual_seed(0), dtype=torch.float32, count=3
    )

    def run(device):
        arguments = [argument.to(device) for argument in drawn]
        # a number, a CPU tensor without dimensions, and a parameter
        curvatures = (-1.0, torch.tensor(-1.0), torch.tensor(-1.0, device=device, requires_grad=True))
        return [operation(name)(*arguments, k=k) for k in curvatures]

    expected, found = on_both(run)
    assert all(isinstance(one, StandIn) for one in found)
    close(found, expected)


@pytest.mark.parametrize("space", [Stereographic(-1.0), ProductSpace([-1.0, 1.0])], ids=["one", "product"])
def test_a_space_goes_where_the_points_are(space):
    drawn = torch.rand(3, 5, 2, 3, generator=torch.Generator().manual_seed(0)) / 4

    def run(device):
        x, y, u = drawn.to(device)
        t = torch.full((1,), 0.5, device=device)
        return [
            *(
                space.expmap0(u),
                space.logmap0(x),
                space.expmap(x, u),
                space.logmap(x, y),
                space.mobius_add(x, y),
            ),
            *(
                space.parallel_transport(x, y, u),
                space.geodesic(t, x, y),
                space.inner(x, u, u),
                space.norm(x, u),
            ),
            *(
                space.dist(x, y),
                space.dist0(x),
                space.pairwise_dist(x, y),
                space.midpoint(x),
                space.project(x),
            ),
        ]

    expected, found = on_both(run)
    assert all(isinstance(one, StandIn) for one in found)
    close(found, expected)


def test_the_device_can_be_asked_for():
    with stand_in() as device:
        assert usable_device(device) == device
    with pytest.raises(gyroformer.errors.UsageError, match="cannot be used here"):
        usable_device("cuda:7")
