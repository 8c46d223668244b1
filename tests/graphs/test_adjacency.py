"""The simple graph behind an edge index, and the order of its components."""

import numpy as np
import pytest
import torch

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.adjacency import ranked_components, simple_adjacency, upper_edges


def test_direction_repetition_and_loops_are_dropped():
    repeated = [[0, 1]] * 300  # more than an int8 can count
    edges = torch.tensor([*repeated, [1, 0], [2, 2], [3, 1]]).T
    adjacency = simple_adjacency(edges, 5)
    np.testing.assert_array_equal(
        adjacency.toarray(),
        [[0, 1, 0, 0, 0], [1, 0, 0, 1, 0], [0, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]],
    )
    u, v = upper_edges(adjacency)
    assert (u.tolist(), v.tolist()) == ([0, 1], [1, 3])


def test_components_are_numbered_by_size_then_by_first_node():
    edges = np.array([[1, 5, 6, 2], [4, 6, 7, 3]])
    count, component = ranked_components(simple_adjacency(edges, 8))
    assert count == 4
    # {5, 6, 7} is largest; {1, 4} comes before {2, 3}; {0} is last
    assert component.tolist() == [3, 1, 2, 2, 1, 0, 0, 0]


def test_no_edges():
    count, component = ranked_components(simple_adjacency(torch.empty(2, 0, dtype=torch.long), 3))
    assert (count, component.tolist()) == (3, [0, 1, 2])


def test_clear_errors():
    with pytest.raises(DataError, match="at least one node"):
        simple_adjacency(np.empty((2, 0), int), 0)
    with pytest.raises(DataError, match="names node -1"):
        simple_adjacency(np.array([[0], [-1]]), 3)
    with pytest.raises(UsageError, match="integers, got float64"):
        simple_adjacency(np.array([[0.5], [1.0]]), 3)
