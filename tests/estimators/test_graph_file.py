import numpy as np
import pytest
import torch
from small_graphs import labelled_graph

from gyroformer.errors import CorruptFileError, DataError
from gyroformer.estimators.graph_file import GRAPH, read_graph_file, write_graph
from gyroformer.estimators.inputs import graph_of
from gyroformer.estimators.node_split import given_split


def test_a_graph_comes_back_as_it_was(tmp_path):
    data = labelled_graph(nodes=20)
    data.ids = [*range(10), *(f"n{i}" for i in range(10))]
    data.edge_weight = torch.rand(data.edge_index.size(1))
    data = graph_of(data)
    data.y[3] = -1
    split = given_split((np.arange(12),), data.y.numpy(), 0.3, seed=0)
    write_graph(tmp_path, data, {"classes_": np.array(["ä", "b"])}, split)
    again, arrays, found = read_graph_file(tmp_path)
    for key in ("edge_index", "edge_weight", "x", "y"):
        assert torch.equal(again[key], data[key])
    assert again.ids == data.ids
    assert arrays["classes_"].tolist() == ["ä", "b"]
    assert (found.name, found.sha256) == ("given", split.sha256)


def test_no_file_and_a_damaged_one(tmp_path):
    assert read_graph_file(tmp_path) is None
    (tmp_path / GRAPH).write_bytes(b"PK no archive")
    with pytest.raises(CorruptFileError, match=GRAPH):
        read_graph_file(tmp_path)
    write_graph(tmp_path, graph_of(labelled_graph()), {}, None)
    whole = (tmp_path / GRAPH).read_bytes()
    (tmp_path / GRAPH).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorruptFileError, match=GRAPH):
        read_graph_file(tmp_path)


def test_objects_are_not_pickled(tmp_path):
    with pytest.raises(DataError, match="pickle the estimator"):
        write_graph(
            tmp_path, graph_of(labelled_graph()), {"classes_": np.array([1, "a"], dtype=object)}, None
        )
