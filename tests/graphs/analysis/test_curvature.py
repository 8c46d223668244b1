"""Sectional curvature against the definition, spelled out over all triples and all fourth nodes."""

import itertools
import os
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.analysis import curvature as module
from gyroformer.graphs.analysis.curvature import graph_curvature


def edge_index(graph):
    return np.array(list(graph.edges), dtype=np.int64).reshape(-1, 2).T


def curvature(graph, **options):
    return graph_curvature(edge_index(graph), graph.number_of_nodes(), **options)


def reference_values(graph):
    """Every triple's value by the definition; a runs over m's component."""
    distance = dict(nx.all_pairs_shortest_path_length(graph))
    values = []
    for m in graph:
        others = [a for a in distance[m] if a != m]
        for b, c in itertools.combinations(graph[m], 2):
            terms = [
                (
                    distance[a][m] ** 2
                    + distance[b][c] ** 2 / 4
                    - (distance[a][b] ** 2 + distance[a][c] ** 2) / 2
                )
                / (2 * distance[a][m])
                for a in others
            ]
            values.append(sum(terms) / len(terms))
    return np.array(values)


def random_graph(seed):
    """Return a random graph; some have several components, isolated nodes and many triangles."""
    graph = nx.gnm_random_graph(12 + seed % 20, (7 * seed) % 60 + 6, seed=seed)
    return nx.disjoint_union(graph, nx.cycle_graph(5)) if seed % 3 == 0 else graph


@pytest.mark.parametrize("seed", range(30))
def test_every_number_equals_the_definition(seed):
    graph = random_graph(seed)
    want, got = reference_values(graph), curvature(graph)
    assert got.exact
    assert got.standard_error == 0
    assert got.triples == want.size
    assert got.mean == pytest.approx(want.mean(), abs=1e-12)
    assert got.std == pytest.approx(want.std(), abs=1e-10)
    assert got.negative_share == pytest.approx((want < -1e-9).mean(), abs=1e-12)
    np.testing.assert_array_equal(got.counts, np.histogram(want + 1e-9, got.edges)[0])
    assert sum(got.counts) == got.triples


def test_components_are_taken_one_by_one_and_pooled_by_triples():
    tree, cycle = nx.balanced_tree(3, 3), nx.cycle_graph(9)
    both = nx.disjoint_union_all([cycle, tree, nx.path_graph(2), nx.empty_graph(3)])
    got = curvature(both)
    assert [part.nodes for part in got.components] == [40, 9]
    assert got.flat_components == 4
    assert got.components[0].mean == pytest.approx(curvature(tree).mean)
    assert got.components[1].mean == pytest.approx(curvature(cycle).mean)
    pooled = sum(part.mean * part.triples for part in got.components) / got.triples
    assert got.mean == pytest.approx(pooled)


@pytest.mark.parametrize("nodes", [3, 4, 7, 70, 501])
def test_a_path_is_exactly_flat(nodes):
    got = curvature(nx.path_graph(nodes))
    assert (got.mean, got.std, got.negative_share) == (0.0, 0.0, 0.0)
    assert got.reading.startswith("flat")


@pytest.mark.parametrize("branching, height", [(2, 5), (3, 3), (30, 1)])
def test_a_tree_is_negative(branching, height):
    got = curvature(nx.balanced_tree(branching, height))
    assert got.mean < 0
    assert "tree-like: negative" in got.reading


@pytest.mark.parametrize("nodes", [4, 5, 6, 31, 130])
def test_a_cycle_is_positive(nodes):
    got = curvature(nx.cycle_graph(nodes))
    assert got.mean > 0
    assert got.std == pytest.approx(0, abs=1e-12)
    assert got.reading.startswith("mostly cycle-like: positive" if got.mean > module.FLAT else "flat")


def test_a_star_costs_its_edges_not_its_triples():
    leaves = 200_000
    star = np.stack([np.zeros(leaves, np.int64), np.arange(1, leaves + 1)])
    got = graph_curvature(star, leaves + 1, samples=128)
    assert got.triples == leaves * (leaves - 1) // 2
    # two leaves b, c and the rest at distance 2 from both: (1 + 1 - 4) / 2 = -1; a in {b, c} gives 0
    assert got.mean == pytest.approx(-1 + 2 / leaves, abs=1e-3)


def test_direction_repetition_loops_and_numbering_do_not_matter():
    graph = nx.gnm_random_graph(40, 90, seed=3)
    want = curvature(graph)
    order = np.random.default_rng(0).permutation(40)
    edges = order[edge_index(graph)]
    messy = np.concatenate([edges, edges[::-1], edges[:, :5], [[7, 8], [7, 8]]], axis=1)
    got = graph_curvature(messy, 40)
    assert got.mean == pytest.approx(want.mean, abs=1e-12)
    assert (got.triples, got.counts) == (want.triples, want.counts)


