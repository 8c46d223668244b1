"""The functions under what torch does to functions: compile, vmap, jvp, double backward, formats."""

import inspect

import pytest
import torch

from gyroformer import geometry as g
from gyroformer.testing.samples import OPERATIONS, operation, sample_arguments

CURVATURES = [-1.3, 0.0, 0.8]
HALVES = [torch.float16, torch.bfloat16]
NAMES = sorted(OPERATIONS)


def with_k(name):
    """The operation with k as its last positional argument."""
    return lambda *args: operation(name)(*args[:-1], k=args[-1])


def draw(name, k, generator, dtype=torch.float64, **sizes):
    curvature = torch.tensor(k, dtype=dtype)
    return (*sample_arguments(name, k=k, generator=generator, dtype=dtype, **sizes), curvature)


def test_every_operation_has_samples():
    special = {"mobius_fn_apply", "mobius_fn_apply_chain", "mobiusify", "ProductSpace", "Stereographic"}
    assert set(g.__all__) - special == set(OPERATIONS)


@pytest.mark.parametrize("k", CURVATURES)
@pytest.mark.parametrize("name", NAMES)
def test_gradcheck_and_gradgradcheck(name, k, generator):
    if name in ("sproj", "inv_sproj", "antipode") and k == 0:
        return  # no limit at k = 0: the sphere's radius and the antipode go to infinity
    inputs = [t.requires_grad_() for t in draw(name, k, generator, count=2, size=2)]
    assert torch.autograd.gradcheck(with_k(name), inputs)
    assert torch.autograd.gradgradcheck(with_k(name), inputs)


@pytest.mark.parametrize("name", NAMES)
def test_compiles_as_one_graph_with_its_backward(name, generator):
    torch._dynamo.reset()
    compiled = torch.compile(with_k(name), fullgraph=True, backend="aot_eager")
    for k in (-1.3, 0.8):  # the second curvature must not need another graph
        inputs = [t.requires_grad_() for t in draw(name, k, generator, dtype=torch.float32)]
        want, got = with_k(name)(*inputs), compiled(*inputs)
        torch.testing.assert_close(got, want)
        want_grads = torch.autograd.grad(want.sum(), inputs)
        torch.testing.assert_close(torch.autograd.grad(got.sum(), inputs), want_grads)


@pytest.mark.slow
def test_inductor_gives_the_same_numbers(generator):
    def chain(x, y, u, k):
        return g.weighted_midpoint(torch.stack([x, g.expmap0(u, k=k), g.mobius_add(x, y, k=k)]), k=k)

    torch._dynamo.reset()
    compiled = torch.compile(chain, fullgraph=True)
    for k in CURVATURES:
        x, y, u = (torch.randn(64, 4, generator=generator) / 5 for _ in range(3))
        inputs = [x.requires_grad_(), y, u, torch.tensor(k, requires_grad=True)]
        want = torch.autograd.grad(chain(*inputs).sum(), (inputs[0], inputs[3]))
        torch.testing.assert_close(torch.autograd.grad(compiled(*inputs).sum(), (inputs[0], inputs[3])), want)


@pytest.mark.parametrize("k", CURVATURES)
@pytest.mark.parametrize("name", NAMES)
def test_vmap_over_curvatures_equals_a_loop(name, k, generator):
    *args, _ = draw(name, k, generator)
    curvatures = torch.tensor([k, 0.9 * k, 1.1 * k], dtype=torch.float64)
    mapped = torch.func.vmap(with_k(name), in_dims=(*[None] * len(args), 0))(*args, curvatures)
    looped = torch.stack([with_k(name)(*args, c) for c in curvatures])
    torch.testing.assert_close(mapped, looped)


@pytest.mark.parametrize("k", CURVATURES)
@pytest.mark.parametrize("name", NAMES)
def test_forward_mode_equals_backward_mode(name, k, generator):
    inputs = draw(name, k, generator)
    tangents = tuple(torch.randn(t.shape, generator=generator, dtype=t.dtype) for t in inputs)
    _, forward = torch.func.jvp(with_k(name), inputs, tangents)
    leaves = [t.clone().requires_grad_() for t in inputs]
    value = with_k(name)(*leaves)
    cotangent = torch.randn(value.shape, generator=generator, dtype=value.dtype)
    grads = torch.autograd.grad(value, leaves, cotangent)
    backward = sum((grad * tangent).sum() for grad, tangent in zip(grads, tangents, strict=True))
    torch.testing.assert_close((forward * cotangent).sum(), backward)


@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("k", CURVATURES)
@pytest.mark.parametrize("name", NAMES)
def test_half_precision_is_computed_in_float32_and_rounded_once(name, k, half, generator):
    inputs = draw(name, k, generator, dtype=half)
    got = with_k(name)(*inputs)
    assert got.dtype == half
    if not ("sproj" in name and k == 0):  # there the last coordinate leaves the half formats
        torch.testing.assert_close(got, with_k(name)(*(t.float() for t in inputs)).to(half))


@pytest.mark.parametrize("name", NAMES)
def test_autocast_does_not_lower_the_inside(name, generator):
    inputs = draw(name, -1.3, generator, dtype=torch.float32)
    want = with_k(name)(*inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(with_k(name)(*inputs), want)


@pytest.mark.parametrize("name", NAMES)
def test_curvature_may_be_a_number_and_does_not_promote(name, generator):
    *args, k = draw(name, -0.5, generator, dtype=torch.float32)
    want = operation(name)(*args, k=k)
    assert want.dtype == torch.float32
    assert torch.equal(operation(name)(*args, k=-0.5), want)
    assert torch.equal(operation(name)(*args, k=k.double()), want)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"pairwise_dist", "weighted_midpoint", "mobius_matvec"}))
def test_one_curvature_for_each_head(name, generator):
    """Points (N, H, d) with k (H, 1): each head as if alone, signs mixed in one call."""
    k = torch.tensor([-1.2, 0.0, 0.9], dtype=torch.float64)
    heads = [sample_arguments(name, k=c.item(), generator=generator, dtype=torch.float64) for c in k]
    together = operation(name)(
        *(torch.stack(parts, dim=1) for parts in zip(*heads, strict=True)), k=k[:, None]
    )
    for h, parts in enumerate(heads):
        torch.testing.assert_close(together[:, h], operation(name)(*parts, k=k[h]))


@pytest.mark.parametrize("name", [n for n in NAMES if "dim" in inspect.signature(operation(n)).parameters])
def test_coordinates_may_lie_in_any_dimension(name, generator):
    *args, k = draw(name, 0.8, generator)
    moved = [a if kind == "matrix" else a.mT for a, kind in zip(args, OPERATIONS[name], strict=True)]
    want, got = operation(name)(*args, k=k), operation(name)(*moved, k=k, dim=0)
    torch.testing.assert_close(got, want.mT if want.dim() == 2 else want)
