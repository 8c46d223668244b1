"""The sum over near lists and a random rest: C++ against torch, torch against the sum over all pairs."""

import pytest
import torch

from gyroformer.errors import UsageError
from gyroformer.ops.native import build
from gyroformer.ops.near_field import NearField, most_reach
from gyroformer.ops.near_lists import no_lists
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.positions import StereographicPositions
from gyroformer.ops.pseudo_positions import PseudoHyperboloidPositions

needs_compiler = pytest.mark.skipif(build.library() is None, reason="no C++ compiler on this machine")
NODES = 150


def random_edges(nodes=NODES, edges=300):
    return torch.randint(0, nodes, (2, edges), generator=torch.Generator().manual_seed(0))


def drawn(k, nodes=NODES, width=3, dtype=torch.float32):
    random = torch.Generator().manual_seed(1)
    u = 0.4 * torch.randn(nodes, len(k), width, dtype=torch.float64, generator=random)
    found = StereographicPositions.from_tangent(u, torch.tensor(k, dtype=torch.float64).unsqueeze(-1))
    return StereographicPositions(found.sine.to(dtype), found.cosine.to(dtype), found.k.to(dtype))


def biases(nodes=NODES):
    random = torch.Generator().manual_seed(2)
    return tuple(torch.randn(nodes, generator=random) for _ in range(2))


def results(positions, bias, call, dtype=torch.float32):
    """Value and gradients in sine, cosine, k and the biases."""
    points = [t.detach().to(dtype).requires_grad_() for t in (positions.sine, positions.cosine, positions.k)]
    bias = None if bias is None else tuple(t.to(dtype).requires_grad_() for t in bias)
    value = call(StereographicPositions(*points), bias)
    weights = torch.linspace(-1, 2, value.numel(), dtype=dtype)
    return value, *torch.autograd.grad((value * weights).sum(), [*points, *(bias or ())])


def far_apart(ours, theirs):
    return max(((a - b).norm() / b.norm()).item() for a, b in zip(ours, theirs, strict=True))


@needs_compiler
@pytest.mark.parametrize("graph", [Neighbours.of, Neighbours.directed])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(
    "k, near, reach", [([-1.0, 0.5], 10, 40), ([-1e-8], 70, 74), ([-4.0, 0.0, 1.0], 5, 0), ([2.0], 0, 20)]
)
def test_the_kernel_is_the_torch_form(k, near, reach, squared, biased, graph):
    neighbours, positions = graph(random_edges(), NODES), drawn(k)
    bias = biases() if biased else None
    torch.manual_seed(0)
    lists = positions.renewed_lists(no_lists(NODES, near), neighbours)
    field = NearField.drawn(neighbours, lists, reach)

    def sums(form):
        return lambda points, tilt: points.near_log_partition(field, squared=squared, bias=tilt, form=form)

    want = results(positions, bias, sums("eager"), torch.float64)
    assert far_apart(results(positions, bias, sums("native")), want) < 1e-5


@pytest.mark.parametrize("graph", [Neighbours.of, Neighbours.directed])
@pytest.mark.parametrize("biased", [False, True])
def test_lists_of_everything_give_the_exact_sum(biased, graph):
    neighbours, positions = graph(random_edges(), NODES), drawn([-1.0, 0.5], dtype=torch.float64)
    bias = biases() if biased else None
    lists = positions.renewed_lists(no_lists(NODES, NODES - 1), neighbours, exact=True)
    field = NearField.drawn(neighbours, lists, 30)
    near = results(positions, bias, lambda p, b: p.near_log_partition(field, bias=b), torch.float64)
    every = results(positions, bias, lambda p, b: p.log_partition(neighbours, bias=b), torch.float64)
    assert far_apart(near, every) < 1e-12


