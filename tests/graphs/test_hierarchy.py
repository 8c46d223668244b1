"""Cycles, directions and closures of directed graphs, against NetworkX."""

import networkx as nx
import numpy as np
import pytest

from gyroformer.graphs import hierarchy


def random_order(seed, nodes=40, edges=80):
    """A graph without a cycle whose nodes are not in the order of the hierarchy."""
    random = np.random.default_rng(seed)
    pairs = np.sort(random.integers(0, nodes, (edges, 2)), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return random.permutation(nodes)[pairs.T[::-1]]


def digraph(edges, nodes=40):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(edges.T.tolist())
    return graph


@pytest.mark.parametrize("seed", range(5))
def test_the_closure_and_what_it_implies_are_those_of_networkx(seed):
    edges = random_order(seed)
    pairs, depth = hierarchy.closure(edges, 40)
    graph = digraph(edges)
    assert {tuple(pair) for pair in pairs.T.tolist()} == set(nx.transitive_closure(graph).edges)
    assert (np.diff(pairs[0] * 40 + pairs[1]) > 0).all()
    longest = dict.fromkeys(range(40), 0)
    for node in reversed(list(nx.topological_sort(graph))):
        longest[node] = max((longest[parent] + 1 for parent in graph[node]), default=0)
    assert depth.tolist() == [longest[node] for node in range(40)]
    direct = set(nx.transitive_reduction(graph).edges)
    inner = hierarchy.implied(pairs, 40)
    assert {tuple(pair) for pair in pairs[:, ~inner].T.tolist()} == direct


@pytest.mark.parametrize("seed", range(5))
def test_a_cycle_is_found_and_cycles_are_broken(seed):
    random = np.random.default_rng(seed)
    edges = np.unique(random.integers(0, 40, (2, 120)), axis=1)
    edges = edges[:, edges[0] != edges[1]]
    cycle = hierarchy.find_cycle(edges, 40)
    assert cycle is not None
    graph = digraph(edges)
    assert all(graph.has_edge(u, v) for u, v in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    kept = hierarchy.without_cycles(edges, 40)
    assert nx.is_directed_acyclic_graph(digraph(kept))
    assert hierarchy.find_cycle(kept, 40) is None
    # no more is left out than leads back: edges between tangles stay
    parts = {node: i for i, part in enumerate(nx.strongly_connected_components(graph)) for node in part}
    between = {(u, v) for u, v in edges.T.tolist() if parts[u] != parts[v]}
    assert between <= {tuple(pair) for pair in kept.T.tolist()}


def test_a_graph_without_cycles_keeps_all_edges():
    edges = random_order(3)
    assert hierarchy.find_cycle(edges, 40) is None
    assert np.array_equal(hierarchy.without_cycles(edges, 40), edges)


def test_the_ancestor_is_the_end_that_has_few_above():
    children = np.array([[1, 2, 3, 4, 5], [0, 0, 1, 1, 2]])  # each to its parent
    for listed, end in ((children, "target"), (children[::-1].copy(), "source")):
        assert hierarchy.upper_end(listed, 6) == end
        assert np.array_equal(hierarchy.oriented(listed, end), children)
    assert hierarchy.upper_end(np.array([[0, 1, 2], [1, 2, 3]]), 4) is None  # a chain has one of each


def test_edges_in_both_directions_have_none():
    once = np.array([[0, 1, 2], [1, 2, 3]])
    assert hierarchy.has_no_direction(np.concatenate((once, once[::-1]), 1), 4)
    assert not hierarchy.has_no_direction(np.concatenate((once, once[::-1, :2]), 1), 4)
