"""The C++ sums over a pseudo-hyperboloid against the torch form in double precision."""

import math

import pytest
import torch

from gyroformer.compiled import torch_forms
from gyroformer.errors import UsageError
from gyroformer.ops.native import build
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.pair_blocks import Sum
from gyroformer.ops.pseudo_pairs import ambient, pair_sums

pytestmark = pytest.mark.skipif(build.library() is None, reason="no C++ compiler on this machine")

#: neither a whole number of tiles nor of blocks of rows
NODES = 150


def drawn(time, space, size, nodes=NODES):
    """Ambient vectors ``(N, time + space)``; two coincide, two nearly, two are opposite."""
    random = torch.Generator().manual_seed(time)
    theta = torch.randn(nodes, time, generator=random, dtype=torch.float64)
    theta[1], theta[3], theta[5] = theta[0], 1.001 * theta[2], -theta[4]
    s = size * torch.randn(nodes, space, generator=random, dtype=torch.float64)
    s[1], s[3], s[5] = s[0], 1.001 * s[2], -s[4]
    k = torch.tensor([[-1.0]], dtype=torch.float64)
    return ambient(theta / theta.norm(dim=-1, keepdim=True), s, k).requires_grad_()


def graph(nodes=NODES, edges=300):
    return Neighbours.of(
        torch.randint(0, nodes, (2, edges), generator=torch.Generator().manual_seed(5)), nodes
    )


def sums(points, radius, time, neighbours, squared, dtype=torch.float32):
    what = Sum(neighbours, None, squared, compiled=False, rows=slice(0, len(points)))
    return pair_sums(points, radius, time, what, dtype)


def with_gradients(found, leaves):
    weight = torch.linspace(-1, 2, len(found), dtype=found.dtype)
    return [found.detach(), *torch.autograd.grad((found * weight).sum(), leaves)]


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("size", [0.0, 0.05, 1.0, 30.0])
@pytest.mark.parametrize("time, space", [(2, 4), (3, 0), (8, 9)])
def test_sums_and_gradients_are_those_of_the_torch_form(time, space, size, squared):
    points, radius = drawn(time, space, size), torch.tensor([[1.3]], dtype=torch.float64, requires_grad=True)
    mine = with_gradients(sums(points, radius, time, graph(), squared), (points, radius))
    assert [one.dtype for one in mine] == [torch.float32, torch.float64, torch.float64]
    right = with_gradients(sums(points, radius, time, graph(), squared, torch.float64), (points, radius))
    for a, b in zip(mine, right, strict=True):
        # far out a distance is long, and its float32 rounding is that of the exponent
        torch.testing.assert_close(a.double(), b, rtol=3e-5, atol=3e-6 * float(b.abs().max()))


@pytest.mark.parametrize("nodes", [1, 2, 15, 64, 65])
def test_every_size_is_met_whole(nodes):
    points = drawn(2, 3, 0.5, max(nodes, 6))[:nodes].detach().requires_grad_()
    radius = torch.ones(1, 1, dtype=torch.float64)
    neighbours = graph(nodes, 2)
    mine = with_gradients(sums(points, radius, 2, neighbours, True), (points,))
    right = with_gradients(sums(points, radius, 2, neighbours, True, torch.float64), (points,))
    for a, b in zip(mine, right, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-5, atol=1e-5)


def test_the_same_threads_give_the_same_bits():
    points, radius = drawn(4, 4, 1.0), torch.ones(1, 1, dtype=torch.float64)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            first, again = (
                with_gradients(sums(points, radius, 4, graph(), True), (points,)) for _ in range(2)
            )
            assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("wrong", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_is_not_hidden(wrong):
    points, radius = drawn(2, 3, 1.0), torch.ones(1, 1, dtype=torch.float64)
    with torch.no_grad():
        points[7, -1] = wrong
    assert sums(points, radius, 2, graph(), True).isnan().all()
    assert sums(drawn(2, 3, 1.0), wrong * radius, 2, graph(), True).isnan().all()


def test_the_kernel_is_not_asked_where_it_does_not_serve(monkeypatch):
    def refuse(*given):
        raise AssertionError("the kernel was called")

    points, radius = drawn(2, 3, 1.0), torch.ones(1, 1, dtype=torch.float64)
    monkeypatch.setattr("gyroformer.ops.pseudo_pairs.pseudo_sums", refuse)
    with pytest.raises(AssertionError, match="was called"):
        sums(points, radius, 2, graph(), True)
    with torch_forms():
        sums(points, radius, 2, graph(), True)
    directed = Neighbours.directed(torch.tensor([[0, 1, 2], [3, 4, 5]]), NODES)
    sums(points, radius, 2, directed, True)
    bias = tuple(torch.zeros(NODES) for _ in range(2))
    what = Sum(graph(), None, True, compiled=False, rows=slice(0, NODES))
    pair_sums(points, radius, 2, what, torch.float32, bias)


def test_the_operator_is_as_torch_expects():
    neighbours, radius = graph(), torch.ones(1, 1, dtype=torch.float64, requires_grad=True)
    given = (drawn(2, 3, 1.0), radius, neighbours.indptr, neighbours.indices, 2, True)
    tests = ("test_schema", "test_faketensor", "test_autograd_registration")
    torch.library.opcheck(torch.ops.gyroformer.pseudo_sums.default, given, test_utils=tests)


def test_a_second_derivative_is_refused():
    points, radius = drawn(2, 3, 1.0), torch.ones(1, 1, dtype=torch.float64)
    first = torch.autograd.grad(sums(points, radius, 2, graph(), True).sum(), points, create_graph=True)[0]
    with pytest.raises(UsageError, match="no second derivative"):
        torch.autograd.grad(first.sum(), points)
