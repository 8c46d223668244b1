"""Which space fits a graph: estimates on graphs of known spaces, the interval, the test of flatness."""

import dataclasses as dc

import networkx as nx
import numpy as np
import pytest
import torch

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.adjacency import simple_adjacency
from gyroformer.graphs.analysis import geometric, regions, space_fit, stress
from gyroformer.graphs.analysis.calibration import Expected, between
from gyroformer.graphs.analysis.slopes import Slope
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
    assert np.isinf(regions.hops_from(simple_adjacency(np.array([[0], [1]]), 3), np.array([0]))[0, 2])


def test_hops_stay_in_the_ball_and_what_is_around_it():
    ring = simple_adjacency(*edges_of(nx.cycle_graph(60)))
    for hops in regions.hops_in_balls(ring, 3, 41, 60, np.random.default_rng(0)):
        assert hops.shape == (41, 41)  # 20 on each side of the centre
        assert hops.max() == 40  # along the arc: the way around the other side, of 20, is not in the ball
    tree = simple_adjacency(*edges_of(nx.balanced_tree(2, 6)))
    (hops,) = regions.hops_in_balls(tree, 1, 30, 12, np.random.default_rng(0))
    assert hops.shape == (12, 12)
    assert np.isfinite(hops).all()


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("curvature, closed", [(-0.05, False), (0.0, False), (0.0, True), (0.03, False)])
def test_points_are_drawn_uniformly_from_the_space(curvature, closed, dim):
    drawn = geometric.geometric_graph(600, 12, curvature, dim, closed=closed, rng=np.random.default_rng(0))
    assert drawn.adjacency.nnz / drawn.adjacency.shape[0] == pytest.approx(12, rel=0.1)
    # a ball of radius 1 inside the space holds as many nodes as the mean degree
    inside = (drawn.distance < 1).sum(1) - 1
    assert np.quantile(inside, 0.9 if not closed else 0.5) == pytest.approx(12 if closed else 16, rel=0.25)
    hops = regions.hops_from(drawn.adjacency, np.arange(64))
    assert 0.5 < 1 / geometric.hops_per_length(hops, drawn.distance[:64], 10) < 1


def test_a_whole_sphere_has_the_nodes_it_holds():
    drawn = geometric.geometric_graph(600, 12, 0.1, 2, closed=True, rng=np.random.default_rng(0))
    assert len(drawn.distance) == pytest.approx(12 * 40, rel=0.05)
    assert drawn.distance.max() == pytest.approx(np.pi / np.sqrt(0.1), rel=0.05)
    assert geometric.sphere_volume(0.1, 2) == pytest.approx(4 * np.pi / 0.1, rel=1e-4)


def test_a_slope_is_judged_by_those_of_drawn_graphs():
    near = Expected(0.0, 2.0, 1.0, 0.5, 0.3, 20, 0.8)
    slope = Slope(4.0, 0.5, 0.3, (4.0,))
    assert near.t(slope) == 2
    assert near.p_value(slope) == pytest.approx(0.0657, abs=1e-3)
    assert near.critical == pytest.approx(2.145, abs=1e-3)
    # sets that differ twice as much, or hops that fit three times worse, are twice or three times less certain
    assert near.t(dc.replace(slope, error=1.0)) == 1
    assert near.t(dc.replace(slope, misfit=0.9)) == pytest.approx(2 / 3)
    far = dc.replace(near, curvature=-0.2, mean=0.0, scatter=3.0)
    assert between([near, far], -0.1).mean == 1
    assert between([near, far], -0.3).scatter == 3


@pytest.mark.parametrize(
    "excess, expected",
    [
        ([-1.5, -0.5, 0.5, 1.5], (1.5, 0.5, 2.5)),
        ([-0.5, 0.5, 1.5, 2.5], (0.5, None, 1.5)),
        ([-2.5, -1.5, -0.5, 0.5], (2.5, 1.5, None)),
        ([1.5, 2.0, 2.5, 3.0], (0.0, None, 0.0)),
        ([-3.0, -2.5, -2.0, -1.5], (3.0, 3.0, None)),
    ],
)
def test_the_interval_is_where_the_statistic_is_not_critical(excess, expected):
    assert space_fit._inverted(np.arange(4.0), np.array(excess)) == expected


@pytest.fixture
def few_draws(monkeypatch):
    """Fewer drawn graphs: wider intervals in less time."""
    monkeypatch.setattr(space_fit, "FLAT_DRAWS", 8)
    monkeypatch.setattr(space_fit, "END_DRAWS", 5)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_sphere_is_told_from_a_flat_graph(seed, few_draws):
    drawn = random_geometric("sphere", 600, 12.0, np.random.default_rng(seed))
    found = fit_space(drawn.edges, drawn.num_nodes, seeds=1)
    assert found.verdict == "spherical"
    assert found.low > 0
    assert found.curvature == pytest.approx(drawn.in_hops(2 * found.radius), rel=0.4)


def test_a_hyperbolic_graph_is_told_from_a_flat_one(few_draws):
    drawn = random_geometric("hyperbolic disc, radius 4", 500, 12.0, np.random.default_rng(0))
    found = fit_space(drawn.edges, drawn.num_nodes, seeds=1)
    assert found.verdict == "hyperbolic"
    assert found.p_flat < 0.05
    assert found.curvature < 0
    assert found.error_best < found.error_flat
    assert found.high is not None
    assert found.high < 0
    assert "better embedded curved: hyperbolic" in found.reading


def test_a_lattice_is_flat(few_draws):
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
    bushy = nx.disjoint_union(nx.complete_graph(12), nx.empty_graph(600))
    bushy.add_edges_from((12 + leaf, leaf % 12) for leaf in range(600))  # hubs with fifty leaves each
    found = fit_space(*edges_of(bushy), seeds=1)
    assert not found.local
    assert found.regions == (8,)


def test_a_path_is_flat(few_draws):
    assert fit_space(*edges_of(nx.path_graph(150)), seeds=1).verdict == "flat"


def test_the_reading_follows_the_test():
    found = SpaceFit(0.04, 0.01, 0.07, 0.01, (0.04,), ((0.0, 0.3),), 0.3, 0.2, 2, (8,), 300, 4.0, True)
    assert found.verdict == "spherical"
    assert "bending over 5.0 hops" in found.reading
    assert dc.replace(found, p_flat=0.2).verdict == "flat"
