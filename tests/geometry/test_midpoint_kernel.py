"""The C++ kernel of the midpoint against the torch form: values, gradients, shapes, and when each serves."""

import pytest
import torch

from gyroformer import geometry as g
from gyroformer.compiled import torch_forms
from gyroformer.geometry.kernels import KERNELS

pytestmark = pytest.mark.skipif(KERNELS.library() is None, reason="no C++ compiler on this machine")
CLOSE = {torch.float32: 3e-7, torch.float64: 1e-9}


def drawn(shape, generator, dtype=torch.float32, reach=0.4):
    return (reach * torch.randn(shape, generator=generator, dtype=torch.float64) / shape[-1] ** 0.5).to(dtype)


def results(leaves, options):
    leaves = [None if leaf is None else leaf.detach().clone().requires_grad_() for leaf in leaves]
    value = g.weighted_midpoint(leaves[0], leaves[1], k=leaves[2], **options)
    cotangent = torch.randn(value.shape, generator=torch.Generator().manual_seed(7), dtype=value.dtype)
    return value, *torch.autograd.grad(value, [leaf for leaf in leaves if leaf is not None], cotangent)


def compare(leaves, *, served=True, slack=1.0, **options):
    found = results(leaves, options)
    assert used_kernel(found[0]) == served
    with torch_forms():
        expected = results(leaves, options)
    assert not used_kernel(expected[0])
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        close = slack * CLOSE[one.dtype]
        # the gradient of a single point's weight is 0 but for rounding
        atol = max(1e-12, close * float(other.detach().abs().max()))
        torch.testing.assert_close(one, other, rtol=close, atol=atol)


def used_kernel(value):
    """Whether the kernel is in the value's history."""
    nodes = [value.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is None:
            continue
        if "_Midpoint" in node.name():
            return True
        nodes += [following for following, _ in node.next_functions]
    return False


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("width", [1, 3, 8, 19])
def test_values_and_gradients_are_those_of_the_torch_form(width, weighted, dtype, generator):
    for k in (-1.7, -1e-8, 0.0, 1e-8, 0.9):
        xs = drawn((21, 5, width), generator, dtype)
        weights = torch.rand(21, 5, generator=generator, dtype=dtype) if weighted else None
        compare([xs, weights, torch.tensor(k, dtype=dtype)], reducedim=[1])


@pytest.mark.parametrize("k", [-1.0, 0.7])
def test_negative_weights_far_points_and_the_other_half_of_the_sphere(k, generator):
    xs = drawn((16, 4, 6), generator, torch.float64, reach=3.0)
    weights = torch.randn(16, 4, generator=generator, dtype=torch.float64)
    inside = xs if k > 0 else xs * (0.95 / xs.norm(dim=-1, keepdim=True)).clamp(max=1)
    for options in ({}, {"lincomb": True}, {"posweight": True}):
        # sums of far points that cancel have fewer digits
        compare([inside, weights, torch.tensor(k, dtype=torch.float64)], slack=100, reducedim=[1], **options)


SHAPES = {  # of the points, the weights and the curvature, and what is reduced
    "all points": ((13, 4), (13,), (), None),
    "several dimensions": ((3, 4, 5, 2), (3, 4, 5), (), [0, 2]),
    "coordinates first": ((4, 3, 6), (3, 6), (), [2]),
    "a k for each head": ((10, 3, 4), (10, 3), (3, 1), [0]),
    "a k for each result": ((7, 5, 4), (7, 5), (7, 1, 1), [1]),
    "one weight for each place": ((7, 5, 4), (5,), (), [1]),
    "one point each": ((9, 1, 4), (9, 1), (), [1]),
}


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name, keepdim, generator):
    points, weights, curvature, reduced = SHAPES[name]
    dim = 0 if name == "coordinates first" else -1
    k = 0.3 * torch.randn(curvature, generator=generator)
    leaves = [drawn(points, generator), torch.rand(weights, generator=generator), k]
    compare(leaves, reducedim=reduced, dim=dim, keepdim=keepdim)


def test_a_curvature_for_each_point_is_the_torch_forms(generator):
    k = 0.3 * torch.randn(6, 5, 1, generator=generator)
    compare([drawn((6, 5, 4), generator), None, k], served=False, reducedim=[1])


def test_weights_of_any_size_change_nothing(generator):
    xs, weights = drawn((16, 4, 6), generator, torch.float64), torch.rand(16, 4, generator=generator).double()
    found = g.weighted_midpoint(xs, weights, k=-1.0, reducedim=[1])
    for factor in (1e-300, 1e250):
        torch.testing.assert_close(g.weighted_midpoint(xs, factor * weights, k=-1.0, reducedim=[1]), found)


def test_an_infinite_weight_makes_its_own_result_nan_alone(generator):
    weights = torch.ones(9, 4)
    weights[3, 1] = torch.inf
    found = g.weighted_midpoint(drawn((9, 4, 6), generator), weights, k=-1.0, reducedim=[1])
    assert found[3].isnan().all()
    assert torch.cat((found[:3], found[4:])).isfinite().all()


def test_points_near_the_edge_and_beyond_it(generator):
    xs = drawn((16, 4, 6), generator, torch.float64)
    xs = xs / xs.norm(dim=-1, keepdim=True) * torch.tensor([0.999, 1 - 1e-5, 1.5, 0.2]).double()[:, None]
    compare([xs, None, torch.tensor(-1.0, dtype=torch.float64)], reducedim=[1])


def test_second_derivatives_and_transforms(generator):
    xs, weights = drawn((4, 3, 2), generator, torch.float64), torch.rand(4, 3, generator=generator).double()
    inputs = [xs.requires_grad_(), weights.requires_grad_(), torch.tensor(-0.8).double().requires_grad_()]

    def mean(xs, weights, k):
        return g.weighted_midpoint(xs, weights, k=k, reducedim=[1])

    assert torch.autograd.gradcheck(mean, inputs)
    assert torch.autograd.gradgradcheck(mean, inputs)
    each = torch.vmap(lambda x: g.weighted_midpoint(x, k=-0.8))(xs)
    torch.testing.assert_close(each, g.weighted_midpoint(xs, k=-0.8, reducedim=[1]))


def test_threads_give_the_results_of_one(generator):
    leaves = [drawn((4000, 4, 6), generator), torch.rand(4000, 4, generator=generator), torch.tensor(-0.7)]
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = results(leaves, {"reducedim": [1]})
        torch.set_num_threads(2)
        both = results(leaves, {"reducedim": [1]})
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(one, other) for one, other in zip(alone, both, strict=True))
