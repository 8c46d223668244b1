import itertools

import pytest
import torch

from gyroformer.graphs.non_edges import NonEdges, directed_edges, pair_numbers, pairs_of, undirected_edges


@pytest.mark.parametrize("density", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_ranks_list_every_non_edge_once(density, generator):
    nodes = 13
    pairs = torch.combinations(torch.arange(nodes)).mT
    edges = pairs[:, torch.rand(pairs.size(1), generator=generator) < density]
    found = NonEdges(edges, nodes)
    listed = found.at(torch.arange(found.count)).mT.tolist()
    edge_set = set(map(tuple, edges.mT.tolist()))
    assert sorted(map(tuple, listed)) == [
        p for p in itertools.combinations(range(nodes), 2) if p not in edge_set
    ]
    assert len(found) == len(listed) == pairs.size(1) - edges.size(1)


@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_ranks_list_every_pair_without_an_edge_in_its_direction(density, generator):
    nodes = 7
    pairs = torch.tensor(list(itertools.permutations(range(nodes), 2))).mT
    edges = pairs[:, torch.rand(pairs.size(1), generator=generator) < density]
    found = NonEdges(edges, nodes, directed=True)
    edge_set = set(map(tuple, edges.mT.tolist()))
    assert list(map(tuple, found.at(torch.arange(found.count)).mT.tolist())) == [
        pair for pair in itertools.permutations(range(nodes), 2) if pair not in edge_set
    ]


def test_directed_edges_are_sorted_once_and_without_loops():
    edge_index = torch.tensor([[2, 1, 0, 1, 2, 1], [1, 0, 1, 0, 2, 2]])
    assert directed_edges(edge_index, 4).tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_directions_repetitions_and_loops_do_not_matter():
    edge_index = torch.tensor([[0, 1, 1, 2, 2], [1, 0, 0, 2, 1]])
    assert undirected_edges(edge_index, 4).tolist() == [[0, 1], [1, 2]]
    assert NonEdges.of(edge_index, 4).count == 4


def test_draws_are_uniform_and_follow_the_global_seed():
    found = NonEdges(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4)  # a path: 3 of 6 pairs are left
    torch.manual_seed(3)
    drawn = found.draw(30_000)
    counts = pair_numbers(drawn).bincount(minlength=6)
    assert counts[pair_numbers(torch.tensor([[0, 0, 1], [2, 3, 3]]))].sum() == 30_000
    assert (counts[counts > 0] - 10_000).abs().max() < 500  # six standard deviations
    torch.manual_seed(3)
    assert torch.equal(found.draw(30_000), drawn)


@pytest.mark.parametrize("high", [1, 2, 3, 1000, 94_906_265, 94_906_266, 94_906_267, 2_000_000_000])
def test_numbers_go_to_pairs_and_back_in_huge_graphs(high):
    pairs = torch.tensor([[0, high // 2, high - 1], [high, high, high]])
    assert torch.equal(pairs_of(pair_numbers(pairs)), pairs)
