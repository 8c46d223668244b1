"""No finite input gives NaN, in value or gradient; outside the ball the behaviour is the documented one."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gyroformer import geometry as g
from gyroformer.testing.samples import OPERATIONS, operation

# a float32 holds |x| up to 3e38, and its squares, cubes and fourth powers fit float64, where it is computed
SIZES = [0.0, 1e-38, 1e-20, 1e-5, 1.0, 1e5, 1e20, 1e38]
NUMBERS = st.one_of(st.sampled_from([s * x for s in (1, -1) for x in SIZES]), st.floats(-3, 3, width=32))
CURVATURES = st.one_of(
    st.sampled_from([0.0, 1e-30, -1e-30, 1e-8, -1e-8, 1.0, -1.0, 1e4, -1e4]), st.floats(-5, 5, width=32)
)
# a distance or a length of more than 3e38 is infinite in float32, and rightly so
CAN_OVERFLOW = {
    "sin_k",
    "inner",
    "norm",
    "parallel_transport",
    "parallel_transport0",
    "egrad2rgrad",
    "inv_sproj",
}


@settings(max_examples=150, deadline=None, derandomize=True)
@given(numbers=st.lists(NUMBERS, min_size=12, max_size=12), k=CURVATURES)
@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_no_finite_float32_input_gives_nan(name, numbers, k):
    kinds = OPERATIONS[name]
    flat = torch.tensor(numbers, dtype=torch.float32)
    shapes = {"share": (1, 1), "matrix": (2, 2), "small": (2, 1), "ambient": (1, 3)}
    args, used = [], 0
    for kind in kinds:
        shape = shapes.get(kind, (1, 2))
        size = shape[0] * shape[1]
        args.append(flat[used : used + size].reshape(shape).clone().requires_grad_())
        used = (used + size) % 6
    curvature = torch.tensor(k, dtype=torch.float32, requires_grad=True)
    value = operation(name)(*args, k=curvature)
    assert not value.isnan().any(), (value, args, k)
    if value.isfinite().all():
        for grad in torch.autograd.grad(value.sum(), [*args, curvature], allow_unused=True):
            assert grad is None or not grad.isnan().any(), (grad, args, k)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_nan_in_nan_out(name, generator):
    from gyroformer.testing.samples import sample_arguments

    args = sample_arguments(name, k=-0.5, generator=generator, dtype=torch.float64)
    for i in range(len(args)):
        spoiled = [a.clone() for a in args]
        spoiled[i].view(-1)[0] = float("nan")
        assert operation(name)(*spoiled, k=-0.5).isnan().any(), f"argument {i} of {name} hides NaN"


def test_outside_the_ball_is_the_last_shell_inside():
    k = torch.tensor(-1.0)
    outside, edge = torch.tensor([1.2, 0.0]), torch.tensor([1.0, 0.0])
    assert (
        g.lambda_x(outside, k=k) == g.lambda_x(edge, k=k) == pytest.approx(2 / torch.finfo(torch.float64).eps)
    )
    assert torch.isfinite(g.logmap0(outside, k=k)).all()
    assert torch.isfinite(g.dist(outside, -outside, k=k))


def test_project_pulls_back_just_inside():
    k = torch.tensor([[-1.0], [-0.25], [0.0], [4.0]])
    x = torch.full((4, 2), 10.0)
    inside = g.project(x, k=k)
    radius = inside.norm(dim=-1)
    assert radius[:2].tolist() == pytest.approx([1 - 2**-8, 2 * (1 - 2**-8)])
    assert torch.equal(inside[2:], x[2:])
    assert torch.equal(g.project(inside, k=k), inside)
    assert g.project(x, k=k, eps=0.1)[0].norm().item() == pytest.approx(0.9)
    for dtype in (torch.float16, torch.bfloat16):
        assert g.project(x[:1].to(dtype), k=-1.0).norm().item() == pytest.approx(1, rel=0.07)


def test_the_pole_of_addition_is_far_away_and_finite():
    k, x = torch.tensor(1.0), torch.tensor([0.5, 0.0])
    far = g.mobius_add(x, torch.tensor([2.0, 0.0]), k=k)
    assert torch.isfinite(far).all()
    assert g.dist0(far, k=k).item() == pytest.approx(torch.pi)
    assert g.dist(x, g.antipode(x, k=k), k=k).item() == pytest.approx(torch.pi)
    # half a turn along a geodesic is an ordinary length for expmap
    half_turn = torch.tensor([torch.pi / 2, 0.0])
    assert g.dist0(g.expmap(torch.zeros(2), half_turn, k=k), k=k).item() == pytest.approx(torch.pi, abs=1e-6)


def test_the_pole_of_the_sphere_projects_far_away():
    pole = torch.tensor([0.0, 0.0, -1.0], requires_grad=True)
    far = g.sproj(pole, k=1.0)
    assert torch.equal(far, g.antipode(torch.zeros(2), k=1.0))
    assert g.dist0(far, k=1.0).item() == pytest.approx(torch.pi)
    assert torch.autograd.grad(far.sum(), pole)[0].isfinite().all()


@pytest.mark.parametrize("weight", [float("inf"), -1e38, 1e38])
@pytest.mark.parametrize("k", [-0.7, 0.0, 0.7])
def test_a_huge_weight_concerns_its_own_midpoint_only(weight, k, dtype, generator):
    xs = 0.5 * torch.rand(3, 5, 2, generator=generator, dtype=dtype)
    weights = torch.rand(3, 5, generator=generator, dtype=dtype)
    weights[1, 2] = weight
    together = g.weighted_midpoint(xs, weights, k=k, reducedim=[1])
    for row in (0, 2):
        assert torch.equal(together[row], g.weighted_midpoint(xs[row], weights[row], k=k))
    # the huge weight leaves its own point, unless it is infinite
    if weight == 1e38:
        torch.testing.assert_close(together[1], xs[1, 2])
    assert together[1].isnan().all() == (weight == float("inf"))


def test_midpoints_share_weights_that_broadcast(generator):
    xs = 0.5 * torch.rand(4, 3, 2, generator=generator)
    weights = torch.rand(3, generator=generator)
    whole = g.weighted_midpoint(xs, weights, k=-1.0, reducedim=[1])
    assert torch.equal(whole, g.weighted_midpoint(xs, weights.expand(4, 3), k=-1.0, reducedim=[1]))
    # one weight for each result changes nothing
    even = g.weighted_midpoint(xs, 3 * torch.ones(4, 1), k=-1.0, reducedim=[1])
    assert torch.equal(even, g.weighted_midpoint(xs, k=-1.0, reducedim=[1]))
