"""Which space fits a graph: estimates on graphs of known spaces, the interval, the test of flatness."""

import dataclasses as dc

import networkx as nx
import numpy as np
import pytest
import torch

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.adjacency import simple_adjacency
from gyroformer.graphs.analysis import regions, space_fit, stress
from gyroformer.graphs.analysis.space_fit import SpaceFit, fit_space
from gyroformer.testing.spaces import lattice, random_geometric


def edges_of(graph):
    return np.array(graph.edges).T, graph.number_of_nodes()


def sets_at(curvature, seed=0, count=3, nodes=16):
    """Return sets whose distances are those of a space, with an offset for each node."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(count, nodes, 2, generator=generator, dtype=torch.float64)
    offset = 0.3 + 0.1 * torch.randn(count, nodes, generator=generator, dtype=torch.float64)
    k = torch.full((1, 1, 1), curvature, dtype=torch.float64)
    q = stress._quotients(*stress._half_angles(points, k))
    far = 2 * q.clamp(min=1e-300).sqrt() * stress.arsin_ratio(k * q)
    hops = far + offset[:, :, None] + offset[:, None]
    hops[:, torch.arange(nodes), torch.arange(nodes)] = 0
    return stress.Sets(hops, ~torch.eye(nodes, dtype=torch.bool).expand_as(hops)), points, offset


@pytest.mark.parametrize("curvature", [-0.8, 0.0, 0.2])
def test_distances_of_a_space_leave_nothing_over(curvature, monkeypatch):
    monkeypatch.setattr(stress, "STEPS", 40)
    monkeypatch.setattr(stress, "TOLERANCE", 0.0)
    sets, points, offset = sets_at(curvature)
    shaken = points + 0.05 * torch.randn(points.shape, generator=torch.Generator().manual_seed(1))
    found = stress.fit(sets, curvature, shaken, offset)
    assert found.stress.max() < 1e-8
    assert stress.fit(sets, curvature - 0.3, shaken, offset).stress.min() > 1e-4


@pytest.mark.parametrize("curvature", [-0.5, 0.0, 0.2])
def test_derivatives_are_those_of_the_stress(curvature):
    sets, points, offset = sets_at(-0.3)
    points = points + 0.1
    state = stress._state(sets, sets.weight, points, offset, curvature)
    step = 1e-6
    for node, axis in ((0, 0), (3, 1)):
        moved = points.clone()
        moved[:, node, axis] += step
        other = stress._state(sets, sets.weight, moved, offset, curvature)
        slope = -(other.residual - state.residual)[:, node] / step
        assert torch.allclose(slope, state.gradient[:, node, :, axis], atol=1e-4)
    slope = stress._slope(sets, sets.weight, points, offset, curvature)
    further = stress._state(sets, sets.weight, points, offset, curvature + step)
    assert torch.allclose(slope, (further.stress - state.stress) / step, rtol=1e-3, atol=1e-4)


def test_hops_are_those_of_a_search():
    graph = nx.gnm_random_graph(150, 260, seed=1)
    graph = nx.convert_node_labels_to_integers(graph.subgraph(max(nx.connected_components(graph), key=len)))
    edges, count = edges_of(graph)
    sources = np.arange(70)
    found = regions.hops_from(simple_adjacency(edges, count), sources)
    for source in (0, 69):
        assert found[source].tolist() == [nx.shortest_path_length(graph, source, v) for v in range(count)]


def test_a_cut_is_a_partition_by_the_nearest_centre():
    edges, count = edges_of(nx.convert_node_labels_to_integers(nx.grid_2d_graph(15, 15)))
    parts = regions.cut(simple_adjacency(edges, count), 6, np.random.default_rng(0))
    assert sorted(np.concatenate(parts).tolist()) == list(range(count))
    assert len(parts) == 6
    assert min(part.size for part in parts) > 5


@pytest.mark.parametrize(
    "t, expected",
    [
        ([-6.0, -2.0, 2.0, 6.0], (1.5, 0.5, 2.5)),
        ([-1.0, 1.0, 3.0, 5.0], (0.5, None, 1.5)),
        ([-5.0, -3.0, -1.0, 1.0], (2.5, 1.5, None)),
        ([3.0, 4.0, 5.0, 6.0], (0.0, None, 0.0)),
        ([-6.0, -5.0, -4.0, -3.0], (3.0, 3.0, None)),
    ],
)
def test_the_interval_is_where_the_statistic_is_not_critical(t, expected):
    found = space_fit._inverted(np.arange(4.0), np.array(t), 2.0 if t[0] != -6.0 or t[1] == -5.0 else 4.0)
    assert found == expected


def test_a_hyperbolic_graph_is_told_from_a_flat_one():
    drawn = random_geometric("hyperbolic disc, radius 4", 800, 12.0, np.random.default_rng(0))
    found = fit_space(drawn.edges, drawn.num_nodes, seeds=1)
    assert found.verdict == "hyperbolic"
    assert found.p_flat < 0.05
    assert found.curvature < 0
    assert found.error_best < found.error_flat
    assert found.high is not None
    assert found.high < 0
    assert "better embedded curved: hyperbolic" in found.reading


def test_a_lattice_is_flat():
    drawn = lattice("square", 16)
    found = fit_space(drawn.edges, drawn.num_nodes, seeds=1)
    assert found.verdict == "flat"
    assert found.low is None or found.low < 0
    assert found.high is None or found.high > 0
    assert found.reading.startswith("flat is as good")
    # the same seed, the same result
    assert dc.asdict(fit_space(drawn.edges, drawn.num_nodes, seeds=1)) == dc.asdict(found)


@pytest.mark.parametrize("kind, degree", [("square", 4), ("triangular", 6), ("honeycomb", 3)])
def test_lattices_have_the_degree_of_their_kind(kind, degree):
    drawn = lattice(kind, 12)
    found = np.bincount(drawn.edges.ravel())
    assert found.max() == degree
    assert np.median(found) == degree


def test_drawn_graphs_have_the_degree_and_the_curvature_asked_for():
    drawn = random_geometric("sphere", 300, 10.0, np.random.default_rng(0))
    assert 2 * drawn.edges.shape[1] / drawn.num_nodes == pytest.approx(10, rel=0.05)
    assert drawn.in_hops(8) > 0
    assert random_geometric("torus", 300, 10.0, np.random.default_rng(0)).in_hops(8) == 0
    with pytest.raises(UsageError, match="no space is called 'spher'; did you mean 'sphere'"):
        random_geometric("spher", 300, 10.0, np.random.default_rng(0))


@pytest.mark.parametrize(
    "graph, said",
    [
        (nx.path_graph(20), "has 20 nodes: at least 48 are needed"),
        (nx.star_graph(300), "no two nodes are more than two hops apart"),
        (nx.complete_graph(200), "no two nodes are more than two hops apart"),
    ],
)
def test_a_graph_that_tells_nothing_is_refused(graph, said):
    with pytest.raises(DataError, match=said):
        fit_space(*edges_of(graph))


def test_wrong_arguments_are_refused():
    with pytest.raises(UsageError, match="dim must be 2 or more"):
        fit_space(*edges_of(nx.path_graph(200)), dim=1)
    with pytest.raises(UsageError, match="seeds must be 1 or more"):
        fit_space(*edges_of(nx.path_graph(200)), seeds=0)


def test_a_graph_without_regions_is_fitted_as_a_whole():
    tree = nx.random_labeled_tree(60, seed=0)
    bushy = nx.disjoint_union(tree, nx.empty_graph(600))
    bushy.add_edges_from((60 + leaf, leaf % 12) for leaf in range(600))  # hubs with fifty leaves each
    found = fit_space(*edges_of(bushy), seeds=1)
    assert not found.local
    assert found.regions == (8,)


def test_a_path_is_flat():
    assert fit_space(*edges_of(nx.path_graph(150)), seeds=1).verdict == "flat"


def test_the_reading_follows_the_test():
    found = SpaceFit(0.04, 0.01, 0.07, 0.01, (0.04,), ((0.0, 0.3),), 0.3, 0.2, 2, (8,), 300, 4.0, True)
    assert found.verdict == "spherical"
    assert "bending over 5.0 hops" in found.reading
    assert dc.replace(found, p_flat=0.2).verdict == "flat"
