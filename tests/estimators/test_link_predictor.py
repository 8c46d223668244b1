import networkx as nx
import numpy as np
import pytest
from small_graphs import labelled_graph

import gyroformer as gf
from gyroformer.errors import UsageError

QUICK = {"epochs": 3, "dim": 8, "model_options": {"identifiers": 2}, "random_state": 0}
PAIRS = [(0, 1), (0, 20), (5, 17), (8, 9)]


@pytest.fixture(scope="module")
def predictor():
    return gf.LinkPredictor(**QUICK).fit(labelled_graph(nodes=30))


def test_probabilities(predictor):
    chances = predictor.predict_proba(PAIRS)
    odds = predictor.decision_function(np.array(PAIRS))
    assert chances.shape == (4, 2)
    np.testing.assert_allclose(chances.sum(1), 1, atol=1e-12)
    np.testing.assert_allclose(np.log(chances[:, 1] / chances[:, 0]), odds, atol=1e-9)
    assert predictor.predict(PAIRS).tolist() == (odds > 0).astype(int).tolist()
    assert predictor.classes_.tolist() == [0, 1]


def test_pairs_have_no_direction(predictor):
    turned = [(v, u) for u, v in PAIRS]
    np.testing.assert_allclose(
        predictor.decision_function(turned), predictor.decision_function(PAIRS), rtol=1e-5
    )


def test_score_is_the_area_under_the_curve_of_held_out_edges(predictor):
    split = predictor.split_
    pairs = np.concatenate((split.test.numpy(), split.test_non.numpy()), axis=1).T
    truth = np.repeat([1, 0], [split.test.shape[1], split.test_non.shape[1]])
    assert predictor.score() == pytest.approx(predictor.score(pairs, truth), abs=1e-12)
    assert predictor.score() == predictor.results_["test_auc"] / 100
    assert predictor.score(pairs, 1 - truth) == pytest.approx(1 - predictor.score(), abs=1e-12)


def test_communities_are_learned():
    graph = labelled_graph(nodes=40, classes=2)
    assert gf.LinkPredictor(epochs=40, random_state=0).fit(graph).score() > 0.6


def test_fractions_and_decoder_reach_the_job():
    fixed = {"decoder": "distance", "radius": 1.5, "learn_decoder": False, "degrees": False}
    found = gf.LinkPredictor(test_fraction=0.3, val_fraction=0.2, **fixed, **QUICK)
    found.fit(labelled_graph(nodes=30))
    about = found.split_.about()
    edges = about["train"] + about["val"] + about["test"]
    assert about["test"] == pytest.approx(0.3 * edges, abs=1)
    assert about["val"] == pytest.approx(0.2 * edges, abs=1)
    decoder = {"kind": "distance", "radius": 1.5, "temperature": 1.0}
    decoder |= {"degree_weight": None, "depth_weight": None}
    assert {**found.results_["decoder"], "calibration": 0} == {**decoder, "calibration": 0}


def test_a_learned_decoder_is_saved(tmp_path):
    fitted = gf.LinkPredictor(learn_decoder=True, **QUICK).fit(labelled_graph(nodes=30))
    assert fitted.results_["decoder"]["radius"] != 2.0
    fitted.save(tmp_path / "run")
    again = gf.LinkPredictor.load(tmp_path / "run")
    assert np.array_equal(again.decision_function(PAIRS), fitted.decision_function(PAIRS))


def test_ids_of_text():
    graph = nx.relabel_nodes(nx.karate_club_graph(), lambda node: f"member {node}")
    found = gf.LinkPredictor(**QUICK).fit(graph)
    assert found.predict_proba([("member 0", "member 33")]).shape == (1, 2)
    with pytest.raises(UsageError, match="did you mean 'member 3"):
        found.predict([("member 3x", "member 0")])


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda p: p.predict([(1, 2, 3)]), "two ids"),
        (lambda p: p.predict([1, 2]), "two ids"),
        (lambda p: p.score(PAIRS), "score needs y"),
        (lambda p: p.score(PAIRS, [1, 1, 1, 1]), "both at least once"),
    ],
)
def test_what_makes_no_sense_is_refused(call, said, predictor):
    with pytest.raises(UsageError, match=said):
        call(predictor)


def test_new_edges_are_none_of_the_graph_and_have_the_probabilities_of_predict():
    graph = nx.karate_club_graph()
    predictor = gf.LinkPredictor(epochs=30, random_state=0).fit(graph)
    found = predictor.new_edges(8)
    assert len(found) == 8
    assert not any(graph.has_edge(u, v) or u == v for u, v, _ in found)
    chances = predictor.predict_proba([(u, v) for u, v, _ in found])[:, 1]
    np.testing.assert_allclose([p for *_, p in found], chances, rtol=1e-4)
    # the same by looking at every pair
    others = [(u, v) for u in graph for v in graph if u < v and not graph.has_edge(u, v)]
    best = np.sort(predictor.predict_proba(others)[:, 1])[::-1][:8]
    np.testing.assert_allclose(chances, best, rtol=1e-4)
    assert {u for u, *_ in predictor.new_edges(3, node=33)} == {33}
    with pytest.raises(UsageError, match="no node has the id 99"):
        predictor.new_edges(3, node=99)


def inwards(nodes=200):
    """A directed graph whose nodes point to two nearer to its centre."""
    return nx.DiGraph([(u, v) for u in range(1, nodes) for v in (u // 2, u // 3)])


def test_directed_edges_are_likelier_than_their_reverse(tmp_path):
    found = gf.LinkPredictor(directed=True, epochs=200, random_state=0).fit(inwards())
    assert found.results_["test_direction"] > 85
    pairs = np.array([(u, u // 2) for u in range(10, 70)])
    ahead, back = found.decision_function(pairs), found.decision_function(pairs[:, ::-1])
    assert (ahead > back).mean() > 0.85
    known = set(inwards().edges)
    assert not any((u, v) in known for u, v, _ in found.new_edges(50))
    # the reverse of an edge is a pair without one
    assert any((v, u) in known for u, v, _ in found.new_edges(30_000))
    assert [u for u, _, _ in found.new_edges(5, node=7)] == [7] * 5
    found.save(tmp_path / "run")
    again = gf.LinkPredictor.load(tmp_path / "run")
    assert again.directed
    np.testing.assert_array_equal(again.decision_function(pairs), ahead)
    assert again.new_edges(9) == found.new_edges(9)


def test_samples_of_a_directed_graph_keep_their_order():
    pairs, truth = gf.LinkPredictor.samples(inwards(), directed=True)
    assert set(map(tuple, pairs[truth == 1].tolist())) == set(inwards().edges)
    assert not set(map(tuple, pairs[truth == 0].tolist())) & set(inwards().edges)
    found = gf.LinkPredictor(graph=inwards(), directed=True, **QUICK).fit(pairs, truth)
    assert found.split_.directed
