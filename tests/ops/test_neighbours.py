import pytest
import torch

from gyroformer.errors import UsageError
from gyroformer.ops.neighbours import Neighbours


def test_directions_repetitions_and_loops_are_dropped():
    found = Neighbours.of(torch.tensor([[3, 0, 1, 1, 0], [0, 1, 0, 1, 3]]), 5)
    assert found.indptr.tolist() == [0, 2, 3, 3, 4, 4]
    assert found.indices.tolist() == [1, 3, 0, 0]
    assert found.source.tolist() == [0, 0, 1, 3]
    assert found.degree.tolist() == [2, 1, 0, 1, 0]
    assert found.num_nodes == 5
    assert torch.equal(found.to("cpu").indices, found.indices)


def test_adjacent_rows_in_any_order():
    found = Neighbours.of(torch.tensor([[0, 0, 3], [1, 3, 2]]), 4)
    rows = torch.tensor([3, 1, 3])
    assert found.adjacent(rows).int().tolist() == [[1, 0, 1, 0], [1, 0, 0, 0], [1, 0, 1, 0]]
    assert found.adjacent(rows[:0]).shape == (0, 4)


@pytest.mark.parametrize(
    "indptr, indices, words",
    [
        ([0, 1], [0], "its own neighbour"),
        ([0, 1, 1], [1], "undirected"),
        ([0, 1, 2], [1, 2], "from 0 to 1"),
        ([0, 2, 3, 4], [2, 1, 0, 0], "ascend"),
        ([0, 2, 4], [1, 1, 0, 0], "ascend"),
        ([0, 3, 2], [1, 0], "rise"),
        ([0, 1, 3], [1, 0], "rise"),
        ([], [], "rise"),
    ],
)
def test_what_is_no_such_graph_is_refused(indptr, indices, words):
    with pytest.raises(UsageError, match=words):
        Neighbours(torch.tensor(indptr, dtype=torch.int64), torch.tensor(indices, dtype=torch.int64))


def test_other_types_are_refused():
    with pytest.raises(UsageError, match=r"indptr must be a vector of int64, got torch.int32"):
        Neighbours(torch.tensor([0, 0], dtype=torch.int32), torch.tensor([], dtype=torch.int64))
