"""Triangles against networkx."""

import networkx as nx
import numpy as np
import pytest

from gyroformer.graphs.adjacency import simple_adjacency
from gyroformer.graphs.analysis import triangles as module


@pytest.mark.parametrize("block", [1, 50, 1 << 20])
@pytest.mark.parametrize("seed", range(5))
def test_closed_triples_are_the_triangles_three_times(monkeypatch, seed, block):
    monkeypatch.setattr(module, "_BLOCK_PAIRS", block)
    graph = nx.gnm_random_graph(25, 20 + 40 * seed, seed=seed)
    adjacency = simple_adjacency(np.array(list(graph.edges)).T, 25)
    source = np.repeat(np.arange(25), np.diff(adjacency.indptr))
    found = []
    for m, mb, mc in module.closed_triples(adjacency):
        np.testing.assert_array_equal(source[mb], m)
        np.testing.assert_array_equal(source[mc], m)
        found += [
            (a, *sorted(bc)) for a, *bc in zip(m, adjacency.indices[mb], adjacency.indices[mc], strict=True)
        ]
    want = [(m, b, c) for m in graph for b in graph[m] for c in graph[m] if b < c and graph.has_edge(b, c)]
    assert sorted(found) == sorted(want)
    np.testing.assert_array_equal(module.closed_counts(adjacency), list(nx.triangles(graph).values()))
