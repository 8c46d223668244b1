"""The cheap dropout: exact in its mean, the same for the same seed, and nothing where nothing is to be done."""

import pytest
import torch

from gyroformer.compiled import torch_forms
from gyroformer.nn.dropout import BLOCK, dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.7, 0.99])
@pytest.mark.parametrize("learned", [False, True])
def test_entries_are_dropped_with_that_probability_and_the_mean_is_kept(p, learned):
    torch.manual_seed(0)
    x = torch.full((700, 700), 3.0, requires_grad=learned)
    found = dropout(x, p, True).detach()
    zero = (found == 0).double().mean().item()
    assert abs(zero - p) < 4 * (p * (1 - p) / x.numel()) ** 0.5 + 2**-16
    values = found[found != 0].unique()
    assert values.numel() == 1
    # what is kept is divided by the very probability of being kept
    torch.testing.assert_close(values.item() * round((1 - p) * 2**16) / 2**16, 3.0)


def test_entries_do_not_know_of_each_other():
    torch.manual_seed(1)
    kept = (dropout(torch.ones(200_000), 0.5, True) != 0).double() - 0.5
    for lag in (1, 2, 3, 4, 5, 8, BLOCK):
        assert abs((kept[lag:] * kept[:-lag]).mean().item()) < 4 * 0.25 * (len(kept) - lag) ** -0.5


def test_the_gradient_is_that_of_what_was_kept():
    torch.manual_seed(2)
    x = torch.rand(50, 30, dtype=torch.float64, requires_grad=True)
    found = dropout(x, 0.3, True)
    found.sum().backward()
    torch.testing.assert_close(x.grad, found.detach() / x.detach())


def test_the_same_seed_gives_the_same_and_a_view_is_no_other():
    x = torch.rand(601, 501)
    results = []
    for given in (x, x.clone(), x.t().contiguous().t()):
        torch.manual_seed(3)
        results.append(dropout(given, 0.5, True))
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


@pytest.mark.parametrize("p, training", [(0.5, False), (0.0, True), (1e-9, True)])
def test_nothing_is_drawn_where_nothing_is_dropped(p, training):
    x = torch.rand(5, 5)
    before = torch.get_rng_state()
    assert dropout(x, p, training) is x
    assert torch.equal(before, torch.get_rng_state())
    assert dropout(x[:0], 0.5, True).shape == (0, 5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_kernel_and_torch_drop_the_same(dtype):
    x = torch.randn(3, BLOCK // 2 + 1, dtype=dtype)
    torch.manual_seed(4)
    found = dropout(x, 0.3, True)
    with torch_forms():
        torch.manual_seed(4)
        assert torch.equal(dropout(x, 0.3, True), found)
