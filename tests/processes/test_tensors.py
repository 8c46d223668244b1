"""Sums over processes, shares of rows, and their derivatives."""

import pytest
import several
import several_calls
import torch

from gyroformer.processes.group import World, set_world, together
from gyroformer.processes.tensors import all_sum, any_process, gathered, share, sum_numbers, taken


def test_one_process_has_everything():
    x = torch.ones(3)
    with together():
        assert share(10) == slice(0, 10)
        assert all_sum(x) is x
        assert gathered(x) is x
        assert sum_numbers([1.5]) == [1.5]
        assert any_process(True)
        assert not any_process(False)
    assert taken(x, slice(0, 3)) is x
    assert taken(x, slice(1, 3)).shape == (2,)


@pytest.mark.parametrize("total", [0, 2, 7, 12])
def test_shares_are_disjoint_and_whole(total):
    set_world(World(1, 5, 1.0, None))
    try:
        assert share(total) == slice(0, total), "outside of together() a process is alone"
        with together():
            parts = [share(total, rank) for rank in range(5)]
            assert share(total) == parts[1]
    finally:
        set_world(None)
    assert [row for part in parts for row in range(total)[part]] == list(range(total))
    assert max(part.stop - part.start for part in parts) <= total // 5 + 1


@pytest.mark.parametrize("count, total", [(1, 7), (3, 7), (3, 2)])
def test_values_and_gradients_are_those_of_one_process(tmp_path, count, total):
    """Of an expression with rows gathered and sums over all; every process must find the same."""
    weight = torch.linspace(-1, 2, total, dtype=torch.float64, requires_grad=True)
    rows = weight.exp()
    loss = (rows.roll(1) * rows.square().sum().sin()).sum()
    loss.backward()
    out = str(tmp_path / "found.pt")
    several.run_in(count, several_calls.sums_and_gradients, total, out, folder=tmp_path)
    found = torch.load(out)
    assert found["count"] == count
    assert found["loss"] == pytest.approx(loss.item(), rel=1e-14)
    torch.testing.assert_close(found["rows"], rows.detach())
    torch.testing.assert_close(found["grad"], weight.grad)
    torch.testing.assert_close(found["large"], rows.sum().detach().expand(len(found["large"])))
