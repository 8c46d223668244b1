"""The hyperboloid against 60 digits of its definitions, and the laws it must obey."""

import mpmath as mp
import pytest
import torch
from hyperbolic_oracle import hyperbolic_dist, stereographic
from hypothesis import given, settings
from hypothesis import strategies as st

from gyroformer import geometry
from gyroformer.geometry import hyperboloid as hyp
from gyroformer.ops.lifted import sine_cosine, translate_hyperbolic
from gyroformer.testing import assert_matches_reference

CURVATURES = [-10.0, -2.3, -1.0, -1e-3, -1e-6, -1e-8]
RTOL = {torch.float32: 1.2e-7, torch.float64: 1e-10}
SIZE = 3


# -- the definitions, in ambient coordinates --------------------------------------------------------------


def euclid(a, b):
    return mp.fsum(p * q for p, q in zip(a, b, strict=True))


def lorentz(a, b):
    return euclid(a[1:], b[1:]) - a[0] * b[0]


def lifted(x, k):
    return [mp.sqrt(euclid(x[1:], x[1:]) - 1 / k), *x[1:]]


def center(points, weights, k):
    rows = [lifted(points[i : i + SIZE + 1], k) for i in range(0, len(points), SIZE + 1)]
    total = [mp.fsum(w * row[j] for w, row in zip(weights, rows, strict=True)) for j in range(SIZE + 1)]
    return [p / mp.sqrt(k * lorentz(total, total)) for p in total]


def half_angle(x, k):
    t = lifted(x, k)[0] * mp.sqrt(-k)
    cosine = mp.sqrt((1 + t) / 2)
    return [*[p / (2 * cosine) for p in x[1:]], cosine]


def moved(x, u, k):
    """Return exp_x of u transported from the pole, in ambient coordinates."""
    x, pole, u = lifted(x, k), [1 / mp.sqrt(-k), 0, 0, 0], [0, *u]
    share = lorentz(x, u) / (1 / k + lorentz(pole, x))
    v = [p - share * (q + r) for p, q, r in zip(u, pole, x, strict=True)]
    angle = mp.sqrt(-k * lorentz(v, v))
    return [mp.cosh(angle) * p + mp.sinh(angle) / angle * q for p, q in zip(x, v, strict=True)]


DEFINITIONS = {
    "from_space": lambda s, k: lifted([0, *s], k),
    "centroid": center,
    "to_half_angle": half_angle,
    "translate": moved,
}


def run(name):
    """Return the function as the definitions take its arguments."""
    function = getattr(hyp, name)
    if name == "centroid":
        return lambda x, w, k: function(x.reshape(w.numel(), -1), w[None], k=k)[0]
    if name == "to_half_angle":
        return lambda x, k: torch.cat(function(x, k=k), dim=-1)
    return function


def reached(u, k):
    """Return the points at the end of tangent vectors u at the origin."""
    angle = abs(k) ** 0.5 * u.norm(dim=-1, keepdim=True)
    return hyp.from_space(u * (angle.sinh() / angle), k=k)


def vector(regime, k, generator):
    """Return a tangent vector at the origin, its length in natural lengths by regime."""
    v = torch.randn(SIZE, generator=generator, dtype=torch.float64)
    share = torch.rand((), generator=generator, dtype=torch.float64)
    natural = abs(k) ** -0.5
    length = {
        "tiny": 1e-5 * (0.5 + share),
        "ordinary": (0.1 + share) * min(1, natural),
        "large": (4 + 3 * share) * natural,
    }
    return v / v.norm() * length[regime]


def arguments(name, regime, k, generator):
    if name == "from_space":
        return [vector(regime, k, generator)]
    if name == "centroid":
        points = reached(torch.stack([vector(regime, k, generator) for _ in range(3)]), k)
        return [points.flatten(), torch.softmax(torch.randn(3, generator=generator, dtype=torch.float64), 0)]
    points = reached(vector(regime, k, generator), k)
    return [points, vector(regime, k, generator)] if name == "translate" else [points]


@pytest.mark.parametrize("regime", ["tiny", "ordinary", "large"])
@pytest.mark.parametrize("name", list(DEFINITIONS))
def test_values_and_gradients_match_60_digits(name, regime, dtype):
    generator = torch.Generator().manual_seed(sum(map(ord, name + regime)))
    for k in CURVATURES:
        exact_k = torch.tensor(k, dtype=torch.float32).item()
        single = [a.float().to(dtype) for a in arguments(name, regime, exact_k, generator)]
        assert_matches_reference(
            name, single, k=exact_k, rtol=RTOL[dtype], function=run(name), definition=DEFINITIONS[name]
        )


# -- laws -----------------------------------------------------------------------------------------------------

curvature = st.one_of(st.sampled_from(CURVATURES), st.floats(-4, -1e-6))
seeds = st.integers(0, 2**32 - 1)
laws = settings(max_examples=25, deadline=None, derandomize=True)


