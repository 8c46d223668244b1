"""A walk to the edge of the ball, along it and back: what is stored there must leave digits for the way home."""

import pytest
import torch

from gyroformer import geometry as g
from gyroformer.testing.samples import random_points

STEPS = 100
#: how far from the opposite point the way back may end, in radii of the ball: measured 0.03 and 0.001
MISSED = {torch.float32: 0.1, torch.float64: 0.005}


def walk_out(x, v, *, k, eps=-1.0):
    """Follow v, far too long, and carry it along, again and again; return where that leads, and v there."""
    thousand = torch.tensor(1000.0, dtype=x.dtype)
    for _ in range(STEPS):
        end = g.project(g.expmap(x, v, k=k), k=k, eps=eps)
        end = g.project(g.mobius_scalar_mul(thousand, end, k=k), k=k, eps=eps)
        v = g.parallel_transport(x, end, v, k=k)
        assert end.isfinite().all()
        assert v.isfinite().all()
        x = end
    return x, v


def missed(k, dim, dtype, **margin):
    """Return how far, in radii, the way back from the edge ends from the opposite point, at most."""
    generator = torch.Generator().manual_seed(dim)
    x = random_points(60, dim, k=k, generator=generator, dtype=dtype, share=0.9)
    v = 1e7 * torch.randn(60, dim, generator=generator, dtype=dtype)
    x, v = walk_out(x, v, k=k, **margin)
    return ((g.expmap(x, -v, k=k) + x).norm(dim=-1) * abs(k) ** 0.5).max().item()


@pytest.mark.parametrize("dim", [2, 10])
@pytest.mark.parametrize("k", [-0.1, -1.0, -3.0])
def test_a_walk_to_infinity_and_back_ends_at_the_opposite_point(k, dim, dtype):
    assert missed(k, dim, dtype) < MISSED[dtype]


def test_the_error_of_the_way_back_falls_with_the_square_of_the_margin(dtype):
    root = torch.finfo(dtype).eps ** 0.5
    near, far = (missed(-1.0, 10, dtype, eps=units * root) for units in (4, 16))
    assert 4 < near / far < 64
    # at some rounding units from the edge nothing of the direction is left
    assert missed(-1.0, 10, dtype, eps=8 * root**2) > 1
