import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data, HeteroData

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.reading.convert import to_graph


def test_networkx():
    graph = nx.MultiGraph()
    graph.add_nodes_from(["alone", 7])
    graph.add_edge("x", 7, weight=2.5)
    graph.add_edge(7, "x")
    graph.add_edge("x", "x")
    data = to_graph(graph)
    assert data.ids == ["alone", 7, "x"]
    assert data.edge_index.tolist() == [[1, 2], [2, 1]]
    assert data.edge_weight.tolist() == [2.5, 2.5]
    assert (data.summary.self_loops, data.summary.isolated) == (1, 1)


def test_networkx_directions():
    assert to_graph(nx.DiGraph([(0, 1)]), directed=True).edge_index.tolist() == [[0], [1]]
    assert to_graph(nx.DiGraph([(0, 1)])).edge_index.tolist() == [[0, 1], [1, 0]]
    assert to_graph(nx.Graph([(0, 1)]), directed=True).edge_index.tolist() == [[0, 1], [1, 0]]


def test_networkx_names_of_other_kinds_become_text():
    assert to_graph(nx.grid_2d_graph(1, 2)).ids == ["(0, 0)", "(0, 1)"]


def test_scipy():
    matrix = sp.coo_array(([1, 1, 0], ([0, 1, 2], [1, 0, 0])), shape=(3, 3))
    data = to_graph(matrix)
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]  # the stored 0 is no edge
    assert "edge_weight" not in data
    assert to_graph(matrix * 2.0).edge_weight.tolist() == [2.0, 2.0]
    with pytest.raises(DataError, match="2 x 3"):
        to_graph(sp.csr_array((2, 3)))
    with pytest.raises(DataError, match="real numbers"):
        to_graph(sp.csr_array(np.eye(2) * 1j))


@pytest.mark.parametrize("make", [torch.tensor, np.array, list])
def test_edge_index_and_number(make):
    data = to_graph((make([[0, 1], [1, 3]]), 5))
    assert data.edge_index.tolist() == [[0, 1, 1, 3], [1, 0, 3, 1]]
    assert (data.num_nodes, data.summary.isolated) == (5, 2)


def test_data_keeps_what_belongs_to_nodes():
    data = Data(edge_index=torch.tensor([[0, 1], [1, 1]]), x=torch.ones(3, 2), y=torch.tensor([0, 1, 1]))
    data.train_mask = torch.tensor([True, False, True])
    data.name = "small"
    clean = to_graph(data)
    assert clean.edge_index.tolist() == [[0, 1], [1, 0]]
    assert clean.train_mask.tolist() == [True, False, True]
    assert (clean.name, clean.ids) == ("small", [0, 1, 2])
    again = to_graph(clean)
    assert torch.equal(again.edge_index, clean.edge_index)


def test_data_with_edge_features():
    clean = Data(
        edge_index=torch.tensor([[0, 1], [1, 0]]), edge_attr=torch.tensor([[1.0], [2.0]]), num_nodes=2
    )
    assert to_graph(clean).edge_attr.tolist() == [[1.0], [2.0]]
    loops = Data(edge_index=torch.tensor([[0, 1], [1, 1]]), edge_attr=torch.ones(2, 1), num_nodes=2)
    with pytest.raises(DataError, match="'edge_attr' belongs to edges that are not clean"):
        to_graph(loops)


def test_paths(tmp_path):
    (tmp_path / "g.txt").write_text("a b\n")
    assert to_graph(tmp_path / "g.txt").ids == to_graph(str(tmp_path / "g.txt")).ids == ["a", "b"]


@pytest.mark.parametrize("obj", [None, 3, [[0, 1]], HeteroData(), ([[0], [1]], 2.5), ([[0], [1]], True)])
def test_what_is_no_graph(obj):
    with pytest.raises(UsageError):
        to_graph(obj)


@pytest.mark.parametrize("obj", [Data(), ([[0, 1]], 2), ([[0], [2]], 2), ([[0.5], [1]], 2), nx.Graph()])
def test_graphs_that_cannot_be_used(obj):
    with pytest.raises(DataError):
        to_graph(obj)
