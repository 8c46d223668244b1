import pytest
import torch

import gyroformer.ops.nearest as module
from gyroformer.graphs.adjacency import directed_adjacency, simple_adjacency
from gyroformer.ops.nearest import nearest_nodes, nearest_pairs, smallest
from gyroformer.ops.positions import StereographicPositions

NODES = 17


@pytest.fixture(params=[1, 40, 1 << 20], ids=["a row a block", "some rows", "one block"])
def block(request, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", request.param)


@pytest.fixture(params=[-1.0, 0.0, 1.0])
def positions(request, generator):
    u = torch.randn(NODES, 2, 3, generator=generator, dtype=torch.float64) * 0.4
    u[5] = u[4] = u[9]  # three nodes at one place
    return StereographicPositions.from_tangent(u, torch.full((2, 1), request.param, dtype=torch.float64))


def test_nearest_nodes_are_those_of_the_whole_matrix(block, positions):
    rows = torch.tensor([3, 9, 0, 4])
    found, squared = nearest_nodes(positions, rows, 5)
    whole = positions.squared_dist_rows(torch.arange(NODES))
    for row, others, far in zip(rows.tolist(), found.tolist(), squared.tolist(), strict=True):
        expected = sorted((float(whole[row, v]), v) for v in range(NODES) if v != row)[:5]
        assert others == [v for _, v in expected]
        assert far == pytest.approx([d for d, _ in expected])


def test_all_others_are_the_most_that_there_are(positions):
    found, _ = nearest_nodes(positions, torch.arange(NODES), 100)
    assert found.shape == (NODES, NODES - 1)


def test_nearest_pairs_are_those_of_the_whole_matrix(block, positions, generator):
    edge_index = torch.randint(NODES, (2, 40), generator=generator)
    joined = simple_adjacency(edge_index, NODES)
    whole = positions.squared_dist_rows(torch.arange(NODES))
    free = [(u, v) for u in range(NODES) for v in range(u + 1, NODES) if not joined[u, v]]
    expected = sorted((float(whole[u, v]), u, v) for u, v in free)
    for count in (1, 7, 1000):
        pairs, squared = nearest_pairs(positions, joined, count)
        assert pairs.mT.tolist() == [[u, v] for _, u, v in expected[:count]]
        assert squared.tolist() == pytest.approx([d for d, _, _ in expected[:count]])


def test_equals_come_in_order():
    values = torch.tensor([[1.0, 0.0, 1.0, 0.0, 1.0], [4.0, 3.0, 2.0, 1.0, 0.0]])
    found, columns = smallest(values, 3)
    assert columns.tolist() == [[1, 3, 0], [4, 3, 2]]
    assert found.tolist() == [[0.0, 0.0, 1.0], [0.0, 1.0, 2.0]]


def test_pairs_of_a_directed_graph_come_in_either_order(block, positions, generator):
    joined = directed_adjacency(torch.randint(NODES, (2, 40), generator=generator), NODES)
    towards = torch.linspace(0, 1, NODES)  # so that the two directions of a pair differ

    def cost(rows):
        return positions.squared_dist_rows(rows) + towards

    whole = cost(torch.arange(NODES))
    free = [(u, v) for u in range(NODES) for v in range(NODES) if u != v and not joined[u, v]]
    expected = sorted((float(whole[u, v]), u, v) for u, v in free)
    pairs, found = nearest_pairs(positions, joined, 1000, cost=cost, directed=True)
    assert pairs.mT.tolist() == [[u, v] for _, u, v in expected]
    assert found.tolist() == pytest.approx([d for d, _, _ in expected])
