import pytest
import torch
from small_graphs import blocks_graph
from torch_geometric.data import Data

from gyroformer.data.link_split import LinkSplit, draw_link_split
from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.non_edges import pair_numbers, undirected_edges


def numbers(pairs):
    return set(pair_numbers(pairs).tolist())


def test_parts_divide_the_edges_and_the_non_edges_are_distinct_and_real():
    data = blocks_graph()
    split = draw_link_split(data, seed=5)
    edges = numbers(undirected_edges(data.edge_index, data.num_nodes))
    parts = [numbers(part) for part in (split.train, split.val, split.test)]
    assert set.union(*parts) == edges
    assert sum(map(len, parts)) == len(edges)
    assert [len(part) for part in parts[1:]] == [round(0.05 * len(edges)), round(0.10 * len(edges))]
    others = [numbers(split.val_non), numbers(split.test_non)]
    assert [len(other) for other in others] == [split.val.size(1), split.test.size(1)]
    assert not others[0] & others[1]
    assert not (others[0] | others[1]) & edges
    for part in (split.train, split.val, split.test, split.val_non, split.test_non):
        assert bool((part[0] < part[1]).all())


def test_the_draw_is_the_seeds_alone():
    data = blocks_graph()
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = draw_link_split(data, seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    assert draw_link_split(data, seed=1).sha256 == first.sha256
    assert draw_link_split(data, seed=2).sha256 != first.sha256
    turned = data.clone()
    turned.edge_index = data.edge_index[:, torch.randperm(data.edge_index.size(1))]
    assert draw_link_split(turned, seed=1).sha256 == first.sha256


def test_the_training_graph_has_training_edges_only_and_forgets_what_was_computed():
    data = blocks_graph(features=4)
    data.edge_weight = torch.arange(data.edge_index.size(1)).float()
    data.identifiers = torch.ones(data.num_nodes, 2)
    split = draw_link_split(data)
    graph = split.training_graph(data)
    assert numbers(graph.edge_index) == numbers(split.train)
    assert graph.edge_index.size(1) == 2 * split.train.size(1)
    assert "identifiers" not in graph
    at = graph.edge_weight.long()
    assert torch.equal(data.edge_index[:, at], graph.edge_index)
    assert torch.equal(graph.x, data.x)
    assert graph.ids == data.ids


def test_self_loops_are_no_training_edges():
    # by the formula for pairs the loop (1, 1) has the number of the pair (0, 2), and (3, 3) that of (0, 4)
    edge_index = torch.tensor([[0, 0, 1, 1, 2, 3, 3, 0], [1, 2, 2, 1, 3, 3, 4, 4]])
    data = Data(edge_index=edge_index, num_nodes=6)
    split = draw_link_split(data)
    assert {1, 6} & numbers(split.train)
    graph = split.training_graph(data)
    assert bool((graph.edge_index[0] != graph.edge_index[1]).all())


def test_graphs_that_are_too_small_or_too_dense_are_refused():
    two = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    with pytest.raises(DataError, match="2 edges: too few"):
        draw_link_split(two)
    full = Data(edge_index=torch.combinations(torch.arange(6)).mT, num_nodes=6)
    with pytest.raises(DataError, match="0 pairs of nodes without an edge"):
        draw_link_split(full)
    empty = Data(edge_index=torch.empty(2, 0, dtype=torch.int64), num_nodes=3)
    with pytest.raises(DataError, match="0 edges"):
        draw_link_split(empty)


@pytest.mark.parametrize("shares", [(0.0, 0.1), (0.5, 0.5), (-0.1, 0.2), (float("nan"), 0.1)])
def test_wrong_shares_are_refused(shares):
    with pytest.raises(UsageError, match="fractions held out"):
        draw_link_split(blocks_graph(), val_fraction=shares[0], test_fraction=shares[1])


def test_the_checksum_of_a_split_is_the_same_in_every_version():
    pairs = {"train": [[0, 1], [1, 2]], "val": [[2], [3]], "test": [[0], [3]]}
    non_edges = {"val_non": [[0], [2]], "test_non": [[1], [3]]}
    parts = {part: torch.tensor(ends) for part, ends in (pairs | non_edges).items()}
    checksum = LinkSplit(nodes=4, seed=0, **parts).sha256
    assert checksum == "b4b4e2318981339d4bf149e00e78021563d228e58c8abc229efa3ca39e9f865d"
