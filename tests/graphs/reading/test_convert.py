import networkx as nx
import numpy as np
import pandas
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


@pytest.mark.parametrize("obj", [None, 3, ["ab"], HeteroData(), ([[0], [1]], 2.5), ([[0], [1]], True)])
def test_what_is_no_graph(obj):
    with pytest.raises(UsageError):
        to_graph(obj)


@pytest.mark.parametrize("obj", [Data(), ([[0, 1]], 2), ([[0], [2]], 2), ([[0.5], [1]], 2), nx.Graph()])
def test_graphs_that_cannot_be_used(obj):
    with pytest.raises(DataError):
        to_graph(obj)


PAIRS = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]


def test_tables_and_lists_of_pairs_are_one_graph():
    frame = pandas.DataFrame(PAIRS, columns=["package", "depends_on"])
    for obj in (PAIRS, [list(pair) for pair in PAIRS], tuple(PAIRS), np.array(PAIRS), frame):
        data = to_graph(obj)
        assert data.ids == ["a", "b", "c", "d"]
        assert data.edge_index[:, data.edge_index[0] < data.edge_index[1]].mT.tolist() == [
            [0, 1],
            [0, 2],
            [1, 2],
            [2, 3],
        ]
    assert to_graph(frame).summary.header == ("package", "depends_on")
    assert to_graph(PAIRS).summary.header is None


def test_weights_of_tables():
    frame = pandas.DataFrame({"n": [5, 6], "to": ["b", "c"], "from": ["a", "b"], "cost": [0.5, 2.0]})
    assert "edge_weight" not in to_graph(frame)
    assert to_graph(frame, weight="cost").edge_weight.tolist() == [0.5, 0.5, 2.0, 2.0]
    assert to_graph([("a", "b", 3), ("b", "c", 4)]).edge_weight.tolist() == [3, 3, 4, 4]
    assert "edge_weight" not in to_graph([("a", "b", 3), ("b", "c", 4)], weight="none")
    assert to_graph(np.array([[10, 20, 0.5]])).ids == [10, 20]
    with pytest.raises(DataError, match="row 1: nan in column 'to' is no node id"):
        to_graph(pandas.DataFrame({"from": ["a", "b"], "to": ["b", float("nan")]}))


def test_arrays():
    matrix = np.zeros((4, 4))
    matrix[0, 1] = matrix[1, 2] = 2
    assert to_graph(matrix).edge_weight.tolist() == [2, 2, 2, 2]
    assert to_graph(np.array([[7, 8], [8, 9]])).ids == [7, 8, 9]
    for table in (np.random.default_rng(0).normal(size=(20, 3)), np.ones((20, 5))):
        with pytest.raises(UsageError, match=r"not a graph|is not a graph"):
            to_graph(table)


def attributed():
    graph = nx.Graph([("x", "y"), ("y", "z")])
    nx.set_node_attributes(graph, {"x": 1.5, "y": 2, "z": 0}, "age")
    nx.set_node_attributes(graph, {"x": "red", "y": "blue"}, "club")
    graph["x"]["y"]["cost"] = 3.0
    return graph


@pytest.mark.parametrize("library", ["networkx", "igraph"])
def test_attributes_of_nodes_by_name(library):
    graph = attributed()
    if library == "igraph":
        igraph = pytest.importorskip("igraph")
        ages, clubs = (nx.get_node_attributes(graph, name) for name in ("age", "club"))
        graph = igraph.Graph(n=3, edges=[(0, 1), (1, 2)])
        graph.vs["name"] = ["x", "y", "z"]
        graph.vs["age"] = [ages[name] for name in "xyz"]
        graph.vs["club"] = [clubs.get(name) for name in "xyz"]
        graph.es["cost"] = [3.0, None]
    data = to_graph(graph, features=["age"], labels="club", weight="cost")
    assert data.ids == ["x", "y", "z"]
    assert data.x.tolist() == [[1.5], [2.0], [0.0]]
    assert (data.y.tolist(), data.label_names) == ([1, 0, -1], ["blue", "red"])
    assert data.edge_weight.tolist() == [3.0, 3.0, 1.0, 1.0]
    assert to_graph(graph).x is None
    with pytest.raises(UsageError, match="no node has the attribute 'aeg'; did you mean 'age'"):
        to_graph(graph, features=["aeg"])


def test_arguments_without_a_meaning_are_refused():
    with pytest.raises(UsageError, match=r"features=.* has no meaning for a graph given as list"):
        to_graph(PAIRS, features=["age"])
    with pytest.raises(UsageError, match="source='a' has no meaning"):
        to_graph(nx.path_graph(3), source="a")
