"""Fits beside each other in threads, and ids that cannot be."""

import threading

import networkx as nx
import numpy as np
import pytest
from joblib import parallel_config
from sklearn.model_selection import GridSearchCV

import gyroformer as gf
from gyroformer.errors import UsageError

GRAPH = nx.balanced_tree(2, 4)


def fitted(seed=0):
    return gf.GraphEmbedder(epochs=10, random_state=seed, dim=8).fit(GRAPH)


def test_fits_in_threads_are_those_of_one_after_the_other():
    alone = {seed: fitted(seed).embedding_ for seed in range(2)}
    found = {}

    def work(number):
        found[number] = fitted(number % 2).embedding_

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, embedding in found.items():
        np.testing.assert_array_equal(embedding, alone[number % 2])


def test_a_search_in_threads_finds_the_same_scores():
    nodes = np.arange(GRAPH.number_of_nodes()).reshape(-1, 1)
    y = nodes.ravel() % 2
    estimator = gf.NodeClassifier(
        graph=GRAPH, epochs=4, dim=8, random_state=0, model_options={"identifiers": 2}
    )
    scores = []
    for backend, jobs in (("sequential", 1), ("threading", 2)):
        with parallel_config(backend=backend):
            found = GridSearchCV(estimator, {"lr": [0.01, 0.1]}, cv=2, n_jobs=jobs).fit(nodes, y)
        scores.append([found.cv_results_[f"split{part}_test_score"] for part in range(2)])
    np.testing.assert_array_equal(scores[0], scores[1])


@pytest.mark.parametrize("name", [[[1]], [None], {}, 1.5, "x", [[]], (1, 2), None, 10**30])
def test_ids_that_no_node_has(name):
    embedder = fitted()
    with pytest.raises(UsageError, match="no node has the id"):
        embedder.nearest(name)


@pytest.mark.parametrize("count", [0, -1, "a", None, 1.5])
def test_counts_that_cannot_be(count):
    with pytest.raises(UsageError, match="n must be a whole number"):
        fitted().nearest(0, count)
