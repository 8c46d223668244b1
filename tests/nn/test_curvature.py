import pytest
import torch

from gyroformer.errors import UsageError
from gyroformer.nn.curvature import NegativeCurvature, SignedCurvature


@pytest.mark.parametrize("k", [-1e-12, -1e-8, -0.01, -1.0, -30.0, -1e4])
def test_a_negative_curvature_starts_where_it_is_told(k):
    space = NegativeCurvature(3, initial=k)
    torch.testing.assert_close(space(), torch.full((3, 1), k), rtol=3e-6, atol=0)


def test_one_start_for_each_head():
    torch.testing.assert_close(NegativeCurvature(2, initial=[-0.5, -2.0])(), torch.tensor([[-0.5], [-2.0]]))


def test_no_step_carries_it_past_zero():
    space = NegativeCurvature(1, initial=-0.01)
    optimizer = torch.optim.SGD(space.parameters(), lr=1.0)
    for _ in range(50):
        optimizer.zero_grad()
        (-1000 * space().sum()).backward()
        optimizer.step()
        assert space().item() <= 0


@pytest.mark.parametrize("initial", [-3.0, -1e-6, 1e-6, 2.0, (-0.5, 4.0)])
def test_a_signed_curvature_starts_as_asked_and_keeps_its_sign(initial):
    space = SignedCurvature(2, initial=initial)
    wanted = torch.tensor(initial).expand(2).unsqueeze(-1)
    torch.testing.assert_close(space(), wanted)
    for theta in (-200.0, 50.0):
        with torch.no_grad():
            space.curvature.fill_(theta)
        assert (space() * wanted >= 0).all()


@pytest.mark.parametrize("initial", [0.0, 1.0, [-1.0, 0.5]])
def test_a_start_that_is_not_negative_is_refused(initial):
    with pytest.raises(UsageError, match="be negative"):
        NegativeCurvature(2, initial=initial)
