"""Attention over points against the paper's own formula, evaluated slowly in float64 by the geometry."""

import pytest
import torch

from gyroformer import geometry as g
from gyroformer.errors import UsageError
from gyroformer.nn.functional import stereographic_attention
from gyroformer.ops.attention import KINDS
from gyroformer.ops.feature_map import feature_map
from gyroformer.testing import random_points

CURVATURES = [-2.0, -0.5, -1e-8, 0.0, 1e-8, 0.5, 2.0]


def by_definition(query, key, value, k, kind, mask=None):
    q, key = (g.parallel_transport0back(value, t, k=k) for t in (query, key))
    if kind == "softmax":
        weight = torch.exp(q @ key.mT / q.size(-1) ** 0.5)
    else:
        weight = feature_map(q) @ feature_map(key).mT
    if mask is not None:
        weight = weight * mask[:, None, None, :]
    # (B, H, i, j, d): every midpoint from all points, one by one
    spread = value.unsqueeze(-3).expand(*weight.shape, value.size(-1))
    return g.weighted_midpoint(spread, weight, k=k.unsqueeze(-1), reducedim=[-2])


def draw(k, share=0.8, shape=(2, 2, 5, 3)):
    generator = torch.Generator().manual_seed(3)
    value = random_points(*shape, k=k, generator=generator, share=share)
    q, key = (torch.randn(*shape, generator=generator, dtype=torch.float64) for _ in "qk")
    return [t.requires_grad_() for t in (q, key, value)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", CURVATURES)
def test_equals_the_definition_in_value_and_gradient(k, kind):
    leaves = [*draw(k), torch.full((2, 1, 1), k, dtype=torch.float64, requires_grad=True)]
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    real = mask[:, None, :, None]
    got = stereographic_attention(*leaves[:3], k=leaves[3], kind=kind, mask=mask)
    want = by_definition(*leaves, kind, mask)
    torch.testing.assert_close(got * real, want * real, rtol=1e-10, atol=1e-11)
    assert (got[1, :, 3:] == 0).all()
    cotangent = torch.linspace(-1, 1, got.numel(), dtype=got.dtype).view_as(got) * real
    grads = [torch.autograd.grad(out, leaves, cotangent) for out in (got, want)]
    for ours, theirs in zip(*grads, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_past_the_equator_zero_and_negative_denominators(kind):
    """Values around the antipode of the origin make D = Σα(λ - 1) negative; on the equator it is zero."""
    k = torch.ones(1, 1, 1, dtype=torch.float64)
    q, key, value = draw(1.0, shape=(1, 1, 4, 3))
    far = g.antipode(value.detach(), k=k).requires_grad_()
    got = stereographic_attention(q, key, far, k=k, kind=kind)
    torch.testing.assert_close(got, by_definition(q, key, far, k, kind), rtol=1e-8, atol=1e-8)
    equator = (value / value.norm(dim=-1, keepdim=True)).detach().requires_grad_()
    got = stereographic_attention(q, key, equator, k=k, kind=kind)
    assert torch.isfinite(torch.autograd.grad(got.sum(), equator)[0]).all()
    torch.testing.assert_close(got.norm(dim=-1), torch.ones(1, 1, 4, dtype=torch.float64))


def test_flat_space_is_ordinary_attention():
    q, key, value = draw(0.0)
    got = stereographic_attention(q, key, value, k=0.0, kind="softmax")
    torch.testing.assert_close(got, torch.nn.functional.scaled_dot_product_attention(q, key, value))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [-20.0, 0.0, 20.0])
def test_no_nan_in_float32_near_the_edge(k, kind):
    q, key, value = (t.float() for t in draw(k, share=1 - 1e-6 if k < 0 else 100.0))
    leaves = [t.detach().requires_grad_() for t in (100 * q, 100 * key, value)]
    out = stereographic_attention(*leaves, k=k, kind=kind)
    assert torch.isfinite(out).all()
    assert all(torch.isfinite(t).all() for t in torch.autograd.grad(out.sum(), leaves))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"kind": "quadratic"}, "kind must be one of softmax, linear"),
        ({"mask": torch.ones(2, 4, dtype=torch.bool)}, r"\(B, N\) = \(2, 5\); got \(2, 4\)"),
        ({"mask": torch.ones(2, 5)}, "mask must be boolean"),
        ({"key": torch.zeros(2, 2, 4, 3)}, "one shape"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    arguments = dict(zip(("query", "key", "value"), draw(0.0), strict=True)) | {"k": 0.0} | change
    with pytest.raises(UsageError, match=message):
        stereographic_attention(**arguments)
