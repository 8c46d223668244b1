import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.model_selection import GridSearchCV, cross_val_score
from small_graphs import labelled_graph

import gyroformer as gf
from gyroformer.data.splits import make_split
from gyroformer.errors import DataError, UsageError

QUICK = {"epochs": 3, "dim": 8, "model_options": {"identifiers": 2}, "random_state": 0}
LEARNS = {
    "epochs": 15,
    "lr": 0.05,
    "dim": 8,
    "model_options": {"identifiers": 0, "dropout": 0.0},
    "random_state": 0,
}
WORDS = np.array(["ash", "birch", "cedar"])


@pytest.fixture
def graph():
    return labelled_graph(nodes=36)


@pytest.fixture
def bare(graph):
    """The same graph, and its labels apart."""
    y = graph.y.numpy()
    graph.y = None
    return graph, y


def test_communities_are_learned(bare):
    graph, y = bare
    known = np.where(np.arange(36) < 18, WORDS[y], "")
    found = gf.NodeClassifier(**LEARNS).fit(graph, known)
    assert found.score(graph, WORDS[y], nodes=known == "") > 0.6  # by chance it is a third
    assert found.predict().shape == (36,)
    assert set(found.predict()) <= set(WORDS)


@pytest.mark.parametrize(
    "turned, classes, gap",
    [
        (lambda y: y, [0, 1, 2], -1),
        (lambda y: y * 10 + 5, [5, 15, 25], -1),
        (lambda y: WORDS[y], WORDS.tolist(), ""),
        (lambda y: WORDS[y].astype(object), WORDS.tolist(), None),
        (lambda y: y.astype(float), [0.0, 1.0, 2.0], np.nan),
    ],
    ids=["numbers", "other numbers", "text", "objects", "floats"],
)
def test_labels_of_every_kind(turned, classes, gap, bare):
    graph, y = bare
    labels = turned(y)
    labels[::5] = gap
    found = gf.NodeClassifier(**QUICK).fit(graph, labels)
    assert found.classes_.tolist() == classes
    used = torch.cat((found.split_.train, found.split_.val)).sort().values.tolist()
    assert used == [node for node in range(36) if node % 5]
    assert set(found.predict().tolist()) <= set(classes)
    plain = gf.NodeClassifier(**QUICK).fit(graph, np.where(np.arange(36) % 5 == 0, -1, y))
    assert np.array_equal(plain.predict_proba(), found.predict_proba())


def test_labels_by_id():
    karate = nx.karate_club_graph()
    clubs = {node: karate.nodes[node]["club"] for node in range(0, 34, 2)}
    by_id = gf.NodeClassifier(**QUICK).fit(karate, clubs)
    listed = gf.NodeClassifier(**QUICK).fit(karate, [clubs.get(node) for node in karate])
    assert np.array_equal(by_id.predict_proba(), listed.predict_proba())
    assert by_id.classes_.tolist() == ["Mr. Hi", "Officer"]


def test_the_graphs_own_labels_and_masks(graph):
    whole = gf.NodeClassifier(**QUICK).fit(graph)
    assert whole.split_.test.numel() == 0
    assert whole.split_.val.numel() == pytest.approx(0.2 * 36, abs=2)
    graph.train_mask = torch.arange(36) < 12
    graph.val_mask = (torch.arange(36) >= 12) & (torch.arange(36) < 20)
    masked = gf.NodeClassifier(**QUICK).fit(graph)
    assert masked.split_.train.tolist() == list(range(12))
    assert masked.split_.val.tolist() == list(range(12, 20))
    assert masked.split_.test.tolist() == list(range(20, 36))
    assert masked.score() == np.mean(masked.predict()[20:] == graph.y.numpy()[20:])
    assert masked.score() == pytest.approx(masked.results_["test_f1"] / 100)
    with pytest.raises(UsageError, match="no labelled node to score"):
        whole.score()
    graph.train_mask = torch.stack((graph.train_mask, graph.val_mask), 1)
    with pytest.raises(UsageError, match="hold 2 splits"):
        gf.NodeClassifier(**QUICK).fit(graph)


