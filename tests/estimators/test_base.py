"""What the three estimators share: parameters, seeds, inputs, pickling and run folders."""

import inspect

import joblib
import networkx as nx
import numpy as np
import pytest
import torch
from scipy.sparse import coo_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from small_graphs import labelled_graph, write_tree
from typer.testing import CliRunner

import gyroformer as gf
from gyroformer.cli.app import app
from gyroformer.errors import UsageError
from gyroformer.settings import make_job

KINDS = [gf.GraphEmbedder, gf.NodeClassifier, gf.LinkPredictor]
QUICK = {"epochs": 3, "dim": 8, "model_options": {"identifiers": 2}}


@pytest.fixture
def graph():
    return labelled_graph(nodes=30)


def answer(estimator):
    """Return all that a fitted estimator says of its graph."""
    if isinstance(estimator, gf.GraphEmbedder):
        return estimator.embedding_
    if isinstance(estimator, gf.NodeClassifier):
        return estimator.predict_proba()
    return estimator.decision_function([(i, j) for i in range(5) for j in range(10, 15)])


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_are_stored_as_they_are(kind):
    names = [name for name in inspect.signature(kind.__init__).parameters if name != "self"]
    given = {name: object() for name in names}
    estimator = kind(**given)
    assert all(getattr(estimator, name) is value for name, value in given.items())
    assert estimator.get_params() == given
    assert kind().set_params(epochs=7, recipe="paper").get_params()["epochs"] == 7


@pytest.mark.parametrize("kind", KINDS)
def test_a_clone_is_not_fitted_and_fits_alike(kind, graph):
    fitted = kind(random_state=3, **QUICK).fit(graph)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "model_")
    assert repr(copy) == repr(fitted)
    assert np.array_equal(answer(copy.fit(graph)), answer(fitted))


@pytest.mark.parametrize("kind", KINDS)
def test_before_fit(kind):
    methods = (
        "transform",
        "predict",
        "predict_proba",
        "decision_function",
        "distance",
        "nearest",
        "score",
        "save",
    )
    found = [method for method in methods if hasattr(kind, method)]
    assert len(found) > 3
    for method in found:
        call = getattr(kind(), method)
        required = [p for p in inspect.signature(call).parameters.values() if p.default is p.empty]
        with pytest.raises(NotFittedError):
            call(*[0] * len(required))


@pytest.mark.parametrize("kind", KINDS)
def test_names_that_fit_sets(kind, graph):
    graph.ids = [f"n{i}" for i in range(30)]
    estimator = kind(random_state=0, layers=2, **QUICK)
    assert estimator.fit(graph) is estimator
    assert estimator.ids_.tolist() == graph.ids
    assert estimator.curvatures_.shape == (2, 2)
    assert [row["epoch"] for row in estimator.history_] == [1, 2, 3]
    assert estimator.seed_ == estimator.results_["seed"] == 0
    assert estimator.results_["parameters"] == sum(p.numel() for p in estimator.model_.parameters())
    assert hasattr(estimator, "n_features_in_") == (kind is not gf.GraphEmbedder)
    assert getattr(estimator, "n_features_in_", 6) == 6


@pytest.mark.parametrize("kind", KINDS)
def test_seeds(kind, graph):
    def fitted(random_state):
        return kind(random_state=random_state, **QUICK).fit(graph)

    first = fitted(5)
    assert np.array_equal(answer(first), answer(fitted(np.int64(5))))
    assert not np.array_equal(answer(first), answer(fitted(6)))
    drawn = fitted(None)
    assert np.array_equal(answer(drawn), answer(fitted(drawn.seed_)))
    stream = fitted(np.random.RandomState(1))
    assert stream.seed_ == fitted(np.random.RandomState(1)).seed_ != drawn.seed_
    with pytest.raises(UsageError, match="random_state"):
        fitted("five")


