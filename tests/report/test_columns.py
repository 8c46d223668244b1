import dataclasses as dc

import numpy as np
import pytest

from gyroformer.errors import DataError
from gyroformer.report.columns import matched, run_columns
from gyroformer.report.node_data import read_node_data
from gyroformer.report.record import RunGraph, read_run


def by_name(columns):
    return {column.name: column for column in columns}


def test_classes_parts_and_structure_are_columns(runs):
    run = read_run(runs["labelled"], "labelled")
    found = by_name(run_columns(run, np.ones(len(run.ids))))
    assert (found["class"].values == run.graph.labels).all()
    assert (found["predicted class"].values == run.predicted).all()
    right = found["right or wrong"].values
    assert ((right == 0) == (run.graph.labels == run.predicted)).all()
    part = found["part"]
    assert part.categories == ["training", "validation", "test"]
    assert (part.values[run.held_out.test.numpy()] == 2).all()
    assert found["probability"].values.min() >= 1 / 3
    assert "component" not in found  # the graph is in one piece
    two = dc.replace(run, graph=RunGraph(edges=np.array([[0], [1]]), degree=np.zeros(len(run.ids))))
    assert by_name(run_columns(two, None))["component"].values[:3].tolist() == [0, 0, 1]


def test_unlabelled_nodes_are_neither_right_nor_wrong(runs):
    run = read_run(runs["labelled"], "labelled")
    labels = run.graph.labels.copy()
    labels[7] = -1
    some = dc.replace(run, graph=dc.replace(run.graph, labels=labels))
    assert by_name(run_columns(some, None))["right or wrong"].values[7] == -1


def test_a_table_is_read_by_its_ids(tmp_path):
    file = tmp_path / "more.csv"
    file.write_text('size,node,note\n1,a,"x, y"\n,b,\n3,c,z\n')
    columns = read_node_data(file)
    found = by_name(matched(columns, ["b", "a", "unknown"], "more.csv"))
    assert np.isnan(found["size"].values[[0, 2]]).all()
    assert found["size"].values[1] == 1
    assert found["size"].whole
    assert found["note"].categories == ["x, y"]
    assert found["note"].values.tolist() == [-1, 0, -1]


def test_what_is_wrong_with_a_table_is_said(tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        read_node_data(tmp_path / "none.csv")
    file = tmp_path / "more.csv"
    file.write_text("node,size\na,1\na,2\n")
    with pytest.raises(DataError, match=r"more.csv:3: the node 'a' comes twice"):
        read_node_data(file)
