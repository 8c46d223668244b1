import numpy as np
import pytest
import torch
from small_graphs import labelled_graph

from gyroformer.data.load import load
from gyroformer.errors import CorruptFileError, DataError
from gyroformer.estimators.inputs import graph_of
from gyroformer.estimators.node_split import given_split
from gyroformer.graphs.build import graph_from_edges
from gyroformer.runs.graph import GRAPH, changed_parts, graph_checksums, read_graph, write_graph
from gyroformer.settings import GraphOptions


def test_a_graph_comes_back_as_it_was(tmp_path):
    data = labelled_graph(nodes=20)
    data.ids = [*range(10), *(f"n{i}" for i in range(10))]
    data.edge_weight = torch.rand(data.edge_index.size(1))
    data = graph_of(data)
    data.y[3] = -1
    split = given_split((np.arange(12),), data.y.numpy(), 0.3, seed=0)
    more = {"classes_": np.array(["ä", "b"])}
    write_graph(tmp_path, data, options=GraphOptions(), more=more, split=split)
    found = read_graph(tmp_path)
    for key in ("edge_index", "edge_weight", "x", "y"):
        assert torch.equal(found.data[key], data[key])
    assert found.data.ids == data.ids
    assert found.more["classes_"].tolist() == ["ä", "b"]
    assert (found.split.name, found.split.sha256) == ("given", split.sha256)
    assert found.checksums == graph_checksums(data) == graph_checksums(found.data)


def test_a_directed_graph_stays_directed(tmp_path):
    data = graph_from_edges(np.array([0, 1, 2]), np.array([1, 2, 0]), num_nodes=3, directed=True)
    write_graph(tmp_path, data, options=GraphOptions(directed=True))
    assert torch.equal(read_graph(tmp_path).data.edge_index, data.edge_index)


def test_features_that_were_not_used_are_kept_as_a_checksum_only(tmp_path):
    data = graph_of(labelled_graph())
    write_graph(tmp_path, data, options=GraphOptions(), features=False)
    found = read_graph(tmp_path)
    assert found.data.x is None
    assert found.checksums["features"] == graph_checksums(data)["features"]


@pytest.mark.parametrize(
    "change, part", [("ids", "nodes"), ("edges", "edges"), ("x", "features"), ("y", "labels")]
)
def test_what_changed_is_named(change, part):
    before, now = graph_of(labelled_graph()), graph_of(labelled_graph())
    assert changed_parts(graph_checksums(before), graph_checksums(now)) == []
    match change:
        case "ids":
            now.ids = [f"x{i}" for i in now.ids]
        case "edges":
            now.edge_index = now.edge_index[:, 2:]
        case "x":
            now.x = now.x + 1e-3
        case "y":
            now.y = None
    assert changed_parts(graph_checksums(before), graph_checksums(now)) == [part]


@pytest.mark.data
def test_a_data_set_is_kept_by_its_name(tmp_path, data_folder):
    data = load("texas")
    write_graph(tmp_path, data, options=GraphOptions(source="texas"))
    assert (tmp_path / GRAPH).stat().st_size < 2000
    assert graph_checksums(read_graph(tmp_path).data) == graph_checksums(data)


def test_no_file_and_a_damaged_one(tmp_path):
    assert read_graph(tmp_path) is None
    (tmp_path / GRAPH).write_bytes(b"PK no archive")
    with pytest.raises(CorruptFileError, match=GRAPH):
        read_graph(tmp_path)
    write_graph(tmp_path, graph_of(labelled_graph()), options=GraphOptions())
    whole = (tmp_path / GRAPH).read_bytes()
    (tmp_path / GRAPH).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorruptFileError, match=GRAPH):
        read_graph(tmp_path)


def test_objects_are_not_pickled(tmp_path):
    more = {"classes_": np.array([1, "a"], dtype=object)}
    with pytest.raises(DataError, match="pickle the estimator"):
        write_graph(tmp_path, graph_of(labelled_graph()), options=GraphOptions(), more=more)
