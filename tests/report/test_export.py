import dataclasses as dc
import sys
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest
from evil_runs import EVIL, NODES

from gyroformer.errors import DataError, MissingPartError, UsageError
from gyroformer.report.closeness import pair_distances
from gyroformer.report.export import FORMATS, export_run
from gyroformer.report.record import RunGraph, read_run


def test_every_format_is_written(curved, tmp_path):
    for kind in FORMATS:
        files = export_run(curved, tmp_path / "deep" / f"run.{kind}", kind)
        assert all(file.stat().st_size > 500 for file in files)
    with pytest.raises(UsageError, match="choose html, png, svg, gexf, tsv"):
        export_run(curved, tmp_path / "run.pdf", "pdf")


def test_a_still_shows_every_head(curved, runs, tmp_path):
    (svg,) = export_run(curved, tmp_path / "run.svg", "svg")
    (png,) = export_run(curved, tmp_path / "run.png", "png")
    assert png.read_bytes().startswith(b"\x89PNG")
    picture = ElementTree.parse(svg)
    points = [one for one in picture.iter("{http://www.w3.org/2000/svg}use") if one.get("x")]
    assert len(points) >= 2 * NODES
    (again,) = export_run(curved, tmp_path / "again.svg", "svg")
    assert len(again.read_bytes()) == len(svg.read_bytes())
    bare = dc.replace(read_run(runs["labelled"], "x"), graph=RunGraph(missing="gone"))
    assert export_run(bare, tmp_path / "bare.png", "png")


def test_a_still_needs_matplotlib(curved, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingPartError, match="matplotlib"):
        export_run(curved, tmp_path / "run.png", "png")


def test_gephi_gets_ids_columns_and_lengths(runs, tmp_path):
    run = read_run(runs["labelled"], "labelled")
    run = dc.replace(run, ids=[*EVIL, "a\nb\x01", *run.ids[4:]])
    (file,) = export_run(run, tmp_path / "run.gexf", "gexf")
    graph = nx.read_gexf(file, version="1.3")
    assert graph.number_of_nodes() == NODES
    assert [graph.nodes[str(i)]["label"] for i in range(4)] == [*EVIL, "a\nb\ufffd"]
    assert graph.nodes["7"]["class"] == "class 1"
    assert graph.nodes["7"]["degree"] == run.graph.degree[7]
    assert set(graph.nodes["7"]["viz"]["position"]) == {"x", "y", "z"}
    far = pair_distances(run.positions, run.graph.edges)
    for (u, v), want in zip(run.graph.edges.T.tolist(), far.tolist(), strict=True):
        assert graph.edges[str(u), str(v)]["distance in the embedding"] == pytest.approx(want, rel=1e-8)


def test_the_projector_gets_two_tables_of_as_many_rows(curved, tmp_path):
    table = tmp_path / "more.csv"
    table.write_text("node,kind\nnode-3,x\nnode-4,y\n")
    odd = dc.replace(curved, ids=["a\tb\n", *curved.ids[1:]])
    vectors, metadata = export_run(odd, tmp_path / "run.tsv", "tsv", node_data=table)
    assert (vectors.name, metadata.name) == ("run.vectors.tsv", "run.metadata.tsv")
    numbers = np.loadtxt(vectors, delimiter="\t")
    np.testing.assert_allclose(numbers, curved.embedding.reshape(NODES, -1), rtol=1e-8)
    lines = metadata.read_text(encoding="utf-8").splitlines()
    assert len(lines) == NODES + 1
    assert lines[0].split("\t")[0] == "id"
    assert lines[0].endswith("\tkind")
    assert lines[1].split("\t")[0] == "a b"
    assert {line.count("\t") for line in lines} == {lines[0].count("\t")}


def test_a_place_that_cannot_be_written_is_said(curved, tmp_path):
    (tmp_path / "taken.gexf").mkdir()
    with pytest.raises(DataError, match="cannot be written"):
        export_run(curved, tmp_path / "taken.gexf", "gexf")