@pytest.mark.parametrize("reach", [7, most_reach(NODES)])
def test_the_estimate_is_unbiased_over_draws(reach):
    neighbours, positions = Neighbours.of(random_edges(), NODES), drawn([-1.0], dtype=torch.float64)
    lists = positions.renewed_lists(no_lists(NODES, 8), neighbours, exact=True)
    torch.manual_seed(0)
    exact = positions.log_partition(neighbours).exp()
    found = torch.stack(
        [
            positions.near_log_partition(NearField.drawn(neighbours, lists, reach)).exp()
            for _ in range(400 if reach < 10 else 20)
        ]
    )
    error = found.mean(0) - exact
    assert error.abs().max() < 5 * found.std(0).max() / len(found) ** 0.5
    # over all nodes the errors of single draws cancel further
    assert error.mean().abs() < 0.005 * exact.mean()
    # what is listed is not drawn again: without the lists the same draws scatter more
    plain = NearField.drawn(neighbours, no_lists(NODES, 0), reach)
    assert (positions.near_log_partition(plain).exp() - exact).abs().mean() > (found[0] - exact).abs().mean()


@needs_compiler
@pytest.mark.parametrize("threads", [1, 3])
def test_the_same_threads_give_the_same_bits(threads):
    neighbours, positions, bias = Neighbours.directed(random_edges(), NODES), drawn([-1.0, 0.5]), biases()
    torch.manual_seed(0)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        lists = positions.renewed_lists(no_lists(NODES, 10), neighbours)
        field = NearField.drawn(neighbours, lists, 20)
        first, second = (
            results(positions, bias, lambda p, b: p.near_log_partition(field, bias=b)) for _ in range(2)
        )
        assert all(map(torch.equal, first, second))
        want = results(positions, bias, lambda p, b: p.near_log_partition(field, bias=b, form="eager"))
        assert far_apart(first, want) < 1e-5
    finally:
        torch.set_num_threads(before)


@needs_compiler
def test_what_is_not_finite_is_not_hidden():
    neighbours, positions = Neighbours.of(random_edges(), NODES), drawn([-1.0])
    positions.sine[3, 0, 0] = torch.inf
    field = NearField.drawn(neighbours, no_lists(NODES, 4), 5)
    assert positions.near_log_partition(field).isnan().all()


@needs_compiler
def test_a_second_derivative_is_refused():
    points = drawn([-1.0])
    leaf = points.sine.requires_grad_()
    field = NearField.drawn(Neighbours.of(random_edges(), NODES), no_lists(NODES, 4), 5)
    (slope,) = torch.autograd.grad(points.near_log_partition(field).sum(), leaf, create_graph=True)
    with pytest.raises(UsageError, match="no second derivative"):
        slope.sum().backward()


def test_another_space_has_the_torch_form():
    neighbours = Neighbours.of(random_edges(), NODES)
    u = 0.3 * torch.randn(NODES, 5, generator=torch.Generator().manual_seed(0)).double()
    positions = PseudoHyperboloidPositions.from_tangent(u, torch.tensor([[-1.0]]).double(), 2)
    lists = positions.renewed_lists(no_lists(NODES, NODES - 1), neighbours)
    near = positions.near_log_partition(NearField.drawn(neighbours, lists, 10))
    torch.testing.assert_close(near, positions.log_partition(neighbours), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "near, ring, reach, said",
    [
        (torch.zeros(NODES, 3), torch.arange(NODES), 5, "near must be an int32 matrix of 150 rows"),
        (no_lists(NODES - 1, 3), torch.arange(NODES), 5, "near must be an int32 matrix of 150 rows"),
        (no_lists(NODES, 3), torch.arange(NODES - 1), 5, "ring must be a permutation of 150 nodes"),
        (no_lists(NODES, 3), torch.arange(NODES), 75, "reach must be from 0 to 74 in a ring of 150, got 75"),
    ],
)
def test_what_does_not_fit_is_refused(near, ring, reach, said):
    with pytest.raises(UsageError, match=said):
        NearField(Neighbours.of(random_edges(), NODES), near, ring, reach)