def vectors(seed, k, dtype, count=6, share=2.0):
    v = torch.randn(count, SIZE, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (share * v * min(1.0, abs(k) ** -0.5)).to(dtype)


def close(got, want, dtype, scale=1.0):
    torch.testing.assert_close(
        got, want, rtol=RTOL[dtype] * 10 * scale, atol=RTOL[dtype] * scale * want.abs().max().item()
    )


@laws
@given(seed=seeds, k=curvature)
def test_the_half_angle_is_that_of_the_layers(seed, k):
    u = vectors(seed, k, torch.float64)
    x = reached(u, k)
    sine, cosine = hyp.to_half_angle(x, k=k)
    # a stereographic tangent vector is half the ambient one
    want_sine, want_cosine = sine_cosine(u / 2, torch.tensor(k, dtype=torch.float64))
    close(sine, want_sine, torch.float64)
    close(cosine, want_cosine, torch.float64)
    close(sine / cosine, stereographic(x[:, 1:], k), torch.float64)


@laws
@given(seed=seeds, k=curvature)
def test_a_translation_is_an_isometry_that_takes_the_pole_to_the_end_of_its_vector(seed, k):
    u = vectors(seed, k, torch.float64)
    pole = hyp.from_space(torch.zeros(SIZE, dtype=torch.float64), k=k)
    close(hyp.translate(pole, u, k=k), reached(u, k), torch.float64)
    # x moved by u is x (+) exp_0 u: as far from x as u is long, and -x moves x back to the pole
    x = reached(u.flip(0), k)
    there = hyp.translate(x, u, k=k)
    close(hyperbolic_dist(x[:, 1:], there[:, 1:], k), u.norm(dim=-1), torch.float64, scale=100)
    # the same translation as that of the layers, which is by half angles
    number = torch.tensor(k, dtype=torch.float64)
    same = translate_hyperbolic(hyp.to_half_angle(x, k=k), *sine_cosine(u / 2, number), number)
    close(reached(2 * same, k), there, torch.float64, scale=100)
    back = hyp.translate(x, -u.flip(0), k=k)
    assert back[:, 1:].abs().max() <= 1e-10 * x.abs().max()


def test_points_lie_on_the_hyperboloid_and_the_time_is_not_read(dtype):
    x = reached(vectors(1, -0.7, dtype), -0.7)
    fit = x[:, 1:].double().square().sum(-1) - x[:, 0].double().square()
    assert ((fit + 1 / 0.7).abs() <= 4 * torch.finfo(dtype).eps * x[:, 0].double().square()).all()
    spoiled = x.clone()
    spoiled[:, 0] = 7.0
    weights = torch.rand(2, 6, generator=torch.Generator().manual_seed(0), dtype=dtype)
    assert torch.equal(hyp.centroid(spoiled, weights, k=-0.7), hyp.centroid(x, weights, k=-0.7))
    for got, want in zip(hyp.to_half_angle(spoiled, k=-0.7), hyp.to_half_angle(x, k=-0.7), strict=True):
        assert torch.equal(got, want)


def test_the_centroid_is_the_midpoint_and_ignores_the_scale_of_weights(dtype):
    k = -0.8
    x = reached(vectors(7, k, dtype, share=0.5), k)
    weights = torch.rand(4, 6, generator=torch.Generator().manual_seed(0), dtype=dtype)
    got = hyp.centroid(x, weights, k=k)
    close(hyp.centroid(x, 1e3 * weights, k=k), got, dtype)
    means = [geometry.weighted_midpoint(stereographic(x[:, 1:], k), row, k=k) for row in weights]
    close(stereographic(got[:, 1:], k), torch.stack(means), dtype, 3)
    pair = hyp.centroid(x[:2], torch.ones(1, 2, dtype=dtype), k=k)[:, 1:]
    first, second = x[:1, 1:], x[1:2, 1:]
    close(hyperbolic_dist(pair, first, k), hyperbolic_dist(pair, second, k), dtype, 3)
    close(hyperbolic_dist(pair, first, k), hyperbolic_dist(first, second, k) / 2, dtype, 3)


def test_a_centroid_beyond_the_resolution_stays_far_out():
    u = vectors(12, -1.0, torch.float64, count=50)
    # τ² times the rounding unit is 12 here: D² + k|N|², which is 9, is lost in rounding
    x = reached(20 * u / u.norm(dim=-1, keepdim=True), -1.0)
    means = hyp.centroid(x[:, None].expand(-1, 3, -1), torch.ones(50, 1, 3, dtype=torch.float64), k=-1.0)
    away = means[..., 1:].norm(dim=-1).asinh()
    assert (away > 15).all()
    assert (away < 20.001).all()


def test_the_centroid_takes_a_sparse_matrix_and_an_empty_row(dtype):
    weights = torch.tensor([[0.5, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 3.0, 0.0]], dtype=dtype)
    x = reached(vectors(8, -1.0, dtype, count=3), -1.0).requires_grad_()
    dense = hyp.centroid(x, weights, k=-1.0)
    sparse = hyp.centroid(x, weights.to_sparse_coo(), k=-1.0)
    torch.testing.assert_close(sparse, dense)
    assert dense[1].tolist() == [1.0, 0.0, 0.0, 0.0]
    close(dense[2], x[1].detach(), dtype)
    grad = torch.autograd.grad(sparse.sum(), x)[0]
    torch.testing.assert_close(grad, torch.autograd.grad(dense.sum(), x)[0])
    assert grad.isfinite().all()


def test_a_curvature_for_each_head_broadcasts():
    s = vectors(10, -1.0, torch.float64)
    k = torch.tensor([-1.0, -0.1], dtype=torch.float64)[:, None, None]
    x = hyp.from_space(s, k=k)
    assert x.shape == (2, 6, 4)
    for place, one in enumerate((-1.0, -0.1)):
        assert torch.equal(x[place], hyp.from_space(s, k=one))
