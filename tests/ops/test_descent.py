"""Points that go downhill along geodesics: the slope of a step, its length, and the way to a minimum."""

import pytest
import torch

from gyroformer.ops.descent import Descent
from gyroformer.ops.lifted import sine_cosine, translate
from gyroformer.ops.positions import StereographicPositions

CURVATURES = [[[-3.0]], [[-1e-6]], [[0.0]], [[0.7]], [[-1.0], [0.5]]]


def points(count, k, dtype=torch.float64):
    u = 0.6 * torch.randn(count, len(k), 3, generator=torch.Generator().manual_seed(0), dtype=dtype)
    return sine_cosine(u, k)


@pytest.mark.parametrize("k", CURVATURES)
def test_the_slope_is_that_of_a_step_from_the_point(k):
    k = torch.tensor(k, dtype=torch.float64)
    sine, cosine = points(7, k)
    weights = [
        torch.randn(x.shape, generator=torch.Generator().manual_seed(1)).double() for x in (sine, cosine)
    ]
    step = torch.zeros_like(sine, requires_grad=True)
    _, p, c = translate((sine, cosine), *sine_cosine(step, k), k)
    (want,) = torch.autograd.grad((weights[0] * p).sum() + (weights[1] * c).sum(), step)
    torch.testing.assert_close(Descent(sine, cosine, k)._local(*weights), want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("k", CURVATURES)
def test_points_come_to_the_nearest_of_their_targets(k, dtype):
    k = torch.tensor(k, dtype=dtype)
    sine, cosine = points(20, k, dtype)
    goal = torch.arange(10, 20)
    way = Descent(sine[:10], cosine[:10], k)
    for step in range(200):
        p, c = (x.detach().requires_grad_() for x in (way.sine, way.cosine))
        whole = StereographicPositions(torch.cat((p, sine[10:])), torch.cat((c, cosine[10:])), k)
        loss = whole.pair_squared_dist(torch.arange(10), goal).sum()
        way.step(*torch.autograd.grad(loss, (p, c)), 0.1 * (1 - step / 200))
    whole = StereographicPositions(torch.cat((way.sine, sine[10:])), torch.cat((way.cosine, cosine[10:])), k)
    assert float(whole.pair_squared_dist(torch.arange(10), goal).max()) < 1e-2


@pytest.mark.parametrize("k", CURVATURES)
def test_the_first_step_is_as_long_everywhere(k):
    k = torch.tensor(k, dtype=torch.float64)
    sine, cosine = points(9, k)
    way = Descent(sine, cosine, k)
    slopes = [
        torch.randn(x.shape, generator=torch.Generator().manual_seed(3)).double() for x in (sine, cosine)
    ]
    way.step(*slopes, 0.01)
    for head in range(len(k)):
        both = StereographicPositions(
            torch.cat((sine, way.sine))[:, head : head + 1],
            torch.cat((cosine, way.cosine))[:, head : head + 1],
            k[head : head + 1],
        )
        far = both.pair_squared_dist(torch.arange(9), torch.arange(9, 18)).sqrt()
        # a vector of three entries of size 1 on average, and a distance of twice its length
        torch.testing.assert_close(far, torch.full_like(far, 0.02 * 3**0.5), rtol=1e-6, atol=0)
