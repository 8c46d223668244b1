"""Hop mixing against dense matrices."""

import networkx as nx
import pytest
import torch

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.hops import joined_hops, mix_hops, normalised_adjacency, ppr_mix

GRAPH = nx.disjoint_union(nx.gnm_random_graph(20, 35, seed=1), nx.empty_graph(2))
EDGES = torch.tensor(list(GRAPH.edges)).T
OPTIONS = [(norm, loops) for norm in ("sym", "row") for loops in (True, False)]


def dense_adjacency(norm, loops):
    adjacency = torch.from_numpy(nx.to_numpy_array(GRAPH)) + (torch.eye(22) if loops else 0)
    inverse = adjacency.sum(1).clamp(min=1).reciprocal()
    if norm == "row":
        return inverse[:, None] * adjacency
    return inverse.sqrt()[:, None] * adjacency * inverse.sqrt()


@pytest.fixture
def x():
    return torch.rand(22, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("norm, loops", OPTIONS)
def test_the_matrix_equals_the_dense_one(norm, loops):
    got = normalised_adjacency(EDGES, 22, norm=norm, loops=loops, dtype=torch.float64)
    torch.testing.assert_close(got.to_dense(), dense_adjacency(norm, loops))
    assert normalised_adjacency(EDGES, 22).dtype == torch.float32


def test_rows_sum_to_one_and_isolated_nodes_are_zero_without_loops():
    rows = normalised_adjacency(EDGES, 22, norm="row").to_dense().sum(1)
    torch.testing.assert_close(rows, torch.ones(22))
    bare = normalised_adjacency(EDGES, 22, norm="row", loops=False).to_dense()
    assert bare[20:].abs().sum() == 0


@pytest.mark.parametrize("hops", [0, 1, 4, 30])
@pytest.mark.parametrize("norm, loops", OPTIONS)
def test_mixing_equals_the_dense_power(x, norm, loops, hops):
    want = torch.linalg.matrix_power(dense_adjacency(norm, loops), hops) @ x
    torch.testing.assert_close(mix_hops(x, EDGES, hops, norm=norm, loops=loops), want)
    single = mix_hops(x.float(), EDGES, hops, norm=norm, loops=loops)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single, want.float())


def test_joined_hops_are_the_powers(x):
    got = joined_hops(x, EDGES, 3)
    assert len(got) == 4
    for hops, part in enumerate(got):
        torch.testing.assert_close(part, mix_hops(x, EDGES, hops))


@pytest.mark.parametrize("norm, loops", OPTIONS)
def test_pagerank_steps_and_limit(x, norm, loops):
    adjacency = dense_adjacency(norm, loops)
    torch.testing.assert_close(
        ppr_mix(x, EDGES, 0.2, 1, norm=norm, loops=loops), 0.8 * adjacency @ x + 0.2 * x
    )
    limit = 0.2 * torch.linalg.solve(torch.eye(22) - 0.8 * adjacency, x)
    torch.testing.assert_close(ppr_mix(x, EDGES, 0.2, 200, norm=norm, loops=loops), limit)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
@pytest.mark.filterwarnings("ignore:Sparse")
def test_a_sparse_x_gives_the_dense_result(x, layout):
    x = x * (x > 0.7)
    sparse = x.to_sparse(layout=layout)
    torch.testing.assert_close(mix_hops(sparse, EDGES, 3), mix_hops(x, EDGES, 3))
    assert mix_hops(sparse, EDGES, 0).layout == torch.strided


def test_gradients_flow_to_the_features(x):
    x.requires_grad_()
    assert torch.autograd.gradcheck(lambda value: mix_hops(value, EDGES, 3, norm="row"), x)


def test_direction_repetition_and_loops_of_the_edges_do_not_matter(x):
    messy = torch.cat([EDGES.flip(0), EDGES[:, :4], torch.tensor([[3], [3]])], dim=1)
    torch.testing.assert_close(mix_hops(x, messy, 2), mix_hops(x, EDGES, 2))


def test_edges_may_be_a_numpy_array(x):
    torch.testing.assert_close(mix_hops(x, EDGES.numpy(), 2), mix_hops(x, EDGES, 2))


def test_renumbering_the_nodes_renumbers_the_result(x):
    order = torch.randperm(22, generator=torch.Generator().manual_seed(1))
    moved = torch.empty_like(x)
    moved[order] = x
    torch.testing.assert_close(mix_hops(moved, order[EDGES], 4)[order], mix_hops(x, EDGES, 4))


def test_clear_errors(x):
    with pytest.raises(UsageError, match="negative"):
        mix_hops(x, EDGES, -1)
    with pytest.raises(UsageError, match="alpha"):
        ppr_mix(x, EDGES, 0.0, 3)
    with pytest.raises(UsageError, match=r"\(nodes, features\)"):
        mix_hops(x[:, 0], EDGES, 1)
    with pytest.raises(UsageError, match="floating-point"):
        mix_hops(x.long(), EDGES, 1)
    with pytest.raises(UsageError, match="norm"):
        mix_hops(x, EDGES, 1, norm="column")
    with pytest.raises(DataError, match="names node"):
        mix_hops(x[:3], EDGES, 1)
