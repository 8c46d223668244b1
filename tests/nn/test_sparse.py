"""Sparse neighbourhood aggregation against dense matrices and torch's own softmax."""

import gc

import networkx as nx
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_dense_adj

from gyroformer.errors import UsageError
from gyroformer.graphs import derived as derived_results
from gyroformer.nn import sparse
from gyroformer.nn.sparse import edge_softmax, edge_sum, neighbour_edges, propagate, propagation


def graph(nodes=12, seed=0):
    """Return a graph whose last node is isolated, with a loop, a repeated and a one-way edge."""
    edges = list(nx.gnm_random_graph(nodes - 1, 2 * nodes, seed=seed).edges)
    edges += [(1, 1), edges[0]]
    return Data(x=torch.zeros(nodes, 2), edge_index=torch.tensor(edges).T.contiguous())


def dense(data):
    adjacency = to_dense_adj(data.edge_index, max_num_nodes=data.num_nodes)[0]
    simple = ((adjacency + adjacency.T) > 0).double()
    return simple.fill_diagonal_(0)


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("norm", ["sym", "row"])
def test_propagation_is_the_normalised_adjacency(norm, loops):
    data = graph()
    adjacency = dense(data) + (torch.eye(12) if loops else 0)
    inverse = 1 / adjacency.sum(1).clamp(min=1)
    want = (
        inverse[:, None] * adjacency
        if norm == "row"
        else inverse.sqrt()[:, None] * adjacency * inverse.sqrt()
    )
    got = propagation(data, norm=norm, loops=loops, dtype=torch.float64)
    assert got.is_sparse
    torch.testing.assert_close(got.to_dense(), want)
    assert propagation(data).dtype == torch.float32


def test_it_is_computed_once_for_one_graph(monkeypatch):
    calls, real = [], sparse.normalised_adjacency
    monkeypatch.setattr(sparse, "normalised_adjacency", lambda *a, **k: calls.append(1) or real(*a, **k))
    data = graph(seed=1)
    first = propagation(data)
    assert propagation(data) is first
    assert propagation(data.to("cpu")) is first
    assert neighbour_edges(data) is neighbour_edges(data)
    assert propagation(data, norm="row") is not first
    assert len(calls) == 2, "the symmetric and the row-wise matrix, which also gives the neighbours"


def test_changed_edges_give_a_new_matrix():
    data = graph(seed=2)
    before = propagation(data)
    data.edge_index = data.edge_index[:, :5]
    assert propagation(data)._nnz() == 2 * 5 + 12
    data.edge_index[:, 0] = torch.tensor([10, 11])
    after = propagation(data).to_dense()
    assert after[10, 11] > 0
    assert before._nnz() > 22
    data.x = torch.zeros(14, 2)
    assert propagation(data).shape == (14, 14)


def test_nothing_outlives_its_graph():
    gc.collect()
    kept = len(derived_results._derived)
    data = graph(seed=3)
    propagation(data)
    assert len(derived_results._derived) == kept + 1
    del data
    gc.collect()
    assert len(derived_results._derived) == kept


def test_the_graph_itself_is_left_alone():
    data = graph(seed=4)
    keys = set(data.keys())
    propagation(data)
    neighbour_edges(data)
    assert set(data.keys()) == keys
    copied = propagation(data.clone())
    assert torch.equal(copied.to_dense(), propagation(data).to_dense())


def test_a_batch_is_a_block_diagonal_graph():
    graphs = [graph(9, seed=5), graph(7, seed=6)]
    propagation(graphs[0])  # one has its matrix, the other not
    batch = Batch.from_data_list(graphs)
    want = torch.block_diag(*(propagation(one, norm="row").to_dense() for one in graphs))
    assert torch.equal(propagation(batch, norm="row").to_dense(), want)
    edges = neighbour_edges(batch)
    assert torch.equal(batch.batch[edges[0]], batch.batch[edges[1]])


