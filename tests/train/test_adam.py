"""Adam without the doors to torch's compiler takes torch's own steps."""

import pytest
import torch

from gyroformer.train.adam import Adam


@pytest.mark.parametrize("decay", [0.0, 0.02])
def test_steps_are_those_of_torch_bit_for_bit(decay):
    found = []
    for kind in (Adam, torch.optim.Adam):
        generator = torch.Generator().manual_seed(0)
        first, second = (torch.nn.Parameter(torch.randn(7, generator=generator)) for _ in range(2))
        optimizer = kind(
            [{"params": [first], "lr": 0.1, "weight_decay": decay}, {"params": [second], "lr": 0.01}]
        )
        for _ in range(5):
            optimizer.zero_grad(set_to_none=True)
            (first.exp().sum() + (first * second).cos().sum()).backward()
            optimizer.step()
        moments = [value for p in (first, second) for value in optimizer.state[p].values()]
        found.append([first.detach(), second.detach(), *moments])
        assert first.requires_grad
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_gradients_are_taken_away():
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = Adam([parameter])
    parameter.sum().backward()
    optimizer.zero_grad()
    assert parameter.grad is None