def test_nodes_that_the_caller_names(graph):
    train, val = np.arange(36) < 15, [20, 21, 22, 23]
    found = gf.NodeClassifier(**QUICK).fit(graph, train=train, val=val)
    assert found.split_.train.tolist() == list(range(15))
    assert found.split_.val.tolist() == val
    assert found.split_.test.tolist() == [*range(15, 20), *range(24, 36)]
    same = gf.NodeClassifier(split=(train, val), **QUICK).fit(graph)
    assert same.split_.sha256 == found.split_.sha256
    only_val = gf.NodeClassifier(**QUICK).fit(graph, val=val)
    assert only_val.split_.train.tolist() == [node for node in range(36) if node not in val]
    only_train = gf.NodeClassifier(**QUICK).fit(graph, train=train)
    assert set(only_train.split_.val.tolist()) < set(range(15))
    with pytest.raises(UsageError, match="given twice"):
        gf.NodeClassifier(split="random", **QUICK).fit(graph, train=train)
    with pytest.raises(DataError, match="leaks"):
        gf.NodeClassifier(**QUICK).fit(graph, train=train, val=[3, 30])


def test_splits_by_name_and_as_objects(graph):
    named = gf.NodeClassifier(split="clean", **QUICK).fit(graph)
    assert named.split_.name == "clean"
    assert named.split_.sha256 == make_split(graph, "clean", seed=0).sha256
    own = make_split(graph, "random", seed=5)
    assert gf.NodeClassifier(split=own, **QUICK).fit(graph).split_.sha256 == own.sha256
    with pytest.raises(UsageError, match="did you mean 'clean'"):
        gf.NodeClassifier(split="claen", **QUICK).fit(graph)
    with pytest.raises(UsageError, match="of 36 nodes"):
        gf.NodeClassifier(split=own, **QUICK).fit(labelled_graph(nodes=20))
    graph.y[own.train[0]] = -1
    fewer = gf.NodeClassifier(split=own, **QUICK).fit(graph).split_
    assert fewer.train.tolist() == own.train[1:].tolist()


def test_a_data_sets_own_split(data_folder):
    found = gf.NodeClassifier(epochs=1, random_state=0).fit("cora")
    assert found.split_.name == "public"
    assert found.results_["recipe"] == "cora/fpst"
    assert found.n_features_in_ == 1433


def test_balanced_reaches_the_loss(graph):
    graph.y[graph.y == 2] = 0
    plain, balanced = (gf.NodeClassifier(balanced=b, **QUICK).fit(graph) for b in (False, True))
    assert not np.array_equal(plain.predict_proba(), balanced.predict_proba())


def test_folds_of_nodes(bare):
    graph, y = bare
    nodes = np.arange(36).reshape(-1, 1)
    scores = cross_val_score(gf.NodeClassifier(graph=graph, **LEARNS), nodes, WORDS[y], cv=3)
    assert scores.shape == (3,)
    assert scores.mean() > 0.6
    search = GridSearchCV(gf.NodeClassifier(graph=graph, **QUICK), {"lr": np.array([1e-3, 1e-2])}, cv=2)
    assert search.fit(nodes, y).best_params_["lr"] in (1e-3, 1e-2)


def test_with_nodes_as_samples_no_other_label_is_seen(graph):
    rows = np.arange(24)
    y = graph.y.numpy().copy()
    first = gf.NodeClassifier(graph=graph, **QUICK).fit(rows, y[:24])
    graph.y = graph.y.flip(0)
    second = gf.NodeClassifier(graph=graph, **QUICK).fit(rows.reshape(-1, 1), y[:24])
    assert np.array_equal(first.predict_proba(), second.predict_proba())
    assert max(*first.split_.train.tolist(), *first.split_.val.tolist()) < 24
    assert first.graph_.y[24:].tolist() == [-1] * 12
    assert np.array_equal(first.predict_proba([30, 2]), first.predict_proba()[[30, 2]])
    assert first.score([30, 2], first.predict([30, 2])) == 1
    assert first.score([30, 2], (first.predict([30, 2]) + 1) % 3) == 0


