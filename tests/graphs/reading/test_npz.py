import numpy as np
import pytest
import scipy.sparse as sp

from gyroformer.errors import DataError
from gyroformer.graphs.reading.read import read_graph

EDGES = np.array([[0, 1, 1], [1, 2, 3]])


@pytest.fixture
def save(tmp_path):
    def save(**arrays):
        path = tmp_path / "graph.npz"
        np.savez_compressed(path, **arrays)
        return path

    return save


def test_edge_index_with_features_labels_ids_and_weights(save):
    path = save(
        edge_index=EDGES,
        x=np.arange(10.0).reshape(5, 2),
        y=np.array([0, 1, 2, 1, 0], dtype=np.int32),
        ids=np.array(["a", "b", "c", "d", "e"]),
        edge_weight=np.array([1.0, 2.0, 3.0]),
    )
    data = read_graph(path)
    assert data.edge_index.tolist() == [[0, 1, 1, 1, 2, 3], [1, 0, 2, 3, 1, 1]]
    assert data.edge_weight.tolist() == [1.0, 1.0, 2.0, 3.0, 2.0, 3.0]
    assert data.ids == ["a", "b", "c", "d", "e"]
    assert data.x[4].tolist() == [8.0, 9.0]
    assert data.y.tolist() == [0, 1, 2, 1, 0]
    assert data.summary.isolated == 1


def test_number_of_nodes(save):
    assert read_graph(save(edge_index=EDGES)).num_nodes == 4
    assert read_graph(save(edge_index=EDGES, num_nodes=np.array(9))).num_nodes == 9
    assert read_graph(save(edges=EDGES.T, node_features=np.ones((6, 1)))).num_nodes == 6


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
def test_matrices_saved_by_scipy(tmp_path, kind):
    dense = np.array([[0, 0.5, 0], [0.5, 7, 2], [0, 0, 0]])
    sp.save_npz(tmp_path / "g.npz", kind(dense))
    data = read_graph(tmp_path / "g.npz", directed=True)
    assert data.edge_index.tolist() == [[0, 1, 1], [1, 0, 2]]
    assert data.edge_weight.tolist() == [0.5, 0.5, 2.0]


def test_parts_with_prefixes(save):
    adjacency, features = sp.csr_array(np.eye(3, k=1)), sp.csr_array(np.diag([1.0, 2.0, 3.0]))
    parts = {
        f"{prefix}_{name}": getattr(matrix, name)
        for prefix, matrix in (("adj", adjacency), ("attr", features))
        for name in ("data", "indices", "indptr", "shape")
    }
    data = read_graph(save(**parts, labels=np.array([1, 0, 1])))
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert "edge_weight" not in data
    assert data.x.tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 3]]
    assert data.y.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "arrays, words",
    [
        ({"x": np.ones((3, 2))}, "no graph in it, only x"),
        ({"edge_index": np.ones((3, 3), dtype=int)}, "shape (3, 3)"),
        ({"edge_index": np.array([[0.5], [1.0]])}, "float64"),
        ({"edge_index": EDGES, "num_nodes": np.array(3)}, "ends at node 3"),
        ({"edge_index": EDGES - 1}, "ends at node -1"),
        ({"edge_index": np.array([[0], [10**12]])}, "the limit is"),
        ({"edge_index": np.array([[0], [2**64 - 1]], dtype=np.uint64)}, "ends at node 18446744073709551615"),
        ({"edge_index": np.empty((2, 0), dtype=int)}, "no edge and no number of nodes"),
        ({"edge_index": EDGES, "num_nodes": np.array(0)}, "no node"),
        ({"edge_index": EDGES, "num_nodes": np.array([1, 2])}, "num_nodes must be one integer"),
        (
            {"edge_index": EDGES, "x": np.array([[1.0, 2], [3, np.nan], [1, 1], [1, 1]])},
            "row 1, column 1 is nan",
        ),
        ({"edge_index": EDGES, "y": np.array([0, 1, -2, 0])}, "label of row 2 is -2"),
        ({"edge_index": EDGES, "x": np.ones((4, 2)), "y": np.ones(5)}, "labels must be 4"),
        ({"edge_index": EDGES, "ids": np.array([1, 2, 2, 3])}, "repeated"),
        ({"edge_index": EDGES, "ids": np.ones((4, 2))}, "ids must be a 1-D array"),
        ({"edge_index": EDGES, "ids": np.array([b"\xff", b"a", b"b", b"c"])}, "not UTF-8"),
        ({"edge_index": EDGES, "edge_weight": np.ones(2)}, "3 edges need 3 weights"),
        ({"edge_index": EDGES, "x": np.array([{}, {}, {}, {}])}, "pickled"),
        ({"shape": np.array([3, 4]), "data": np.ones(1), "indices": [0], "indptr": [0, 1, 1, 1]}, "3 x 4"),
        (
            {"shape": np.array([3, 3]), "data": np.ones(1), "indices": [9], "indptr": [0, 1, 1, 1]},
            "not valid",
        ),
        ({"shape": np.array([3, 3]), "data": np.ones(1), "indices": [0]}, "not valid"),
        ({"shape": np.array([3, 3]), "data": np.array(["a"])}, "real numbers"),
        ({"shape": np.array([3, 3]), "data": np.ones(1), "format": np.array(b"dok")}, "not valid"),
    ],
)
def test_bad_archives(save, arrays, words):
    path = save(**arrays)
    with pytest.raises(DataError) as caught:
        read_graph(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_damage(save):
    path = save(edge_index=EDGES, x=np.random.default_rng(0).random((40, 40)))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="not a valid NumPy archive"):
        read_graph(path)
