"""Training, run folders and estimators on a device that is not the CPU: nothing stays behind, results are equal.

``helpers/stand_in_device.py`` says what the device is, and what it cannot show.
"""

import pytest
import torch
from device_checks import close, job_of, on_both, planned, step
from small_graphs import graph, labelled_graph, renumbered
from stand_in_device import StandIn, real, stand_in

import gyroformer
from gyroformer.data.splits import make_split
from gyroformer.estimators import GraphEmbedder, LinkPredictor, NodeClassifier
from gyroformer.jobs.predict import usual_answer
from gyroformer.jobs.restore import restore
from gyroformer.jobs.run import run_job
from gyroformer.tasks import TASKS
from gyroformer.train.learner import load_random_state, random_state
from gyroformer.train.loop import fit


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
