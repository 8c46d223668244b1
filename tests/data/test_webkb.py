import shutil

import numpy as np
import pytest
import torch
from made_datasets import webkb_files

from gyroformer.data.homophily import homophily
from gyroformer.data.load import load
from gyroformer.data.webkb import read_actor, read_webkb
from gyroformer.errors import DataError


def test_rows_go_where_their_number_says(tmp_path):
    webkb_files(tmp_path, rows=["2\t0,1,1\t1", "0\t1,0,0\t0", "1\t0,0,0\t0"])
    listing = read_webkb(tmp_path, name="texas")
    np.testing.assert_array_equal(listing.x, [[1, 0, 0], [0, 0, 0], [0, 1, 1]])
    np.testing.assert_array_equal(listing.y, [0, 0, 1])
    # 0-1, 1-0 and the loop 1-1 join equal labels, 2-0 does not
    assert homophily(listing, both_ways=False) == 0.75


def test_actor_has_word_numbers(tmp_path):
    webkb_files(tmp_path, rows=["1\t3\t0", "0\t0,2\t1"], edges=[(0, 1)])
    listing = read_actor(tmp_path)
    np.testing.assert_array_equal(listing.x, [[1, 0, 1, 0], [0, 0, 0, 1]])


@pytest.mark.parametrize(
    "rows, words",
    [
        (["0\t1,0\t0", "1\t1,0"], "label.txt:3: expected 3 fields"),
        (["0\t1,0\t0\t1"], "label.txt:2: expected 3 fields"),
        (["0\t1,0\t0", "1\t1,x\t0"], "label.txt:3: a feature is not an integer"),
        (["0\t1,0\t0", "1\t1\t0"], "different numbers of features"),
        (["0\t1,0\t0", "0\t1,0\t0"], "each once"),
        (["0\t1,0\t0", "1\t1,-1\t0"], "negative"),
        (["0\t1,0\tnan"], "label.txt:2: expected 3 fields"),
    ],
)
def test_broken_rows_are_named(tmp_path, rows, words):
    webkb_files(tmp_path, rows=rows, edges=[(0, 0)])
    with pytest.raises(DataError, match=words):
        read_webkb(tmp_path, name="texas")


@pytest.mark.parametrize("name", ["texas", "cornell"])
def test_an_edge_to_nowhere_is_named(tmp_path, name):
    webkb_files(tmp_path, edges=[(0, 1), (1, 3)])
    with pytest.raises(DataError, match=r"out1_graph_edges\.txt: edge 1 ends at node 3"):
        read_webkb(tmp_path, name=name)


def test_cornell_with_the_table_of_texas_is_refused_by_its_homophily(tmp_path):
    # 61 of 200 edges join equal labels: 0.305, as in the copies made before 2022
    edges = [(0, 2 + i) for i in range(61)] + [(1, 2 + i) for i in range(139)]
    webkb_files(tmp_path, edges=edges, labels=[0, 1, *[0] * 199])
    assert homophily(read_webkb(tmp_path, name="texas"), both_ways=False) == pytest.approx(0.305)
    with pytest.raises(DataError, match="before July 2022"):
        read_webkb(tmp_path, name="cornell")


@pytest.mark.data
def test_cornell_with_the_table_of_texas_is_refused_by_its_sum(real, tmp_path):
    shutil.copy(real / "webkb/cornell/raw/out1_graph_edges.txt", tmp_path)
    shutil.copy(real / "webkb/texas/raw/out1_node_feature_label.txt", tmp_path)
    with pytest.raises(DataError, match="before July 2022"):
        read_webkb(tmp_path, name="cornell")


@pytest.mark.data
@pytest.mark.parametrize("name", ["texas", "cornell", "wisconsin", "actor"])
def test_equal_to_torch_geometric(real, tmp_path, name):
    from torch_geometric.datasets import Actor, WebKB
    from torch_geometric.utils import remove_self_loops

    place = "actor" if name == "actor" else f"webkb/{name}"
    shutil.copytree(real / place / "raw", tmp_path / place / "raw")
    dataset = Actor(str(tmp_path / "actor")) if name == "actor" else WebKB(str(tmp_path / "webkb"), name)
    theirs = dataset[0]
    ours = load(name, folder=real, directed=True)
    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.y, theirs.y)
    assert torch.equal(ours.edge_index, remove_self_loops(theirs.edge_index)[0])
