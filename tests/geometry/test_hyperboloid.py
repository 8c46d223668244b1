"""The hyperboloid against 60 digits of its definitions, and the laws it must obey."""

import mpmath as mp
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gyroformer import geometry
from gyroformer.geometry import hyperboloid as hyp
from gyroformer.geometry.quadric import REACH
from gyroformer.ops.lifted import sine_cosine
from gyroformer.testing import assert_matches_reference

CURVATURES = [-10.0, -2.3, -1.0, -1e-3, -1e-6, -1e-8]
RTOL = {torch.float32: 1.2e-7, torch.float64: 1e-10}
#: float64 has no wider format: close together far out its rounding is amplified by the condition number
CONDITIONED = 1e-8
SIZE = 3


# -- the definitions, in ambient coordinates --------------------------------------------------------------


def euclid(a, b):
    return mp.fsum(p * q for p, q in zip(a, b, strict=True))


def lorentz(a, b):
    return euclid(a[1:], b[1:]) - a[0] * b[0]


def lifted(x, k):
    return [mp.sqrt(euclid(x[1:], x[1:]) - 1 / k), *x[1:]]


def tangent(x, v, k):
    return [euclid(x[1:], v[1:]) / lifted(x, k)[0], *v[1:]]


def combine(a, x, b, y):
    return [a * p + b * q for p, q in zip(x, y, strict=True)]


def exp(x, v, k):
    x, v = lifted(x, k), tangent(x, v, k)
    size = mp.sqrt(-k * lorentz(v, v))
    return combine(mp.cosh(size), x, mp.sinh(size) / size if size else 1, v)


def distance(x, y, k):
    # the derivative in k of a tiny distance is 1e-50 of the terms it is a difference of
    with mp.workdps(130):
        return mp.acosh(k * lorentz(lifted(x, k), lifted(y, k))) / mp.sqrt(-k)


def log(x, y, k):
    x, y = lifted(x, k), lifted(y, k)
    cosine = k * lorentz(x, y)
    angle = mp.acosh(cosine)
    return [angle / mp.sinh(angle) * (q - cosine * p) for p, q in zip(x, y, strict=True)]


def transport0(y, u, k):
    y, origin = lifted(y, k), [1 / mp.sqrt(-k), *[0] * len(u)]
    u = [mp.mpf(0), *u]
    factor = lorentz(y, u) / (-1 / k - lorentz(origin, y))
    return [p + factor * (q + o) for p, q, o in zip(u, y, origin, strict=True)]


def transport0back(x, v, k):
    x, v, origin = lifted(x, k), tangent(x, v, k), [1 / mp.sqrt(-k), *[0] * (len(x) - 1)]
    factor = lorentz(origin, v) / (-1 / k - lorentz(origin, x))
    return [p + factor * (q + o) for p, q, o in zip(v, x, origin, strict=True)][1:]


def center(points, weights, k):
    rows = [lifted(points[i : i + SIZE + 1], k) for i in range(0, len(points), SIZE + 1)]
    total = [mp.fsum(w * row[j] for w, row in zip(weights, rows, strict=True)) for j in range(SIZE + 1)]
    return [p / mp.sqrt(k * lorentz(total, total)) for p in total]


def klein_mean(points, weights, k):
    rows = [points[i : i + SIZE] for i in range(0, len(points), SIZE)]
    gammas = [w / mp.sqrt(1 + k * euclid(v, v)) for w, v in zip(weights, rows, strict=True)]
    return [
        mp.fsum(g * v[j] for g, v in zip(gammas, rows, strict=True)) / mp.fsum(gammas) for j in range(SIZE)
    ]


def half_angle(x, k):
    t = lifted(x, k)[0] * mp.sqrt(-k)
    cosine = mp.sqrt((1 + t) / 2)
    return [*[p / (2 * cosine) for p in x[1:]], cosine]


DEFINITIONS = {
    "from_space": lambda s, k: lifted([0, *s], k),
    "expmap0": lambda u, k: exp([mp.mpf(0)] * (len(u) + 1), [0, *u], k),
    "logmap0": lambda x, k: log([mp.mpf(0)] * len(x), x, k)[1:] if any(x[1:]) else x[1:],
    "expmap": exp,
    "logmap": log,
    "dist": lambda x, y, k: [distance(x, y, k)],
    "squared_dist": lambda x, y, k: [distance(x, y, k) ** 2],
    "pairwise_squared_dist": lambda x, y, k: [distance(x, y, k) ** 2],
    "parallel_transport0": transport0,
    "parallel_transport0back": transport0back,
    "centroid": center,
    "to_stereographic": lambda x, k: [p / (1 + mp.sqrt(-k) * lifted(x, k)[0]) for p in x[1:]],
    "from_stereographic": lambda p, k: lifted([0, *[2 * q / (1 + k * euclid(p, p)) for q in p]], k),
    "to_half_angle": half_angle,
    "to_klein": lambda x, k: [p / (mp.sqrt(-k) * lifted(x, k)[0]) for p in x[1:]],
    "from_klein": lambda v, k: lifted([0, *[q / mp.sqrt(1 + k * euclid(v, v)) for q in v]], k),
    "einstein_midpoint": klein_mean,
}
PAIRS = {"dist", "squared_dist", "logmap"}