@pytest.mark.parametrize("kind", KINDS)
def test_torchs_random_state_is_left_alone(kind, graph, tmp_path):
    torch.manual_seed(99)
    before = torch.get_rng_state()
    estimator = kind(random_state=0, **QUICK).fit(graph)
    answer(estimator)
    estimator.save(tmp_path / "run")
    kind.load(tmp_path / "run")
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("kind", KINDS)
def test_pickled(kind, graph, tmp_path):
    estimator = kind(random_state=0, **QUICK).fit(graph)
    joblib.dump(estimator, tmp_path / "estimator")
    again = joblib.load(tmp_path / "estimator")
    assert np.array_equal(answer(again), answer(estimator))
    if kind is gf.GraphEmbedder:
        assert np.array_equal(again.transform(graph), estimator.embedding_)


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded(kind, graph, tmp_path):
    graph.y = graph.y * 2 + 3  # labels that are not class numbers
    estimator = kind(random_state=0, **QUICK).fit(graph)
    estimator.save(tmp_path / "run")
    again = kind.load(tmp_path / "run")
    assert np.array_equal(answer(again), answer(estimator))
    assert again.history_ == estimator.history_
    assert again.results_ == estimator.results_
    assert again.seed_ == 0
    again.save(tmp_path / "copy")
    assert np.array_equal(answer(kind.load(tmp_path / "copy")), answer(estimator))
    refit = clone(again).set_params(random_state=0)
    assert np.array_equal(answer(refit.fit(graph)), answer(estimator)), "its parameters give the same again"


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_folder_of_fit(kind, graph, tmp_path):
    out = tmp_path / "run"
    estimator = kind(random_state=0, out=out, **QUICK).fit(graph)
    assert (out / "results.json").exists()
    assert np.array_equal(answer(kind.from_run(out)), answer(estimator))
    with pytest.raises(UsageError, match="holds a finished run"):
        estimator.fit(graph)
    other = gf.LinkPredictor if kind is gf.GraphEmbedder else gf.GraphEmbedder
    with pytest.raises(UsageError, match=f"{other.__name__} is for"):
        other.from_run(out)


def test_a_run_of_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file, nodes = write_tree(tmp_path / "tree.csv")
    command = ["embed", file.name, "--epochs", "3", "--dim", "8", "--out", "run", "--seed", "4"]
    assert CliRunner().invoke(app, command).exit_code == 0
    found = gf.GraphEmbedder.from_run("run")
    fitted = gf.GraphEmbedder(epochs=3, dim=8, random_state=4).fit(file)
    # a named recipe says all, so that what was chosen for the graph is named with it
    assert found.get_params() == {**fitted.get_params(), "recipe": "default", "start": "tree"}
    assert found.embedding_.shape == (nodes, 8)
    assert np.array_equal(found.embedding_, fitted.embedding_)
    assert found.map_ == fitted.map_
    file.rename("moved.csv")
    assert np.array_equal(gf.GraphEmbedder.from_run("run", graph="moved.csv").embedding_, found.embedding_)
    other, _ = write_tree(tmp_path / "other.csv", height=3)
    with pytest.raises(UsageError, match="another graph"):
        gf.GraphEmbedder.from_run("run", graph=other)


def test_graphs_of_every_kind_are_the_same(tmp_path):
    tree = nx.balanced_tree(2, 3)
    ends = np.array(tree.edges()).T
    size = tree.number_of_nodes()
    path = tmp_path / "tree.csv"
    path.write_text("".join(f"{u},{v}\n" for u, v in tree.edges()))
    matrix = coo_array((np.ones(ends.shape[1]), ends), shape=(size, size))
    kinds = [tree, matrix, matrix.tocsr(), (ends, size), (torch.from_numpy(ends), size), path, str(path)]
    found = [gf.GraphEmbedder(random_state=0, **QUICK).fit_transform(kind) for kind in kinds]
    assert all(np.array_equal(one, found[0]) for one in found)
    with pytest.raises(UsageError, match="list is not a graph"):
        gf.GraphEmbedder().fit([1, 2])
    with pytest.raises(UsageError, match="did you mean 'cora'"):
        gf.GraphEmbedder().fit("coro")