def test_nodes_as_samples_survive_a_run_folder(bare, tmp_path):
    graph, y = bare
    fitted = gf.NodeClassifier(graph=graph, **QUICK).fit(np.arange(36), y)
    fitted.save(tmp_path / "run")
    again = gf.NodeClassifier.load(tmp_path / "run")
    assert np.array_equal(again.predict_proba([3, 4]), fitted.predict_proba([3, 4]))


def test_words_survive_a_run_folder(bare, tmp_path):
    graph, y = bare
    fitted = gf.NodeClassifier(**QUICK).fit(graph, WORDS[y])
    fitted.save(tmp_path / "run")
    again = gf.NodeClassifier.load(tmp_path / "run")
    assert again.classes_.tolist() == WORDS.tolist()
    assert again.split_.sha256 == fitted.split_.sha256
    assert again.score(y=WORDS[y]) == fitted.score(y=WORDS[y])
    assert fitted.results_["label_names"] == WORDS.tolist()


def test_probabilities(graph):
    found = gf.NodeClassifier(**QUICK).fit(graph)
    chances = found.predict_proba()
    np.testing.assert_allclose(chances.sum(1), 1, atol=1e-12)
    assert np.array_equal(found.predict(), found.classes_[chances.argmax(1)])
    assert np.array_equal(found.predict_proba(graph), chances)
    other = labelled_graph(nodes=20)
    assert found.predict(other).shape == (20,)
    assert found.score(other, other.y) == np.mean(found.predict(other) == other.y.numpy())
    with pytest.raises(UsageError, match="score needs y"):
        found.score(other)
    with pytest.raises(UsageError, match="X has 4 features"):
        found.predict(labelled_graph(features=4))


@pytest.mark.parametrize(
    "fit, said",
    [
        (lambda g, y: gf.NodeClassifier().fit(g), "no labels"),
        (lambda g, y: gf.NodeClassifier().fit(g, y[:-1]), "one label for each of the 36 nodes"),
        (lambda g, y: gf.NodeClassifier().fit(g, np.zeros(36)), "1 class"),
        (lambda g, y: gf.NodeClassifier().fit(g, np.full(36, -1)), "no node has a label"),
        (lambda g, y: gf.NodeClassifier().fit(g, y + 0.5), "continuous"),
        (lambda g, y: gf.NodeClassifier().fit(g, {0: "a", 1: 2}), "one kind"),
        (lambda g, y: gf.NodeClassifier().fit(g, {0: "a", 99: "b"}), "no node has the id 99"),
        (lambda g, y: gf.NodeClassifier(validation_fraction=1.0).fit(g, y), "validation_fraction"),
        (lambda g, y: gf.NodeClassifier().fit(g, {0: "a", 1: "b"}), "too few"),
        (lambda g, y: gf.NodeClassifier(split=(y == 0,)).fit(g, y), "got 1 parts"),
        (lambda g, y: gf.NodeClassifier().fit(g, y, train=[50]), "names node 50"),
        (lambda g, y: gf.NodeClassifier().fit(g, y, train=y[:5] == 0), "mask of 5 nodes"),
        (lambda g, y: gf.NodeClassifier(graph=g).fit([0, 1]), "requires y"),
        (lambda g, y: gf.NodeClassifier(graph=g).fit([0, 0, 1], [0, 0, 1]), "names a node twice"),
        (lambda g, y: gf.NodeClassifier(graph=g).fit([0, 1, 2], [0, 1]), "for each of the 3 nodes"),
        (lambda g, y: gf.NodeClassifier(graph=g).fit([0.5, 1, 2], [0, 1, 1]), "integers"),
        (lambda g, y: gf.NodeClassifier(graph=g, split="random").fit([0, 1], [0, 1]), "give no split"),
    ],
)
def test_what_makes_no_sense_is_refused(fit, said, bare):
    with pytest.raises((UsageError, DataError), match=said):
        fit(*bare)


def test_another_graph_is_seen_by_the_columns_of_the_fitted_one(graph):
    """An MLP sees nothing but a node's own features: it says the same of a node in whatever company."""
    found = gf.NodeClassifier(model="mlp", epochs=3, dim=8, random_state=0).fit(graph)
    part = graph.subgraph(torch.tensor([3, 4, 20]))
    np.testing.assert_allclose(found.predict_proba(part), found.predict_proba()[[3, 4, 20]], rtol=1e-5)
