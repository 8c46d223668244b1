import pytest
import torch

from gyroformer.compiled import torch_forms
from gyroformer.errors import UsageError
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.ranks import others_before

NODES = 90


def drawn(levels):
    random = torch.Generator().manual_seed(levels)
    neighbours = Neighbours.of(torch.randint(0, NODES, (2, 200), generator=random), NODES)
    distances = torch.randint(0, levels, (NODES, NODES), generator=random).float()
    return distances, neighbours.degree.nonzero()[:, 0].flip(0), neighbours


@pytest.mark.parametrize("levels", [1, 3, 10_000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_others_before_each_neighbour_are_counted(levels, dtype):
    distances, rows, neighbours = drawn(levels)
    found = others_before(distances[rows].to(dtype), rows, neighbours)
    joined = neighbours.adjacent(torch.arange(NODES))
    for counts, u in zip(found, rows.tolist(), strict=True):
        others = ~joined[u] & (torch.arange(NODES) != u)
        want = [int((distances[u, others] <= d).sum()) for d in distances[u, joined[u]].sort().values]
        assert counts[: len(want)].tolist() == want


def test_the_kernel_counts_as_torch_does():
    distances, rows, neighbours = drawn(7)
    found = others_before(distances[rows], rows, neighbours)
    with torch_forms():
        plain = others_before(distances[rows], rows, neighbours)
    real = torch.arange(found.shape[1]) < neighbours.degree[rows][:, None]
    assert torch.equal(found[real], plain[real])


@pytest.mark.parametrize("node", [-1, NODES])
def test_a_node_that_is_none_is_named(node):
    distances, _, neighbours = drawn(7)
    with pytest.raises(UsageError, match="nodes from 0 to 89"):
        others_before(distances[:1], torch.tensor([node]), neighbours)