def run(name):
    """Return the function as the definitions take its arguments."""
    function = getattr(hyp, name)
    if name in ("centroid", "einstein_midpoint"):
        return lambda x, w, k: function(x.reshape(w.numel(), -1), w[None], k=k)[0]
    if name == "pairwise_squared_dist":
        return lambda x, y, k: function(x[None], y[None], k=k)[0]
    if name == "to_half_angle":
        return lambda x, k: torch.cat(function(x, k=k), dim=-1)
    return function


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
    kind = {"close": "ordinary", "opposite": "ordinary", "far and close": "large"}.get(regime, regime)
    u, v = vector(kind, k, generator), vector("tiny" if kind == "tiny" else "ordinary", k, generator)
    x = hyp.expmap0(u, k=k)
    y = hyp.expmap0(
        {"close": u * 1.0001, "far and close": u * 1.0001, "opposite": -u}.get(
            regime, vector(kind, k, generator)
        ),
        k=k,
    )
    if name in ("from_space", "expmap0"):
        return [u]
    if name in PAIRS or name == "pairwise_squared_dist":
        return [x, y]
    if name == "expmap":
        return [x, hyp.parallel_transport0(x, v, k=k)]
    if name == "parallel_transport0":
        return [x, v]
    if name == "parallel_transport0back":
        return [x, torch.cat((torch.zeros(1, dtype=v.dtype), v))]
    if name in ("from_stereographic", "from_klein"):
        return [getattr(hyp, name.replace("from", "to"))(x, k=k)]
    if name in ("centroid", "einstein_midpoint"):
        points = hyp.expmap0(torch.stack([vector(kind, k, generator) for _ in range(3)]), k=k)
        points = points if name == "centroid" else hyp.to_klein(points, k=k)
        return [points.flatten(), torch.softmax(torch.randn(3, generator=generator, dtype=torch.float64), 0)]
    return [x]


CASES = [
    (name, regime)
    for name in DEFINITIONS
    for regime in ("tiny", "ordinary", "large", "close", "far and close", "opposite")
    if name in PAIRS or regime in ("tiny", "ordinary", "large")
]


