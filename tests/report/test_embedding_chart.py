import dataclasses as dc

import numpy as np
import pytest
from evil_runs import NODES

from gyroformer.report import embedding_chart
from gyroformer.report.embedding_chart import caption, head_chart, select
from gyroformer.report.projection import draw_head
from gyroformer.report.record import RunGraph, read_run


@pytest.fixture(scope="module")
def curved(runs):
    return read_run(runs["curved"], "curved")


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
    assert chosen.edges.shape[1] == curved.graph.edges.shape[1]
    assert chosen.note == ""


def test_a_large_graph_is_sampled_and_it_is_said(curved):
    run = large(curved, 12_000, 60_000)
    chosen = select(run)
    assert len(chosen.nodes) == embedding_chart.MOST_NODES
    assert chosen.edges.shape[1] == embedding_chart.MOST_EDGES
    assert "5,000 of 12,000 nodes" in chosen.note
    assert "4,000 of the" in chosen.note
    again = select(run)
    assert (again.nodes == chosen.nodes).all()
    assert (again.edges == chosen.edges).all()
    # the edges are edges of the graph, by the places of the nodes chosen
    known = set(map(tuple, run.graph.edges.T.tolist()))
    assert all((a, b) in known for a, b in chosen.nodes[chosen.edges].T.tolist())


def test_marks_are_the_nodes_with_degree_and_name(curved):
    chart, drawing = head_chart(curved, 0, select(curved))
    lines, marks = chart["data"]
    assert lines["mode"] == "lines"
    assert marks["text"][5] == f"node-5<br>{curved.graph.degree[5]} neighbours"
    assert marks["x"] == pytest.approx(drawing.points[:, 0].tolist(), abs=1e-4)
    assert marks["marker"]["color"][0] == pytest.approx(np.log10(curved.graph.degree[0]), abs=1e-3)
    assert lines["x"].count(None) == curved.graph.edges.shape[1]


@pytest.mark.parametrize("k, circles, said", [(-1.0, 1, "Poincaré"), (0.0, 0, "Plane"), (1.0, 2, "opposite")])
def test_the_map_fits_the_curvature(curved, k, circles, said):
    rng = np.random.default_rng(0)
    run = dc.replace(curved, embedding=rng.normal(size=(NODES, 2, 4)) * 0.4, curvature=np.array([k, k]))
    chart, drawing = head_chart(run, 1, select(run))
    assert len(chart["layout"].get("shapes", [])) == circles
    assert chart["layout"]["yaxis"]["scaleanchor"] == "x"
    assert said in caption(drawing, 4)


def test_captions_say_what_is_lost():
    points = np.random.default_rng(0).normal(size=(50, 2)) * 0.2
    assert "all of it is shown" in caption(draw_head(points, -1.0), 2)
    wide = draw_head(np.random.default_rng(0).normal(size=(50, 8)), -1.0)
    assert f"{wide.fraction:.0%} of the squared length in these 2 of 8 directions" in caption(wide, 8)
    assert "° around the middle" in caption(draw_head(points, 1.0), 2)
    assert "nothing of the curvature" in caption(draw_head(points, 1e-6), 2)
