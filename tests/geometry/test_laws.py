"""The laws of gyrovector spaces, in both formats, at every sign of k, close to 0, and at odd curvatures."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gyroformer import geometry as g
from gyroformer.testing import (
    assert_isometry,
    assert_scaling_law,
    assert_smooth_through_zero,
    random_points,
    random_rotation,
)
from gyroformer.testing.samples import DEGREE, OPERATIONS, operation, sample_arguments

CURVATURES = [-2.3, -1.0, -1e-3, -1e-8, -1e-9, 0.0, 1e-9, 1e-8, 1e-3, 0.7, 2.0]
RTOL = {torch.float32: 2e-6, torch.float64: 1e-13}

curvature = st.one_of(st.sampled_from(CURVATURES), st.floats(-4, 4))
seeds = st.integers(0, 2**32 - 1)
laws = settings(max_examples=60, deadline=None, derandomize=True)


def close(got, want, dtype, scale=1.0):
    torch.testing.assert_close(got, want, rtol=RTOL[dtype] * scale, atol=RTOL[dtype] * scale)


class Drawn:
    """Points of one random space."""

    def __init__(self, seed, k, dtype, share=0.6):
        self.generator = torch.Generator().manual_seed(seed)
        self.k = torch.tensor(k, dtype=dtype)
        self.share, self.dtype = share, dtype

    def points(self, count=4, size=3):
        k = self.k.item()
        return random_points(count, size, k=k, generator=self.generator, dtype=self.dtype, share=self.share)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"], scope="module")
def dtype(request):
    return request.param


@laws
@given(seed=seeds, k=curvature)
def test_identity_inverse_and_left_cancellation(dtype, seed, k):
    drawn = Drawn(seed, k, dtype)
    x, y, k = drawn.points(), drawn.points(), drawn.k
    zero = torch.zeros_like(x)
    assert torch.equal(g.mobius_add(zero, x, k=k), x)
    assert torch.equal(g.mobius_add(x, zero, k=k), x)
    assert torch.equal(g.mobius_add(-x, x, k=k), zero)
    close(g.mobius_add(-x, g.mobius_add(x, y, k=k), k=k), y, dtype, 20)


@laws
@given(seed=seeds, k=curvature)
def test_gyrocommutative_and_gyroassociative(dtype, seed, k):
    drawn = Drawn(seed, k, dtype, share=0.4)
    x, y, z, k = drawn.points(), drawn.points(), drawn.points(), drawn.k
    add = lambda a, b: g.mobius_add(a, b, k=k)  # noqa: E731
    close(add(x, y), g.gyration(x, y, add(y, x), k=k), dtype, 20)
    close(add(x, add(y, z)), add(add(x, y), g.gyration(x, y, z, k=k)), dtype, 40)
    close(g.gyration(x, y, z, k=k), add(-add(x, y), add(x, add(y, z))), dtype, 40)


@laws
@given(seed=seeds, k=curvature)
def test_gyration_is_a_rotation_with_an_inverse(dtype, seed, k):
    drawn = Drawn(seed, k, dtype)
    x, y, u, k = drawn.points(), drawn.points(), 100 * drawn.points(), drawn.k
    turned = g.gyration(x, y, u, k=k)
    close(turned.norm(dim=-1), u.norm(dim=-1), dtype, 10)
    close(g.gyration(y, x, turned, k=k) / 100, u / 100, dtype, 10)


@laws
@given(seed=seeds, k=curvature)
def test_coaddition_commutes_and_is_what_it_says(dtype, seed, k):
    drawn = Drawn(seed, k, dtype)
    x, y, k = drawn.points(), drawn.points(), drawn.k
    close(g.mobius_coadd(x, y, k=k), g.mobius_coadd(y, x, k=k), dtype)
    close(g.mobius_coadd(x, y, k=k), g.mobius_add(x, g.gyration(x, -y, y, k=k), k=k), dtype, 20)
    close(g.mobius_cosub(g.mobius_add(x, y, k=k), y, k=k), x, dtype, 40)


@laws
@given(seed=seeds, k=curvature, r=st.floats(-1, 1), s=st.floats(-1, 1))
def test_scalar_multiplication_is_a_module_action(dtype, seed, k, r, s):
    drawn = Drawn(seed, k, dtype, share=0.4)
    x, k = drawn.points(), drawn.k
    times = lambda a, p: g.mobius_scalar_mul(torch.tensor(a, dtype=dtype), p, k=k)  # noqa: E731
    close(times(r + s, x), g.mobius_add(times(r, x), times(s, x), k=k), dtype, 20)
    close(times(r * s, x), times(r, times(s, x)), dtype, 20)
    close(times(3.0, x), g.mobius_add(x, g.mobius_add(x, x, k=k), k=k), dtype, 20)


@laws
@given(seed=seeds, k=curvature)
def test_exponential_and_logarithm_are_inverse(dtype, seed, k):
    drawn = Drawn(seed, k, dtype)
    x, y, u, k = drawn.points(), drawn.points(), drawn.points(), drawn.k
    close(g.expmap(x, g.logmap(x, y, k=k), k=k), y, dtype, 20)
    close(g.logmap(x, g.expmap(x, u / 2, k=k), k=k), u / 2, dtype, 40)
    close(g.expmap0(g.logmap0(y, k=k), k=k), y, dtype, 10)
    close(g.expmap(torch.zeros_like(u), u, k=k), g.expmap0(u, k=k), dtype, 10)
    close(g.dist(x, g.expmap(x, u / 2, k=k), k=k), g.norm(x, u / 2, k=k), dtype, 40)


@laws
@given(seed=seeds, k=curvature)
def test_distance_is_a_metric_and_isometries_keep_it(dtype, seed, k):
    drawn = Drawn(seed, k, dtype)
    x, y, z, k = drawn.points(), drawn.points(), drawn.points(), drawn.k
    xy, yz, xz = g.dist(x, y, k=k), g.dist(y, z, k=k), g.dist(x, z, k=k)
    close(xy, g.dist(y, x, k=k), dtype)
    assert (xz <= (xy + yz) * (1 + RTOL[dtype])).all()
    assert torch.equal(g.dist(x, x, k=k), torch.zeros(4, dtype=dtype))
    close(g.dist(torch.zeros_like(x), x, k=k), g.dist0(x, k=k), dtype)
    close(g.pairwise_dist(x, y, k=k).diagonal(), xy, dtype, 1e3 if dtype == torch.float64 else 1)
    rotation = random_rotation(3, generator=drawn.generator, dtype=dtype)
    assert_isometry(lambda p: p @ rotation.mT, x, k=k, rtol=100 * RTOL[dtype])
    shift = drawn.points(1) / 2
    assert_isometry(lambda p: g.mobius_add(shift, p, k=k), x, k=k, rtol=200 * RTOL[dtype])


@laws
@given(seed=seeds, k=curvature)
def test_transport_keeps_inner_products_and_inverts(dtype, seed, k):
    drawn = Drawn(seed, k, dtype)
    x, y, u, v, k = drawn.points(), drawn.points(), drawn.points(), drawn.points(), drawn.k
    there = lambda w: g.parallel_transport(x, y, w, k=k)  # noqa: E731
    close(g.inner(y, there(u), there(v), k=k), g.inner(x, u, v, k=k), dtype, 20)
    close(g.parallel_transport(y, x, there(u), k=k), u, dtype, 20)
    zero = torch.zeros_like(x)
    close(g.parallel_transport0(y, u, k=k), g.parallel_transport(zero, y, u, k=k), dtype, 10)
    close(g.parallel_transport0back(y, u, k=k), g.parallel_transport(y, zero, u, k=k), dtype, 10)
    # along a geodesic its own direction is carried along
    arrived = g.parallel_transport(x, y, g.logmap(x, y, k=k), k=k)
    close(arrived, -g.logmap(y, x, k=k), dtype, 40)


@laws
@given(seed=seeds, k=curvature)
def test_geodesics(dtype, seed, k):
    drawn = Drawn(seed, k, dtype)
    x, y, k = drawn.points(), drawn.points(), drawn.k
    quarter = g.geodesic(torch.tensor(0.25, dtype=dtype), x, y, k=k)
    close(g.dist(x, quarter, k=k), 0.25 * g.dist(x, y, k=k), dtype, 20)
    close(g.geodesic(torch.tensor(1.0, dtype=dtype), x, y, k=k), y, dtype, 20)
    walked = g.geodesic_unit(torch.tensor(0.3, dtype=dtype), x, g.logmap(x, y, k=k), k=k)
    close(g.dist(x, walked, k=k), torch.full((4,), 0.3, dtype=dtype), dtype, 20)


@laws
@given(seed=seeds, k=curvature, factor=st.floats(1e-3, 1e3))
def test_midpoint_invariances(dtype, seed, k, factor):
    drawn = Drawn(seed, k, dtype, share=0.4)
    x, k = drawn.points(5), drawn.k
    weights = torch.rand(5, generator=drawn.generator, dtype=dtype) + 0.1
    mean = lambda p, w: g.weighted_midpoint(p, w, k=k, reducedim=[0])  # noqa: E731
    middle = mean(x, weights)
    close(mean(x, weights * factor), middle, dtype, 10)
    close(mean(x.flip(0), weights.flip(0)), middle, dtype, 10)
    close(mean(x[:1].expand(5, 3), weights), x[0], dtype, 10)
    shift = drawn.points(1)
    close(mean(g.mobius_add(shift, x, k=k), weights), g.mobius_add(shift[0], middle, k=k), dtype, 40)
    half = g.geodesic(torch.tensor(0.5, dtype=dtype), x[0], x[1], k=k)
    close(g.weighted_midpoint(x[:2], k=k, reducedim=[0]), half, dtype, 20)


def is_length(name, position, kind):
    if name == "geodesic_unit":
        return True  # its share is a distance
    return kind not in ("share", "matrix") and not (name == "mobius_pointwise_mul" and position == 0)


@pytest.mark.parametrize("k", CURVATURES)
@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_scaling_is_exact_for_powers_of_two(name, k, dtype, generator):
    if "sproj" in name and k == 0:
        return  # the flat space has an ambient radius by convention only
    arguments = sample_arguments(name, k=k, generator=generator, dtype=dtype)
    lengths = [is_length(name, i, kind) for i, kind in enumerate(OPERATIONS[name])]
    assert_scaling_law(operation(name), arguments, k=k, degree=DEGREE.get(name, 1), lengths=lengths)


SMOOTH = sorted(set(OPERATIONS) - {"antipode", "sproj", "inv_sproj"})  # these have no limit at k = 0


@pytest.mark.parametrize("name", SMOOTH)
def test_value_and_derivative_pass_zero_without_a_jump(name, generator):
    arguments = sample_arguments(name, k=0.0, generator=generator, dtype=torch.float64)
    assert_smooth_through_zero(operation(name), arguments, rtol=1e-12)


@pytest.mark.parametrize("k", CURVATURES)
def test_ambient_coordinates(k, dtype, generator):
    curvature = torch.tensor(k, dtype=dtype)
    x = random_points(6, 3, k=k, generator=generator, dtype=dtype)
    ambient = g.inv_sproj(x, k=curvature)
    close(g.sproj(ambient, k=curvature), x, dtype, 10)
    if abs(k) > 1e-4:  # the quadric |a|² ± b² = ±1/|k|, scaled to 1
        body, last = ambient[:, :-1].double(), ambient[:, -1].double()
        quadric = k * body.square().sum(-1) + abs(k) * last.square()
        close(quadric, torch.ones(6, dtype=torch.float64), dtype, 20)


@pytest.mark.parametrize("k", [0.3, 0.7, 2.5])
def test_antipodes_are_half_a_turn_apart(k, dtype, generator):
    curvature = torch.tensor(k, dtype=dtype)
    x = random_points(6, 3, k=k, generator=generator, dtype=dtype)
    half_turn = torch.full((6,), torch.pi, dtype=dtype) / curvature.sqrt()
    close(g.dist(x, g.antipode(x, k=curvature), k=curvature), half_turn, dtype, 4)
    close(g.antipode(g.antipode(x, k=curvature), k=curvature), x, dtype, 4)
    close(g.dist0(g.antipode(torch.zeros_like(x), k=curvature), k=curvature), half_turn, dtype, 4)


@pytest.mark.parametrize("k", [0.7, 1.0, 2.5])
def test_midpoint_past_the_equator_and_at_zero_denominator(k, dtype, generator):
    curvature = torch.tensor(k, dtype=dtype)
    far = g.antipode(random_points(3, 3, k=k, generator=generator, dtype=dtype, share=0.3), k=curvature)
    near_origin = g.weighted_midpoint(g.antipode(far, k=curvature), k=curvature, reducedim=[0])
    close(
        g.antipode(g.weighted_midpoint(far, k=curvature, reducedim=[0]), k=curvature), near_origin, dtype, 20
    )
    # λ - 1 = 0 on the equator: the mean of two points there lies on the great circle between them
    equator = torch.eye(3, dtype=dtype)[:2] / curvature.sqrt()
    middle = g.weighted_midpoint(equator, k=curvature, reducedim=[0])
    close(middle, torch.tensor([0.5**0.5, 0.5**0.5, 0], dtype=dtype) / curvature.sqrt(), dtype, 4)


@pytest.mark.parametrize("k", [0.7, 1.0, 2.5])
def test_a_negative_weight_is_a_positive_one_at_the_antipode(k, dtype, generator):
    curvature = torch.tensor(k, dtype=dtype)
    x = random_points(4, 3, k=k, generator=generator, dtype=dtype)
    weights = torch.tensor([1.0, -0.3, 0.5, -0.1], dtype=dtype)
    got = g.weighted_midpoint(x, weights, k=curvature, reducedim=[0], posweight=True)
    ambient = (weights[:, None] * g.inv_sproj(x, k=curvature)).sum(0)
    on_sphere = ambient / (ambient.norm() * curvature.sqrt())
    close(got, g.sproj(on_sphere, k=curvature), dtype, 10)