@pytest.mark.parametrize("name, regime", CASES)
def test_values_and_gradients_match_60_digits(name, regime, dtype):
    generator = torch.Generator().manual_seed(sum(map(ord, name + regime)))
    conditioned = dtype == torch.float64 and regime == "far and close"
    for k in CURVATURES:
        exact_k = torch.tensor(k, dtype=torch.float32).item()
        single = [a.float().to(dtype) for a in arguments(name, regime, exact_k, generator)]
        assert_matches_reference(
            name,
            single,
            k=exact_k,
            rtol=CONDITIONED if conditioned else RTOL[dtype],
            function=run(name),
            definition=DEFINITIONS[name],
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
def test_the_maps_are_inverse_and_lengths_are_distances(seed, k):
    u, v = vectors(seed, k, torch.float64).chunk(2)
    origin = hyp.from_space(torch.zeros_like(u), k=k)
    x = hyp.expmap0(u, k=k)
    close(hyp.logmap0(x, k=k), u, torch.float64)
    close(hyp.dist(origin, x, k=k), u.norm(dim=-1), torch.float64)
    close(hyp.expmap(origin, torch.cat((u[:, :1] * 0, u), -1), k=k)[:, 1:], x[:, 1:], torch.float64)
    moved = hyp.parallel_transport0(x, v, k=k)
    y = hyp.expmap(x, moved, k=k)
    close(hyp.logmap(x, y, k=k), moved, torch.float64, 100)
    close(hyp.dist(x, y, k=k), v.norm(dim=-1), torch.float64, 100)
    close(hyp.parallel_transport0back(x, moved, k=k), v, torch.float64, 10)


@laws
@given(seed=seeds, k=curvature)
def test_it_is_isometric_to_the_stereographic_model(seed, k):
    u = vectors(seed, k, torch.float64)
    x = hyp.expmap0(u, k=k)
    p = hyp.to_stereographic(x, k=k)
    close(p, geometry.expmap0(u / 2, k=k), torch.float64)
    close(hyp.from_stereographic(p, k=k)[:, 1:], x[:, 1:], torch.float64)
    a, b = torch.triu_indices(len(u), len(u), 1)
    close(hyp.dist(x[a], x[b], k=k), geometry.dist(p[a], p[b], k=k), torch.float64)
    v = hyp.to_klein(x, k=k)
    close(hyp.from_klein(v, k=k)[:, 1:], x[:, 1:], torch.float64, 10)


@laws
@given(seed=seeds, k=curvature)
def test_the_half_angle_is_that_of_the_layers(seed, k):
    u = vectors(seed, k, torch.float64)
    x = hyp.expmap0(u, k=k)
    sine, cosine = hyp.to_half_angle(x, k=k)
    # a stereographic tangent vector is half the ambient one
    want_sine, want_cosine = sine_cosine(u / 2, torch.tensor(k, dtype=torch.float64))
    close(sine, want_sine, torch.float64)
    close(cosine, want_cosine, torch.float64)
    close(sine / cosine, hyp.to_stereographic(x, k=k), torch.float64)


def test_points_lie_on_the_hyperboloid_and_the_time_is_not_read(dtype):
    u = vectors(1, -0.7, dtype)
    x = hyp.expmap0(u, k=-0.7)
    fit = x[:, 1:].double().square().sum(-1) - x[:, 0].double().square()
    assert ((fit + 1 / 0.7).abs() <= 4 * torch.finfo(dtype).eps * x[:, 0].double().square()).all()
    spoiled = x.clone()
    spoiled[:, 0] = 7.0
    assert torch.equal(hyp.dist(spoiled[:3], x[3:], k=-0.7), hyp.dist(x[:3], x[3:], k=-0.7))
    assert torch.equal(hyp.from_space(spoiled[:, 1:], k=-0.7), hyp.from_space(x[:, 1:], k=-0.7))


def test_the_distance_is_symmetric_to_the_bit_and_exact_for_close_points(dtype):
    x = hyp.expmap0(vectors(2, -1.0, dtype), k=-1.0)
    y = hyp.expmap0(vectors(3, -1.0, dtype), k=-1.0)
    assert torch.equal(hyp.dist(x, y, k=-1.0), hyp.dist(y, x, k=-1.0))
    assert torch.equal(hyp.dist(x, x, k=-1.0), torch.zeros(6, dtype=dtype))
    step = 16 * torch.finfo(dtype).eps
    near = torch.tensor([[0.0, 1.0, 0.0], [0.0, 1.0, step]], dtype=dtype)
    # orthogonal to the radius the metric is the Euclidean one
    assert hyp.dist(near[0], near[1], k=-1.0).item() == pytest.approx(step, rel=1e-6)


def test_the_squared_distance_is_smooth_where_points_meet(dtype):
    x = hyp.expmap0(vectors(4, -1.0, dtype), k=-1.0)
    y, k = x.clone().requires_grad_(), torch.tensor(-1.0, dtype=dtype, requires_grad=True)
    for function in (hyp.dist, hyp.squared_dist, hyp.pairwise_squared_dist):
        value = function(x, y, k=k)
        same = value.diagonal() if value.dim() == 2 else value
        for grad in torch.autograd.grad(same.sum(), (y, k)):
            assert torch.equal(grad, torch.zeros_like(grad))


def test_all_pairs_equal_one_by_one(dtype):
    x, y = (hyp.expmap0(vectors(seed, -0.3, dtype), k=-0.3) for seed in (5, 6))
    one = hyp.squared_dist(x[:, None], y[None, :4], k=-0.3)
    torch.testing.assert_close(hyp.pairwise_squared_dist(x, y[:4], k=-0.3), one, rtol=1e-6, atol=0)
    per_head = torch.tensor([-0.3, -2.0], dtype=dtype)[:, None, None]
    both = hyp.pairwise_squared_dist(x.expand(2, -1, -1), y.expand(2, -1, -1), k=per_head)
    torch.testing.assert_close(both[0, :, :4], one, rtol=1e-6, atol=0)


def test_the_centroid_is_the_midpoint_and_ignores_the_scale_of_weights(dtype):
    k = -0.8
    x = hyp.expmap0(vectors(7, k, dtype, share=0.5), k=k)  # Klein coordinates saturate farther out
    weights = torch.rand(4, 6, generator=torch.Generator().manual_seed(0), dtype=dtype)
    got = hyp.centroid(x, weights, k=k)
    close(hyp.centroid(x, 1e3 * weights, k=k), got, dtype)
    means = [geometry.weighted_midpoint(hyp.to_stereographic(x, k=k), row, k=k) for row in weights]
    close(hyp.to_stereographic(got, k=k), torch.stack(means), dtype, 3)
    close(hyp.einstein_midpoint(hyp.to_klein(x, k=k), weights, k=k), hyp.to_klein(got, k=k), dtype, 30)
    pair = hyp.centroid(x[:2], torch.ones(1, 2, dtype=dtype), k=k)
    close(hyp.dist(pair, x[:1], k=k), hyp.dist(pair, x[1:2], k=k), dtype, 3)
    close(hyp.dist(pair, x[:1], k=k), hyp.dist(x[:1], x[1:2], k=k) / 2, dtype, 3)


def test_pairs_that_a_gram_matrix_does_not_resolve_are_at_distance_zero(dtype):
    x = hyp.expmap0(vectors(11, -1.0, dtype, count=100, share=3.0), k=-1.0)
    pairs = hyp.pairwise_squared_dist(x, x.clone(), k=-1.0)
    assert torch.equal(pairs.diagonal(), torch.zeros(100, dtype=dtype))
    assert (pairs >= 0).all()


def test_a_centroid_beyond_the_resolution_stays_far_out():
    u = vectors(12, -1.0, torch.float64, count=50)
    # τ² times the rounding unit is 12 here: D² + k|N|², which is 9, is lost in rounding
    x = hyp.expmap0(20 * u / u.norm(dim=-1, keepdim=True), k=-1.0)
    means = hyp.centroid(x[:, None].expand(-1, 3, -1), torch.ones(50, 1, 3, dtype=torch.float64), k=-1.0)
    reached = hyp.logmap0(means, k=-1.0).norm(dim=-1)
    assert (reached > 15).all()
    assert (reached < 20.001).all()


def test_the_centroid_takes_a_sparse_matrix_and_an_empty_row(dtype):
    weights = torch.tensor([[0.5, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 3.0, 0.0]], dtype=dtype)
    x = hyp.expmap0(vectors(8, -1.0, dtype, count=3), k=-1.0).requires_grad_()
    dense = hyp.centroid(x, weights, k=-1.0)
    sparse = hyp.centroid(x, weights.to_sparse_coo(), k=-1.0)
    torch.testing.assert_close(sparse, dense)
    assert dense[1].tolist() == [1.0, 0.0, 0.0, 0.0]
    close(dense[2], x[1].detach(), dtype)
    grad = torch.autograd.grad(sparse.sum(), x)[0]
    torch.testing.assert_close(grad, torch.autograd.grad(dense.sum(), x)[0])
    assert grad.isfinite().all()
    assert hyp.einstein_midpoint(hyp.to_klein(x, k=-1.0), weights, k=-1.0)[1].tolist() == [0.0, 0.0, 0.0]


def test_the_flat_limit(dtype):
    u, v = vectors(9, -1e-8, dtype).chunk(2)
    x, y = hyp.expmap0(u, k=-1e-8), hyp.expmap0(v, k=-1e-8)
    close(hyp.dist(x, y, k=-1e-8), (u - v).norm(dim=-1), dtype, 1e3 if dtype == torch.float64 else 1)


def test_a_curvature_for_each_head_broadcasts():
    u = vectors(10, -1.0, torch.float64)
    k = torch.tensor([-1.0, -0.1], dtype=torch.float64)[:, None, None]
    x = hyp.expmap0(u, k=k)
    assert x.shape == (2, 6, 4)
    assert torch.equal(x[1], hyp.expmap0(u, k=-0.1))
    assert torch.equal(hyp.from_space(u, k=k)[0], hyp.from_space(u, k=-1.0))
    assert hyp.dist(x[:, :3], x[:, 3:], k=k).shape == (2, 3)


def test_a_long_vector_leads_to_the_end_of_the_reach():
    u = torch.tensor([[3e38, 0.0], [0.0, 1e20]], requires_grad=True)
    x = hyp.expmap0(u, k=-1.0)
    assert x.isfinite().all()
    assert hyp.logmap0(x, k=-1.0).norm(dim=-1).tolist() == pytest.approx([REACH[torch.float64]] * 2)
    assert torch.autograd.grad(x.sum(), u)[0].isfinite().all()
    assert hyp.expmap0(u.detach().bfloat16(), k=-1.0).isfinite().all()