@pytest.mark.parametrize("loops", [True, False])
def test_neighbours_are_undirected_once_and_sorted_by_target(loops):
    data = graph(seed=7)
    source, target = neighbour_edges(data, loops=loops)
    got = torch.zeros(12, 12, dtype=torch.float64)
    got.index_put_((target, source), torch.ones(len(source), dtype=torch.float64), accumulate=True)
    assert torch.equal(got, dense(data) + (torch.eye(12) if loops else 0))
    assert (target.diff() >= 0).all()


def test_graphs_without_edges_and_inference_tensors():
    lonely = Data(x=torch.zeros(3, 1), edge_index=torch.zeros(2, 0, dtype=torch.long))
    assert torch.equal(propagation(lonely).to_dense(), torch.eye(3))
    assert neighbour_edges(lonely).tolist() == [[0, 1, 2], [0, 1, 2]]
    assert neighbour_edges(lonely, loops=False).shape == (2, 0)
    with torch.inference_mode():
        data = graph(seed=8)
        assert propagation(data) is propagation(data)
    with pytest.raises(UsageError, match="edge_index"):
        propagation(Data(x=torch.zeros(3, 1)))


def test_propagate_takes_heads_and_passes_gradients():
    data = graph(seed=9)
    matrix = propagation(data, dtype=torch.float64)
    x = torch.rand(12, 3, 4, dtype=torch.float64, requires_grad=True)
    got = propagate(matrix, x)
    torch.testing.assert_close(got, torch.einsum("nm,mhd->nhd", matrix.to_dense(), x))
    grad = torch.autograd.grad(got.sum(), x)[0]
    torch.testing.assert_close(grad, matrix.to_dense().sum(0)[:, None, None].expand(12, 3, 4))


def test_edge_softmax_equals_a_masked_dense_softmax(dtype):
    data = graph(seed=10)
    source, target = neighbour_edges(data)
    scores = torch.randn(len(source), 3, dtype=dtype, requires_grad=True)
    weights = edge_softmax(scores, target, 12)
    full = torch.full((12, 12, 3), -torch.inf, dtype=dtype).index_put((target, source), scores)
    want = full.softmax(1)[target, source]
    torch.testing.assert_close(weights, want)
    cotangent = torch.randn_like(weights)
    torch.testing.assert_close(
        torch.autograd.grad((weights * cotangent).sum(), scores, retain_graph=True)[0],
        torch.autograd.grad((want * cotangent).sum(), scores)[0],
    )
    torch.testing.assert_close(edge_sum(weights, target, 12), torch.ones(12, 3, dtype=dtype))


def test_edge_softmax_is_stable_masks_and_leaves_lonely_nodes_at_zero():
    target = torch.tensor([0, 0, 1, 1, 2])
    scores = torch.tensor([1e38, -1e38, -1e38, -1e38, -torch.inf], requires_grad=True)
    weights = edge_softmax(scores, target, 4)
    assert weights.tolist() == [1.0, 0.0, 0.5, 0.5, 0.0]
    assert torch.autograd.grad(weights[:4].sum(), scores)[0].isfinite().all()
    single = torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0])
    torch.testing.assert_close(edge_softmax(single, target, 4)[:2], single[:2].softmax(0))


def test_edge_softmax_sums_half_precision_in_float32():
    scores = torch.zeros(3000, dtype=torch.bfloat16)
    weights = edge_softmax(scores, torch.zeros(3000, dtype=torch.long), 1)
    assert weights.dtype == torch.bfloat16
    # a bfloat16 sum of ones stops at 256
    assert weights[0].item() == pytest.approx(1 / 3000, rel=1e-2)


def test_edge_sum_adds_up_repeated_targets():
    values = torch.arange(8.0).reshape(4, 2)
    got = edge_sum(values, torch.tensor([2, 0, 2, 2]), 4)
    assert got.tolist() == [[2.0, 3.0], [0.0, 0.0], [10.0, 13.0], [0.0, 0.0]]
