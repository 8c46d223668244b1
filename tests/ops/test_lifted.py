"""Tangent, half-angle and ambient coordinates against the geometry, in value and gradient."""

import pytest
import torch

from gyroformer import geometry as g
from gyroformer.ops import lifted

CURVATURES = [-2.0, -0.7, -1e-3, -1e-8, 0.0, 1e-8, 1e-3, 0.7, 2.0]


def draw(k, *shape, share=0.9):
    generator = torch.Generator().manual_seed(7)
    u = torch.randn(*shape, generator=generator, dtype=torch.float64)
    return share * u, torch.tensor(k, dtype=torch.float64)


def same_with_gradients(f, h, *inputs, rtol=1e-10):
    leaves = [t.clone().requires_grad_() for t in inputs]
    got, want = f(*leaves), h(*leaves)
    torch.testing.assert_close(got, want, rtol=rtol, atol=rtol)
    cotangent = torch.linspace(-1, 1, want.numel(), dtype=want.dtype).view_as(want)
    ours, theirs = (torch.autograd.grad(y, leaves, cotangent, allow_unused=True) for y in (got, want))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=rtol * 100, atol=rtol * 100)


@pytest.mark.parametrize("k", CURVATURES)
def test_half_angles_name_the_point(k):
    u, k = draw(k, 6, 3)
    same_with_gradients(
        lambda u, k: torch.div(*lifted.sine_cosine(u, k)), lambda u, k: g.expmap0(u, k=k), u, k
    )
    sine, cosine = lifted.sine_cosine(u, k)
    torch.testing.assert_close(
        cosine.square() + k * sine.square().sum(-1, keepdim=True), torch.ones_like(cosine)
    )


@pytest.mark.parametrize("k", CURVATURES)
def test_lift_is_the_ambient_point(k):
    u, k = draw(k, 6, 3)

    def by_definition(u, k):
        x = g.expmap0(u, k=k)
        scale = g.lambda_x(x, k=k, keepdim=True)
        return torch.cat((scale * x, scale - 1), -1)

    same_with_gradients(lambda u, k: lifted.lift(*lifted.sine_cosine(u, k)), by_definition, u, k)


@pytest.mark.parametrize("k", CURVATURES)
@pytest.mark.parametrize("length", [1.0, 1e-12, 1e12])
def test_unlift_inverts_lift_whatever_the_length(k, length):
    u, k = draw(k, 6, 3, share=0.3)
    back = lambda u, k: lifted.unlift(length * lifted.lift(*lifted.sine_cosine(u, k)), k)  # noqa: E731
    same_with_gradients(back, lambda u, k: u + 0 * k, u, k, rtol=1e-9)


@pytest.mark.parametrize("k", CURVATURES)
def test_unlift_of_a_mean_is_the_midpoint(k):
    u, k = draw(k, 5, 3)
    weights = torch.tensor([0.1, 0.5, 0.2, 0.7, 0.3], dtype=torch.float64)

    def ours(u, k):
        return lifted.unlift((weights[:, None] * lifted.lift(*lifted.sine_cosine(u, k))).sum(0), k)

    def theirs(u, k):
        return g.logmap0(g.weighted_midpoint(g.expmap0(u, k=k), weights, k=k), k=k)

    same_with_gradients(ours, theirs, u, k)


@pytest.mark.parametrize("k", CURVATURES)
def test_translate_is_the_mobius_sum(k):
    u, k = draw(k, 6, 3, share=0.5)
    p = u.flip(0) * 0.8 + 0.1

    def ours(p, u, k):
        return lifted.translate(lifted.sine_cosine(p, k), *lifted.sine_cosine(u, k), k)[0]

    def theirs(p, u, k):
        return g.logmap0(g.mobius_add(g.expmap0(p, k=k), g.expmap0(u, k=k), k=k), k=k)

    same_with_gradients(ours, theirs, p, u, k)
    w, sine, cosine = lifted.translate(lifted.sine_cosine(p, k), *lifted.sine_cosine(u, k), k)
    torch.testing.assert_close((sine, cosine), lifted.sine_cosine(w, k))


@pytest.mark.parametrize("k", [-4.0, -1.0])
def test_beyond_reach_the_direction_passes_and_the_length_stops(k):
    u = torch.tensor([[300.0, 400.0]], requires_grad=True)
    sine, cosine = lifted.sine_cosine(u, torch.tensor(k))
    assert torch.isfinite(sine).all()
    torch.testing.assert_close(sine / sine.norm(), torch.tensor([[0.6, 0.8]]))
    assert cosine.item() == pytest.approx(torch.tensor(lifted.REACH).cosh().item(), rel=1e-5)
    (grad,) = torch.autograd.grad(sine[0, 0], u)
    assert torch.isfinite(grad).all()
    assert grad.abs().max() > 0


# beyond 1e12 the true k-derivative, of the order of |u|³, leaves float32
@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 30.0, 1e6, 1e12])
@pytest.mark.parametrize("k", [-20.0, -1e-8, 0.0, 1e-8, 20.0])
def test_no_float32_input_gives_nan(k, scale, generator):
    u, p = (scale * torch.randn(50, 4, generator=generator) for _ in "up")
    u[0], p[1], p[2] = 0, 0, -u[2]
    leaves = [u.requires_grad_(), p.requires_grad_(), torch.tensor(k, requires_grad=True)]
    pair = lifted.sine_cosine(u, leaves[2])
    w, _, _ = lifted.translate(lifted.sine_cosine(p, leaves[2]), *pair, leaves[2])
    back = lifted.unlift(lifted.lift(*pair), leaves[2])
    for result in (w, back):
        assert torch.isfinite(result).all()
        grads = torch.autograd.grad(result.sum(), leaves, retain_graph=True, allow_unused=True)
        assert all(torch.isfinite(grad).all() for grad in grads if grad is not None)
