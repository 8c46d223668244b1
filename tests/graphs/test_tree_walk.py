"""Places along a breadth-first tree: a step from the parent, and distances that grow with the steps between nodes."""

import numpy as np
import pytest

from gyroformer.graphs.adjacency import simple_adjacency
from gyroformer.graphs.tree_walk import APART, component_roots, tree_walk


def adjacency(pairs, nodes):
    return simple_adjacency(np.array(pairs, np.int64).T.reshape(2, -1), nodes)


BINARY = [(node, (node - 1) // 2) for node in range(1, 31)]


def test_every_node_is_a_step_from_its_parent():
    # rooted at node 1, the first of the nodes with three neighbours
    places = tree_walk(adjacency(BINARY, 31), 8, step=0.5, seed=0)
    assert np.linalg.norm(places[1]) == 0
    for node, parent in BINARY:
        assert np.linalg.norm(places[node] - places[parent]) == pytest.approx(0.5, rel=1e-5)


def test_an_edge_that_is_not_in_the_tree_changes_nothing():
    ring = [(i, (i + 1) % 6) for i in range(6)]
    places = tree_walk(adjacency(ring, 6), 4, step=1.0, seed=3)
    length = [np.linalg.norm(places[a] - places[b]) for a, b in ring]
    assert sorted(np.isclose(length, 1.0, rtol=1e-5))[1:] == [True] * 5  # from node 0 both ways, up to node 3


def test_squared_distances_grow_with_the_steps_between_nodes():
    path = [(i, i + 1) for i in range(400)]
    places = tree_walk(adjacency(path, 401), 64, step=1.0, seed=0)
    for steps in (1, 4, 16):
        square = ((places[steps:] - places[:-steps]) ** 2).sum(1)
        assert square.mean() == pytest.approx(steps, rel=0.15)


def test_components_begin_apart_at_their_largest_hubs():
    graph = adjacency([(0, 1), (2, 3), (3, 4), (3, 5)], 7)
    assert component_roots(graph).tolist() == [3, 0, 6]  # by size; node 6 has no neighbour
    places = tree_walk(graph, 5, step=2.0, seed=1)
    assert np.linalg.norm(places[[3, 0, 6]], axis=1) == pytest.approx([2 * APART] * 3, rel=1e-5)
    assert np.linalg.norm(places[4] - places[3]) == pytest.approx(2.0, rel=1e-5)


def test_a_seed_means_the_same_places():
    graph = adjacency(BINARY, 31)
    first, again, other = (tree_walk(graph, 3, step=1.0, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)


def test_a_deep_path_and_a_single_node():
    assert tree_walk(adjacency([(0, 1)], 2), 2, step=1.0, seed=0).shape == (2, 2)
    assert tree_walk(adjacency([], 1), 2, step=1.0, seed=0).tolist() == [[0.0, 0.0]]
    deep = [(i, i + 1) for i in range(20_000)]
    assert np.isfinite(tree_walk(adjacency(deep, 20_001), 2, step=1.0, seed=0)).all()