@pytest.mark.parametrize("samples", [256, 640])
def test_sampling_is_unbiased_and_its_standard_error_tells_the_spread(samples):
    # 640 of 700 leave a twelfth of the variance: drawing without replacement must be accounted for
    graph = nx.disjoint_union(
        nx.powerlaw_cluster_graph(700, 3, 0.5, seed=1), nx.random_regular_graph(3, 400, seed=2)
    )
    exact = curvature(graph)
    draws = [curvature(graph, samples=samples, seed=seed) for seed in range(50)]
    assert not any(draw.exact for draw in draws)
    means = np.array([draw.mean for draw in draws])
    errors = np.array([draw.standard_error for draw in draws])
    assert abs(means.mean() - exact.mean) < 4 * means.std() / np.sqrt(50)
    # 50 draws know their own spread to a tenth
    assert np.sqrt((errors**2).mean()) == pytest.approx(means.std(), rel=0.3)
    assert draws[0].std == pytest.approx(exact.std, rel=0.5)
    assert sum(draws[0].counts) == exact.triples


def test_the_groups_behind_the_standard_error_add_up_to_the_mean(monkeypatch):
    seen = {}

    def spy(groups, sizes, sources, strata):
        seen.update(groups=groups, sizes=sizes[strata], drawn=sources.per_component[strata])
        return 0.0

    monkeypatch.setattr(module, "_standard_error", spy)
    graph = nx.disjoint_union(
        nx.powerlaw_cluster_graph(300, 3, 0.5, seed=1), nx.powerlaw_cluster_graph(200, 2, 0.9, seed=2)
    )
    got = curvature(graph, samples=128)
    assert seen["groups"].shape == (2, 16)
    scale = seen["sizes"] / seen["drawn"] / (seen["sizes"] - 1)
    totals = [part.mean * part.triples for part in got.components]
    np.testing.assert_allclose(seen["groups"].sum(axis=1) * scale, totals)


def test_components_smaller_than_the_sample_stay_exact():
    graph = nx.gnm_random_graph(90, 200, seed=0)
    got, exact = curvature(graph, samples=128), curvature(graph)
    assert got.exact
    assert got.mean == pytest.approx(exact.mean, abs=1e-12)


def test_large_graphs_are_sampled_unless_asked(monkeypatch):
    monkeypatch.setattr(module, "EXACT_SECONDS", 1e-4)
    monkeypatch.setattr(module, "DEFAULT_SAMPLES", 128)
    graph = nx.random_regular_graph(4, 300, seed=0)
    sampled, whole = curvature(graph), curvature(graph, exact=True)
    assert (sampled.exact, whole.exact) == (False, True)
    assert sampled.standard_error > 0
    assert abs(sampled.mean - whole.mean) < 5 * sampled.standard_error
    assert sampled.components[0].sources == 128


def test_the_same_seed_gives_the_same_numbers():
    graph = nx.random_regular_graph(4, 300, seed=0)
    assert curvature(graph, samples=128, seed=5) == curvature(graph, samples=128, seed=5)
    assert curvature(graph, samples=128, seed=5) != curvature(graph, samples=128, seed=6)


def test_clear_errors():
    with pytest.raises(DataError, match="no node with two neighbours"):
        curvature(nx.path_graph(2))
    with pytest.raises(UsageError, match="at least 128"):
        curvature(nx.path_graph(5), samples=5)
    with pytest.raises(UsageError, match="exclude each other"):
        curvature(nx.path_graph(5), samples=500, exact=True)
    with pytest.raises(DataError, match="names node 9"):
        graph_curvature(np.array([[0], [9]]), 3)
    with pytest.raises(UsageError, match=r"\(2, E\)"):
        graph_curvature(np.zeros((3, 2), int), 3)


@pytest.mark.data
@pytest.mark.parametrize(
    "path, mean, triples",
    [
        ("web-edu/web-edu.edges.csv", -0.6267, 110887),
        ("power/power.edges.csv", -0.2804, 18933),
        ("facebook/facebook.edges.csv", -0.0835, 9314849),
        ("bio-worm/bio-wormnet.edges.csv", -0.0320, 8383831),
    ],
)
def test_the_published_graphs(path, mean, triples):
    folder = os.environ.get("GYROFORMER_DATA")
    if not folder:
        pytest.skip("GYROFORMER_DATA is not set")
    pairs = np.loadtxt(Path(folder) / path, delimiter=",", dtype=np.int64)
    ids, edges = np.unique(pairs, return_inverse=True)
    got = graph_curvature(edges.reshape(-1, 2).T, ids.size)
    assert got.exact
    assert got.mean == pytest.approx(mean, abs=5e-5)
    assert got.triples == triples
