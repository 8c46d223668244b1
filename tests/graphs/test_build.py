import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch

from gyroformer.errors import DataError
from gyroformer.graphs.build import GraphSummary, graph_from_edges

SOURCE = np.array([0, 1, 1, 2, 2, 4, 0])
TARGET = np.array([1, 0, 2, 2, 1, 0, 1])


def graph(**options):
    return graph_from_edges(SOURCE, TARGET, num_nodes=6, ids=list("abcdef"), **options)


def test_undirected_counts_and_edges():
    data = graph()
    assert data.edge_index.tolist() == [[0, 0, 1, 1, 2, 4], [1, 4, 0, 2, 1, 0]]
    assert data.edge_index.dtype == torch.int64
    assert data.summary == GraphSummary(
        nodes=6,
        listed_edges=7,
        edges=3,
        self_loops=1,
        duplicates=1,
        reversed_duplicates=2,
        isolated=2,
        components=3,
    )
    assert data.summary.line() == (
        "6 nodes, 3 undirected edges of 7 listed, weights none; 1 self loop dropped; 1 duplicate dropped; "
        "2 pairs listed reversed; 2 isolated nodes; 3 components"
    )


def test_directed_keeps_the_direction():
    data = graph(directed=True)
    assert data.edge_index.tolist() == [[0, 1, 1, 2, 4], [1, 0, 2, 1, 0]]
    assert (data.summary.edges, data.summary.duplicates, data.summary.components) == (5, 1, 3)
    assert "2 pairs listed in both directions" in data.summary.line()


def test_first_weight_is_kept_and_conflicts_are_counted():
    data = graph(weight=np.array([5.0, 5.0, 1.5, 9.0, 2.5, 7.0, 5.0]))
    assert data.edge_weight.tolist() == [5.0, 7.0, 5.0, 1.5, 1.5, 7.0]
    assert data.summary.weight_conflicts == 1  # 1 - 2 is 1.5 one way and 2.5 the other
    directed = graph(weight=np.arange(7.0), directed=True)
    assert directed.edge_weight.tolist() == [0.0, 1.0, 2.0, 4.0, 5.0]


def test_one_node_without_edge():
    data = graph_from_edges(np.array([], dtype=int), np.array([], dtype=int), num_nodes=1)
    assert data.edge_index.shape == (2, 0)
    assert (
        data.summary.line()
        == "1 node, 0 undirected edges of 0 listed, weights none; 1 isolated node; 1 component"
    )


def test_names_and_summary_survive_what_pyg_does():
    data = graph(x=np.eye(6), y=np.arange(6))
    for same in (data.clone(), copy.deepcopy(data), pickle.loads(pickle.dumps(data)), data.to("cpu")):
        assert same.summary == data.summary
        assert same.ids == list("abcdef")
    batch = Batch.from_data_list([data, graph(x=np.eye(6), y=np.arange(6))])
    assert batch.num_nodes == 12
    assert batch[1].ids == list("abcdef")
    assert batch[1].summary == data.summary
    assert data.subgraph(torch.tensor([1, 2, 4])).ids == ["b", "c", "e"]


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"num_nodes": 0}, "no node"),
        ({"num_nodes": 2}, "edge 2 ends at node 2"),
        ({"num_nodes": 3, "ids": ["a", "b"]}, "3 nodes need 3 ids, got 2"),
        ({"num_nodes": 3, "ids": ["a", "b", "a"]}, "1 of 3 are repeated"),
        ({"num_nodes": 3, "weight": [1.0, np.nan, 1.0]}, "weight of edge 1 is nan"),
        ({"num_nodes": 3, "weight": [1.0]}, "3 edges need 3 weights"),
        ({"num_nodes": 3, "x": [[1.0, 2.0], [3.0, np.inf], [0.0, 0.0]]}, "row 1, column 1 is inf"),
        ({"num_nodes": 3, "x": [[1.0], [2.0]]}, "table of 3 rows"),
        ({"num_nodes": 3, "x": [["a"], ["b"], ["c"]]}, "must be numbers"),
        ({"num_nodes": 3, "x": [[1e300], [2.0], [1.0]]}, "beyond float32"),
        ({"num_nodes": 3, "y": [0, -2, 2]}, "label of row 1 is -2"),
        ({"num_nodes": 3, "y": [0, np.nan, 2]}, "are finite"),
        ({"num_nodes": 3, "y": [0, 0.5, 2]}, "class numbers are integers"),
        ({"num_nodes": 3, "y": [0, 10**12, 2]}, "below 65536"),
    ],
)
def test_what_cannot_be_a_graph(arguments, words):
    with pytest.raises(DataError, match=words):
        graph_from_edges(np.array([0, 1, 0]), np.array([1, 1, 2]), **arguments)


edges = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=40)


@settings(deadline=None)
@given(edges, st.booleans())
def test_it_agrees_with_sets_of_pairs(listed, directed):
    source, target = np.array(listed, dtype=int).reshape(-1, 2).T
    data = graph_from_edges(source, target, num_nodes=8, directed=directed)
    pairs = {(u, v) for u, v in listed if u != v}
    expected = pairs if directed else pairs | {(v, u) for u, v in pairs}
    assert list(map(tuple, data.edge_index.T.tolist())) == sorted(expected)
    counts = data.summary
    both = sum((v, u) in pairs for u, v in pairs) // 2
    assert counts.reversed_duplicates == both
    assert counts.listed_edges == len(listed)
    rest = 0 if directed else both
    assert counts.listed_edges == counts.edges + counts.self_loops + counts.duplicates + rest
    assert counts.isolated == 8 - len({node for pair in pairs for node in pair})
