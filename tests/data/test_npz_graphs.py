import numpy as np
import pytest
import torch
from scipy import sparse

from gyroformer.data.homophily import homophily, published_edges
from gyroformer.data.load import load
from gyroformer.data.npz_graphs import read_npz_graph
from gyroformer.errors import DataError


def made_npz(path, **changes):
    adjacency = sparse.csr_array(np.array([[0, 1, 0], [0, 0, 1], [0, 1, 1]], dtype=np.float32))
    attributes = sparse.csr_array(np.array([[0, 3.5], [1, 0], [0, 0]], dtype=np.float32))
    parts = {"labels": np.array([0, 1, 1]), "idx_to_class": np.array([{"a": 1}], dtype=object)}
    for name, matrix in (("adj", adjacency), ("attr", attributes)):
        parts |= {f"{name}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr", "shape")}
    np.savez_compressed(path, **(parts | changes))


def test_the_public_layout_is_read_and_its_pickled_names_are_not(tmp_path):
    made_npz(tmp_path / "a.npz")
    listing = read_npz_graph(tmp_path / "a.npz")
    np.testing.assert_array_equal(listing.x.toarray(), [[0, 1], [1, 0], [0, 0]])
    assert published_edges(listing, both_ways=True)[0].size == 4
    assert homophily(listing, both_ways=True) == 0.5


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"labels": np.array([0, 1])}, "labels of shape \\(2,\\) for 3 nodes"),
        ({"labels": np.array([{}, 1, 2], dtype=object)}, "pickle"),
        ({"adj_indices": np.array([1, 2, 1, 9])}, "not valid"),
        ({"attr_shape": np.array([3])}, "not valid"),
    ],
)
def test_broken_files_are_one_line(tmp_path, changes, words):
    made_npz(tmp_path / "a.npz", **changes)
    with pytest.raises(DataError, match=words) as error:
        read_npz_graph(tmp_path / "a.npz")
    assert "\n" not in str(error.value)


@pytest.mark.data
@pytest.mark.parametrize(
    "name, path",
    [
        ("computers", "amazon/Computers/raw/amazon_electronics_computers.npz"),
        ("cs", "coauthor/CS/raw/ms_academic_cs.npz"),
    ],
)
def test_equal_to_torch_geometric(real, name, path):
    from torch_geometric.io import read_npz

    theirs, ours = read_npz(str(real / path)), load(name, folder=real)
    for key in ("x", "y", "edge_index"):
        assert torch.equal(ours[key], theirs[key]), key
