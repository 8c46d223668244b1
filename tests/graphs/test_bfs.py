"""Bit-parallel search against networkx."""

import networkx as nx
import numpy as np
import pytest

from gyroformer.graphs.adjacency import ranked_components, simple_adjacency
from gyroformer.graphs.analysis.distance_sums import all_sources, distance_sums, drawn_sources, search_cost
from gyroformer.graphs.bfs import bfs_levels, joined_ranges


def adjacency_of(graph):
    return simple_adjacency(np.array(list(graph.edges)).T, graph.number_of_nodes())


@pytest.mark.parametrize(
    "graph",
    [
        nx.path_graph(200),
        nx.star_graph(150),
        nx.gnm_random_graph(150, 140, seed=1),
        nx.disjoint_union(nx.grid_2d_graph(9, 9), nx.complete_graph(70)),
    ],
    ids=["path", "star", "scattered", "grid and clique"],
)
def test_every_lane_holds_its_source_distances(graph):
    graph = nx.convert_node_labels_to_integers(graph)
    nodes = graph.number_of_nodes()
    words = -(-nodes // 64)
    found = np.full((nodes, nodes), -1)
    np.fill_diagonal(found, 0)
    everyone = np.arange(nodes)
    for level in bfs_levels(adjacency_of(graph), everyone, everyone, words):
        lanes = np.unpackbits(level.bits.view(np.uint8), axis=1, bitorder="little")[:, :nodes].astype(bool)
        np.testing.assert_array_equal(np.flatnonzero(lanes.any(axis=1)), level.rows)
        assert (found[lanes] == -1).all()
        found[lanes] = level.depth
    for node, reached in nx.all_pairs_shortest_path_length(graph):
        want = np.full(nodes, -1)
        want[list(reached)] = list(reached.values())
        np.testing.assert_array_equal(found[:, node], want)


def test_components_share_lanes():
    graph = nx.disjoint_union_all([nx.path_graph(5)] * 100)
    _, component = ranked_components(adjacency_of(graph))
    sources = all_sources(adjacency_of(graph), component)
    assert sources.words == 1
    sums, _ = distance_sums(adjacency_of(graph), sources)
    np.testing.assert_array_equal(sums.far.reshape(100, 5), np.tile([10.0, 7, 6, 7, 10], (100, 1)))


def test_level_edges_sum_over_sources_at_equal_distance():
    graph = nx.gnm_random_graph(40, 90, seed=4)
    adjacency = adjacency_of(graph)
    _, component = ranked_components(adjacency)
    sums, _ = distance_sums(adjacency, all_sources(adjacency, component))
    distance = dict(nx.all_pairs_shortest_path_length(graph))
    want = [
        sum(1 / distance[u][a] for a in distance[u] if a != u and distance[u][a] == distance[v][a])
        for u, v in sorted(tuple(sorted(edge)) for edge in graph.edges)
    ]
    np.testing.assert_allclose(sums.level_edges, want)
    np.testing.assert_allclose(
        sums.near, [sum(1 / d for d in distance[v].values() if d) for v in range(40)], rtol=1e-14
    )


def test_a_draw_takes_distinct_nodes_of_every_component():
    _, component = ranked_components(adjacency_of(nx.disjoint_union(nx.cycle_graph(50), nx.cycle_graph(7))))
    sources = drawn_sources(component, 20, seed=0)
    assert sources.per_component.tolist() == [20, 7]
    assert np.unique(sources.nodes).size == 27
    assert np.bincount(component[sources.nodes]).tolist() == [20, 7]
    assert sorted(sources.lanes[component[sources.nodes] == 0]) == list(range(20))


def test_joined_ranges():
    positions, begins = joined_ranges(np.array([5, 0, 9]), np.array([2, 0, 3]))
    assert positions.tolist() == [5, 6, 9, 10, 11]
    assert begins.tolist() == [0, 2, 2]


def test_a_deep_graph_costs_more_than_a_shallow_one_of_its_size():
    def cost(graph):
        return search_cost(adjacency_of(graph), np.zeros(graph.number_of_nodes(), np.int64))

    assert cost(nx.path_graph(2000)) > 100 * cost(nx.star_graph(1999))
    assert cost(nx.complete_graph(1000)) > 10 * cost(nx.star_graph(999))
