"""The helpers must fail on wrong code."""

import pytest
import torch

from gyroformer import geometry as g
from gyroformer.testing import (
    assert_isometry,
    assert_matches_reference,
    assert_scaling_law,
    assert_smooth_through_zero,
    random_points,
    random_rotation,
)


def sqrt_of_abs_k(u, *, k):
    """An exponential map through √|k|, as published code has it."""
    s = k.abs().clamp(min=1e-15).sqrt()
    n = u.norm(dim=-1, keepdim=True)
    return torch.where(k > 0, (s * n).tan(), (s * n).tanh()) / s * u / n


@pytest.fixture
def u():
    return torch.tensor([0.3, -0.2, 0.1])


def test_isometry(generator):
    x = random_points(5, 3, k=-1.0, generator=generator)
    rotation = random_rotation(3, generator=generator)
    assert_isometry(lambda p: p @ rotation.mT, x, k=-1.0, rtol=1e-12)
    with pytest.raises(AssertionError, match="distances change by a factor"):
        assert_isometry(lambda p: 1.0001 * p, x, k=-1.0, rtol=1e-6)
    assert_isometry(lambda p: 2 * p, x, k=-1.0, k_after=-0.25, rtol=1.1)
    with pytest.raises(AssertionError):
        assert_isometry(lambda p: p, x, k=-1.0, k_after=-0.9, rtol=1e-6)


@pytest.mark.parametrize("k", [-1e-6, 1e-6, 0.0])
def test_reference_sees_a_wrong_curvature_gradient(u, k):
    assert_matches_reference("expmap0", [u], k=k, rtol=1e-6)
    with pytest.raises(AssertionError, match="gradient in k"):
        assert_matches_reference("expmap0", [u], k=k, rtol=1e-3, function=sqrt_of_abs_k)


def test_reference_sees_a_wrong_value_and_a_wrong_gradient(u):
    with pytest.raises(AssertionError, match="'value'"):
        assert_matches_reference("logmap0", [u], k=-1.0, rtol=1e-5, function=g.expmap0)
    frozen = lambda v, *, k: g.expmap0(v.detach(), k=k) + 0 * v  # noqa: E731
    with pytest.raises(AssertionError, match="gradient in argument 0"):
        assert_matches_reference("expmap0", [u], k=-1.0, rtol=1e-5, function=frozen)
    with pytest.raises(AssertionError, match="nan"):
        assert_matches_reference("expmap0", [u], k=-1.0, rtol=1e-5, function=lambda v, *, k: v / (k + 1))


def test_scaling_sees_a_fixed_epsilon(u):
    assert_scaling_law(g.expmap0, [u], k=-0.8)
    with pytest.raises(AssertionError, match="values change when lengths are divided"):
        assert_scaling_law(lambda v, *, k: g.expmap0(v, k=k - 1e-6), [u], k=-0.8)


def test_smoothness_sees_a_jump_and_a_kink(u):
    u = u.double()
    assert_smooth_through_zero(g.expmap0, [u], rtol=1e-12)
    with pytest.raises(AssertionError, match="off the tangent"):
        assert_smooth_through_zero(lambda v, *, k: g.expmap0(v, k=k) + (k > 0) * 1e-9, [u], rtol=1e-12)
    with pytest.raises(AssertionError, match=r"derivative jumps|off the tangent"):
        assert_smooth_through_zero(lambda v, *, k: g.expmap0(v, k=k.abs()), [u], rtol=1e-12)
