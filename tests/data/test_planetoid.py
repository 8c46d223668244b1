import shutil

import numpy as np
import pytest
import torch
from made_datasets import planetoid_files, python2_pickle

from gyroformer.data.homophily import published_edges
from gyroformer.data.load import load
from gyroformer.data.planetoid import read_planetoid
from gyroformer.errors import DataError


@pytest.mark.parametrize("gap", [False, True])
def test_test_nodes_get_their_own_rows(tmp_path, gap):
    x, y, test = planetoid_files(tmp_path, gap=gap)
    listing = read_planetoid(tmp_path, "cora")
    np.testing.assert_array_equal(listing.x.toarray(), x)
    np.testing.assert_array_equal(listing.y, y)
    assert {part: int(mask.sum()) for part, mask in listing.masks.items()} == {
        "train": 5,
        "val": 500,
        "test": 4,
    }
    np.testing.assert_array_equal(np.flatnonzero(listing.masks["test"]), np.sort(test))
    # 510 in the ring and 0-512, both ways; the loop and the duplicate are listed but not published
    assert listing.source.size == 513
    assert published_edges(listing, both_ways=True)[0].size == 1022


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("test.index", b"510\nfive\n", "test.index:2: expected a node index"),
        ("test.index", b"", "empty"),
        ("test.index", b"510\n511\n", "do not fit together"),
        ("allx", python2_pickle(np.eye(3)), "expected a sparse matrix"),
        ("ally", python2_pickle([1, 2]), "not loaded|expected an array"),
        ("graph", python2_pickle([1, 2]), "expected lists of neighbours"),
        ("y", python2_pickle(np.eye(3, dtype=np.int32)[np.zeros(400, dtype=int)]), "leave fewer than 500"),
    ],
)
def test_broken_files_are_named(tmp_path, name, content, words):
    planetoid_files(tmp_path)
    (tmp_path / f"ind.cora.{name}").write_bytes(content)
    with pytest.raises(DataError, match=words) as error:
        read_planetoid(tmp_path, "cora")
    assert str(tmp_path) in str(error.value)


@pytest.mark.data
@pytest.mark.parametrize("name", ["Cora", "CiteSeer", "PubMed"])
def test_equal_to_torch_geometric(real, tmp_path, name):
    from torch_geometric.datasets import Planetoid

    shutil.copytree(real / "planetoid" / name / "raw", tmp_path / name / "raw")
    theirs = Planetoid(str(tmp_path), name)[0]
    ours = load(name.lower(), folder=real)
    for key in ("x", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(ours[key], theirs[key]), key
    # the same edges; theirs are sorted by the second node
    assert torch.equal(ours.edge_index, theirs.edge_index.flip(0))
