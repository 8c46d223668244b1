"""What is computed for the figures below the explorer: the graph's structure, classes, links."""

import dataclasses as dc

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.metrics import classification_report, confusion_matrix

from gyroformer.graphs.analysis import space_fit
from gyroformer.graphs.analysis.space_fit import SpaceFit
from gyroformer.report import structure
from gyroformer.report.classes import (
    Judged,
    calibration,
    calibration_chart,
    confusion,
    confusion_table,
    judged,
)
from gyroformer.report.links import missing_edges, missing_table, roc, roc_chart
from gyroformer.report.record import RunGraph
from gyroformer.report.structure import curvature_chart, distance_chart, fitted_space, own_curvature


def test_distances_are_gathered_by_steps(curved):
    chart = distance_chart(curved)
    graph = nx.Graph(curved.graph.edges.T.tolist())
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    from gyroformer.report.closeness import pair_distances

    pairs = np.array([(a, b) for a in lengths for b in lengths[a] if lengths[a][b] == 3]).T
    want = np.quantile(pair_distances(curved.positions, pairs), [0.1, 0.25, 0.5, 0.75, 0.9])
    wide, half, median = chart["panels"][0]["series"]
    at = median["x"].index(3)
    got = [wide["low"][at], half["low"][at], median["y"][at], half["high"][at], wide["high"][at]]
    assert got == pytest.approx(want.tolist(), abs=1e-5)
    assert distance_chart(dc.replace(curved, graph=RunGraph(missing="gone"))) is None


def test_the_graphs_own_curvature_stands_beside_the_learned_ones(curved, monkeypatch):
    own = own_curvature(curved)
    assert own.exact
    chart = curvature_chart(own, [-1.0, 0.5])
    assert sum(chart["values"]) == pytest.approx(100, abs=1e-3)
    assert [mark["x"] for mark in chart["marks"]] == [own.mean, -1.0, 0.5]
    assert [mark["colour"] for mark in chart["marks"]] == ["ink", "hyperbolic", "spherical"]
    monkeypatch.setattr(structure, "EXACT_SECONDS", -1.0)
    assert own_curvature(curved).triples == own.triples  # a sample of the nodes, of every triple
    single = RunGraph(edges=np.array([[0], [1]]), degree=np.array([1, 1]))
    assert own_curvature(dc.replace(curved, graph=single)) is None


def test_the_fitted_space_is_said_in_a_sentence(curved, monkeypatch):
    assert "at least 48 are needed" in fitted_space(curved)  # it has 40
    found = SpaceFit(-0.25, -0.3, -0.2, 1e-4, (-0.25,), ((0.0, 0.2),), 0.2, 0.1, 2, (8,), 300, 4.0, True)
    monkeypatch.setattr(space_fit, "fit_space", lambda edges, nodes: found)
    said = fitted_space(curved)
    assert "better embedded curved: hyperbolic in 2 dimensions, bending over 2.0 hops" in said
    assert "95 % interval -0.3000 to -0.2000" in said
    assert fitted_space(dc.replace(curved, graph=RunGraph(missing="gone"))) == ""


def test_classes_are_judged_on_the_test_nodes(labelled):
    found = judged(labelled)
    test = labelled.held_out.test.numpy()
    assert found.what == "the test nodes"
    assert (found.truth == labelled.graph.labels[test]).all()
    assert (confusion(found) == confusion_matrix(found.truth, found.found, labels=[0, 1, 2])).all()
    f1 = 100 * float((found.truth == found.found).mean())
    assert f1 == pytest.approx(labelled.results["test_f1"])
    told = judged(dc.replace(labelled, held_out=None))
    assert len(told.truth) == len(labelled.ids)
    assert "not known" in told.what
    assert judged(dc.replace(labelled, graph=dc.replace(labelled.graph, labels=None))) is None


def test_the_matrix_has_scores_and_escapes_names():
    truth, found = np.array([0, 0, 1, 1, 1, 2]), np.array([0, 1, 1, 1, 0, 2])
    given = Judged(truth, found, np.full(6, 0.5), ["<b>", "one", "two"], "some")
    table = confusion_table(confusion(given), given.names)
    want = classification_report(truth, found, output_dict=True)["1"]
    for score in (want["precision"], want["recall"], want["f1-score"]):
        assert f'<td class="score">{100 * score:.1f}</td>' in table
    assert "<b>" not in table
    assert "too many" in confusion_table(np.eye(40, dtype=int), [str(i) for i in range(40)])


def test_calibration_compares_what_is_said_with_what_is_right():
    probability = np.array([0.95] * 10 + [0.55] * 10)
    truth = np.array([0] * 9 + [1] + [0] * 5 + [1] * 5)
    given = Judged(truth, np.zeros(20, dtype=int), probability, ["a", "b"], "some")
    said, true, error = calibration(given)
    assert said == pytest.approx([0.55, 0.95])
    assert true == pytest.approx([0.5, 0.9])
    assert error == pytest.approx(0.05)
    assert calibration_chart(given)["panels"][0]["series"][0]["y"] == true
    sure = dc.replace(given, probability=np.ones(20))
    assert calibration(sure)[0] == [1.0]


def test_the_curve_of_links_has_the_area_that_was_reported(linked):
    false, true = roc(linked)
    area = float(np.trapezoid(true, false))
    assert 100 * area == pytest.approx(linked.results["test_auc"], abs=1e-3)
    chart = roc_chart(linked)["panels"][0]["series"][0]
    assert (chart["x"][0], chart["y"][-1]) == (0, 1)
    assert roc_chart(dc.replace(linked, held_out=None)) is None


def test_missing_edges_are_the_likeliest_pairs_without_one(linked):
    found = missing_edges(linked, 5)
    squared = linked.positions.squared_dist_rows(torch.arange(len(linked.ids))).double().numpy()
    joined = np.eye(len(linked.ids), dtype=bool)
    joined[tuple(linked.graph.edges)] = joined[tuple(linked.graph.edges[::-1])] = True
    about = linked.results["decoder"]
    far = squared if about["kind"] == "fermi-dirac" else np.sqrt(squared.clip(min=0))
    logit = (about["radius"] - far) / about["temperature"]
    degree = np.log1p(np.bincount(linked.held_out.train.numpy().ravel(), minlength=len(linked.ids)))
    logit += (about["degree_weight"] or 0.0) * (degree[:, None] + degree)
    scale, shift = about["calibration"]
    chance = 1 / (1 + np.exp(-(scale * logit + shift)))
    want = np.sort(chance[np.triu(~joined)])[::-1][:5]
    assert [one.probability for one in found] == pytest.approx(want.tolist(), abs=1e-4)
    first = found[0]
    row, column = linked.ids.index(first.source), linked.ids.index(first.target)
    assert first.distance == pytest.approx(np.sqrt(squared[row, column]), abs=1e-4)
    assert "&lt;" in missing_table([dc.replace(first, source="<b>")])
    assert missing_edges(dc.replace(linked, graph=RunGraph(missing="gone"))) == []
