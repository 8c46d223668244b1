"""scikit-learn's tools on all three estimators: searches over parameters, tables with ids, predictions by id."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

import gyroformer as gf
from gyroformer.errors import UsageError

QUICK = {"epochs": 3, "dim": 8, "model_options": {"identifiers": 2}, "random_state": 0}


@pytest.fixture(scope="module")
def graph():
    found = nx.relabel_nodes(nx.karate_club_graph(), lambda node: f"member {node}")
    nx.set_edge_attributes(found, 1.0, "weight")
    return found


def test_a_search_over_an_embedder(graph):
    nodes = np.arange(34).reshape(-1, 1)
    search = GridSearchCV(gf.GraphEmbedder(graph=graph, **QUICK), {"lr": [1e-3, 1e-2]}, cv=2).fit(nodes)
    assert 0 < search.best_score_ <= 1
    assert search.best_estimator_.transform(nodes[:3]).shape == (3, 8)
    # the mean over all nodes is the mean of the folds' means, weighed by their sizes
    best = search.best_estimator_
    halves = [best.score(nodes[:17]), best.score(nodes[17:])]
    assert best.score(nodes) == pytest.approx(np.mean(halves))


def test_a_search_over_a_predictor_sees_its_own_fold_only(graph):
    pairs, truth = gf.LinkPredictor.samples(graph)
    assert (pairs.shape, truth.sum()) == ((156, 2), 78)
    assert all(graph.has_edge(*pair) == bool(edge) for pair, edge in zip(pairs.tolist(), truth, strict=True))
    predictor = gf.LinkPredictor(graph=graph, **QUICK)
    search = GridSearchCV(predictor, {"degrees": [True, False]}, cv=2).fit(pairs, truth)  # folds in order
    assert 0 < search.best_score_ <= 1
    fold = np.arange(80)
    fitted = gf.LinkPredictor(graph=graph, **QUICK).fit(pairs[fold], truth[fold])
    assert fitted.graph_.summary.edges == truth[fold].sum()
    assert len(fitted.ids_) == 34
    with pytest.raises(UsageError, match="1 or 0 for each"):
        predictor.fit(pairs, np.full(156, 2))


def test_tables_have_ids_as_their_index(graph):
    embedder = gf.GraphEmbedder(**QUICK).set_output(transform="pandas").fit(graph)
    table = embedder.transform(graph)
    assert isinstance(table, pd.DataFrame)
    assert table.index.tolist() == list(graph)
    assert table.columns.tolist() == [f"graphembedder{i}" for i in range(8)]
    np.testing.assert_array_equal(table.loc["member 7"], embedder.embedding_[7])


def test_labels_of_nodes_by_their_ids(graph):
    classifier = gf.NodeClassifier(**QUICK).fit(graph, "club")
    everyone = classifier.predict()
    assert set(everyone) <= {"Mr. Hi", "Officer"}
    assert classifier.predict(["member 3", "member 30"]).tolist() == everyone[[3, 30]].tolist()
    assert classifier.predict_proba(np.array(["member 3"])).shape == (1, 2)
    with pytest.raises(UsageError, match="no node has the id 'member 99'"):
        classifier.predict(["member 99"])