def test_settings_reach_the_job(graph):
    estimator = gf.GraphEmbedder(
        **{"lr": np.float64(0.5), "curvature_lr": 0.25, "weight_decay": 0.125, "epochs": np.int64(2)},
        **{
            "model": "tokengt",
            "dim": 4,
            "heads": 1,
            "layers": 2,
            "model_options": {"identifiers": np.int64(3)},
        },
        **{
            "training": {"clip": 2.0},
            "recipe": "paper",
            "dtype": "float64",
            "negatives": 5,
            "squared": False,
        },
        **{"feature_options": {"mixing": "ppr"}, "use_features": True, "random_state": 8},
    )
    job = estimator._job(graph, "somewhere.csv", 8)
    assert (job.training.lr, job.training.curvature_lr, job.training.weight_decay) == (0.5, 0.25, 0.125)
    assert (job.training.epochs, job.training.clip, job.training.eval_every) == (2, 2.0, 250)
    assert job.model.options == {
        **make_job("embed", recipe="paper", model={"name": "tokengt"}).model.options,
        **{"dim": 4, "heads": 1, "layers": 2, "identifiers": 3},
    }
    assert (job.model.name, job.recipe, job.seed, job.dtype) == ("tokengt", "paper", 8, "float64")
    assert (job.objective.negatives, job.objective.squared, job.objective.use_features) == (5, False, True)
    assert job.features.mixing == "ppr"
    assert job.graph.source == "somewhere.csv"
    assert estimator.fit(graph).embedding_.dtype == np.float64


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"model": "fpstt"}, "did you mean 'fpst'"),
        ({"recipe": "papper"}, "did you mean 'paper'"),
        ({"model_options": {"dimm": 3}}, "did you mean 'dim'"),
        ({"training": {"learning_rate": 1}}, "training.learning_rate"),
        ({"dim": 8, "model_options": {"dim": 4}}, "given twice"),
        ({"model_options": 3}, "must be a dictionary"),
        ({"device": "abacus"}, "device 'abacus'"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_wrong_parameters_are_refused_by_fit(wrong, said, graph):
    with pytest.raises(UsageError, match=said):
        gf.GraphEmbedder(**{"epochs": 1, **wrong}).fit(graph)


def test_a_job_too_large_is_refused_unless_memory_is_ignored(graph, monkeypatch):
    monkeypatch.setattr("gyroformer.jobs.memory.available_memory", lambda: 1e6)
    with pytest.raises(UsageError, match="GB are free"):
        gf.GraphEmbedder(**QUICK).fit(graph)
    gf.GraphEmbedder(ignore_memory=True, **QUICK).fit(graph)


def test_a_classify_run_of_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file, nodes = write_tree(tmp_path / "tree.csv")
    words = ["elm", "fir", ""]  # a third of the nodes has no label
    rows = "".join(f"n{node},{words[node % 3]}\n" for node in range(nodes))
    (tmp_path / "labels.csv").write_text("id,label\n" + rows)
    command = ["classify", file.name, "--labels", "labels.csv", "--epochs", "3", "--out", "run"]
    assert CliRunner().invoke(app, command).exit_code == 0
    found = gf.NodeClassifier.from_run("run")
    assert found.classes_.tolist() == ["elm", "fir"]
    assert set(found.predict()) <= {"elm", "fir"}
    assert found.score() == pytest.approx(found.results_["test_f1"] / 100)
    stored = np.load("run/embeddings.npz")["probability"]
    np.testing.assert_allclose(found.predict_proba(), stored, atol=1e-6)


def test_verbose_prints_some_lines(graph, capsys):
    gf.GraphEmbedder(random_state=0, **QUICK).fit(graph)
    assert not capsys.readouterr().out
    gf.GraphEmbedder(random_state=0, verbose=True, **QUICK).fit(graph)
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["1/3", "2/3", "3/3"]
