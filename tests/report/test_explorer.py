import dataclasses as dc

import numpy as np
import pytest
from evil_runs import EVIL, NODES
from unpacked import read_array, unpack

from gyroformer.errors import DataError
from gyroformer.report import explorer
from gyroformer.report.explorer import caption, explorer_data, select
from gyroformer.report.projection import draw_head
from gyroformer.report.record import RunGraph, read_run


def large(run, nodes, edges):
    rng = np.random.default_rng(0)
    ends = rng.integers(0, nodes, (2, edges))
    ends = np.unique(np.sort(ends[:, ends[0] != ends[1]], axis=0), axis=1)
    return dc.replace(
        run,
        ids=[str(i) for i in range(nodes)],
        embedding=rng.normal(size=(nodes, 2, 4)),
        graph=RunGraph(edges=ends, degree=np.bincount(ends.ravel(), minlength=nodes)),
    )


def test_a_small_graph_is_shown_whole(curved):
    chosen = select(curved)
    assert len(chosen.nodes) == NODES
    assert (chosen.edges == curved.graph.edges).all()
    assert chosen.note == ""


def test_a_graph_beyond_the_limits_is_sampled_and_it_is_said(curved, monkeypatch):
    monkeypatch.setattr(explorer, "MOST_NODES", 500)
    monkeypatch.setattr(explorer, "MOST_EDGES", 400)
    run = large(curved, 1_200, 6_000)
    chosen = select(run)
    assert (len(chosen.nodes), chosen.edges.shape[1]) == (500, 400)
    assert "500 of 1,200 nodes" in chosen.note
    assert "400 of the" in chosen.note
    again = select(run)
    assert (again.nodes == chosen.nodes).all()
    # the edges are edges of the graph, by the places of the nodes chosen
    known = set(map(tuple, run.graph.edges.T.tolist()))
    assert all((a, b) in known for a, b in chosen.nodes[chosen.edges].T.tolist())
    about, arrays = unpack(explorer_data([run]))
    assert about["graphs"][0]["ids"] == [run.ids[i] for i in chosen.nodes]
    assert "average precision" not in [column["name"] for column in about["runs"][0]["columns"]]
    degree = next(column for column in about["runs"][0]["columns"] if column["name"] == "degree")
    assert (read_array(arrays, degree["values"]) == run.graph.degree[chosen.nodes]).all()


def test_edges_and_positions_come_back(curved):
    about, arrays = unpack(explorer_data([curved]))
    graph, run = about["graphs"][0], about["runs"][0]
    assert graph["ids"][: len(EVIL)] == list(EVIL)
    counts, gaps = (read_array(arrays, graph[name]) for name in ("counts", "gaps"))
    source = np.repeat(np.arange(NODES), counts)
    edges, last = [], {}
    for node, gap in zip(source.tolist(), gaps.tolist(), strict=True):
        last[node] = last.get(node, node) + gap
        edges.append((node, last[node]))
    assert edges == list(map(tuple, curved.graph.edges.T.tolist()))
    for number, head in enumerate(run["heads"]):
        drawing = draw_head(curved.embedding[:, number], curved.curvature[number])
        for name, side in (("x", 0), ("y", 1)):
            found = read_array(arrays, head[name])
            np.testing.assert_allclose(found, drawing.vectors[:, side], atol=1e-6 * drawing.reach)
        assert (head["kind"], head["k"]) == (drawing.kind, curved.curvature[number])


def test_runs_on_one_graph_share_it(curved, runs, labelled):
    flat = read_run(runs["flat"], "flat")
    about, _ = unpack(explorer_data([curved, flat, labelled]))
    assert len(about["graphs"]) == 1  # the same ids and edges in all three
    assert [run["graph"] for run in about["runs"]] == [0, 0, 0]
    other = dc.replace(flat, graph=RunGraph(missing="gone"))
    about, _ = unpack(explorer_data([curved, other]))
    assert len(about["graphs"]) == 2
    assert about["runs"][1]["note"] == "gone"


def test_nodes_are_coloured_by_what_counts(curved, labelled):
    about, _ = unpack(explorer_data([curved, labelled]))
    assert [run["colour"] for run in about["runs"]] == ["degree", "class"]
    bare = dc.replace(labelled, graph=dc.replace(labelled.graph, labels=None))
    assert unpack(explorer_data([bare]))[0]["runs"][0]["colour"] == "predicted class"
    names = [column["name"] for column in about["runs"][1]["columns"]]
    wanted = [
        "class",
        "predicted class",
        "probability",
        "right or wrong",
        "part",
        "degree",
        "average precision",
    ]
    assert names == wanted


def test_more_columns_are_joined_by_id(curved):
    data = [("height", {"node-3": "1.5", "node-4": "-2"}), ("kind", {"node-3": "b", "node-5": "a"})]
    about, arrays = unpack(explorer_data([curved], node_data=data, source="more.csv"))
    height, kind = about["runs"][0]["columns"][-2:]
    assert read_array(arrays, height["values"])[3:5] == pytest.approx([1.5, -2])
    assert len(read_array(arrays, height["absent"])) == NODES - 2
    assert kind["categories"] == ["a", "b"]
    assert read_array(arrays, kind["values"])[2:6].tolist() == [-1, 1, -1, 0]
    with pytest.raises(DataError, match=r"more.csv: no id in it is a node of the run \('other'"):
        explorer_data([curved], node_data=[("height", {"other": "1"})], source="more.csv")


@pytest.mark.parametrize("k, said", [(-1.0, "Poincaré"), (0.0, "Plane"), (1.0, "opposite")])
def test_captions_name_the_map_and_what_is_lost(k, said):
    wide = draw_head(np.random.default_rng(0).normal(size=(50, 8)) * 0.3, k)
    assert said in caption(wide, 8)
    assert f"{wide.fraction:.0%} of the squared length lies in these 2 of 8 directions" in caption(wide, 8)
    points = np.random.default_rng(0).normal(size=(50, 2)) * 0.2
    assert "all directions are shown" in caption(draw_head(points, k), 2)
    assert "nothing of the curvature" in caption(draw_head(points, 1e-6), 2)
