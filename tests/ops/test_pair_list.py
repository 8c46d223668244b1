"""Distances of listed pairs: the C++ form against the torch form in float64, value and gradients."""

import math

import pytest
import torch

from gyroformer.errors import UsageError
from gyroformer.ops.lifted import REACH, sine_cosine
from gyroformer.ops.native import build, fused
from gyroformer.ops.pairs import Neighbours, log_partition, pair_squared_dist, squared_dist_rows

pytestmark = pytest.mark.skipif(build.library() is None, reason="no C++ compiler on this machine")
NAMES = ("value", "sine", "cosine", "k")


def draw(k, radius, nodes=90, width=5):
    """Points whose √|k| |u| is at most ``radius``, two of which coincide."""
    random = torch.Generator().manual_seed(width)
    k = torch.tensor(k, dtype=torch.float64)
    u = torch.randn(nodes, len(k), width, dtype=torch.float64, generator=random)
    u = u / u.norm(dim=-1, keepdim=True) * torch.rand(*u.shape[:2], 1, dtype=torch.float64, generator=random)
    u[1] = u[0]
    points = *sine_cosine(u * radius / k.abs().clamp(min=0.25).sqrt()[:, None], k[:, None]), k
    return [t.float() for t in points]


def some_pairs(count, nodes=90):
    pairs = torch.randint(0, nodes, (2, count), generator=torch.Generator().manual_seed(count))
    if count > 2:
        pairs[:, 0], pairs[:, 1] = torch.tensor([0, 1]), torch.tensor([7, 7])
    return pairs


def results(points, pairs, dtype):
    leaves = [t.detach().to(dtype).requires_grad_() for t in points]
    value = pair_squared_dist(*leaves, *pairs)
    weights = torch.linspace(-1, 2, value.numel(), dtype=dtype)
    return dict(zip(NAMES, (value, *torch.autograd.grad((value * weights).sum(), leaves)), strict=True))


@pytest.mark.parametrize("count", [1, 300, 1000])
@pytest.mark.parametrize(
    "k, radius",
    [
        *(([-4.0, -1.0], r) for r in (1e-6, 0.5, 4.0)),
        ([-1e-8, 0.0, 1e-8], 0.5),
        ([-1.0], REACH),
        *(([0.5, 2.0], r) for r in (0.5, math.pi / 2)),
    ],
)
def test_value_and_gradients_are_those_of_the_torch_form(k, radius, count):
    points, pairs = draw(k, radius), some_pairs(count)
    got = results(points, pairs, torch.float32)
    with fused.torch_forms():
        want, plain = (results(points, pairs, dtype) for dtype in (torch.float64, torch.float32))
    for name, exact in want.items():
        size = exact.norm() if exact.any() else 1.0
        error, conditioning = (((y[name] - exact).norm() / size).item() for y in (got, plain))
        assert error < max(5e-6, 4 * conditioning), f"{name}: {error:.1e}, torch form {conditioning:.1e}"


def sums_of_far_points(nodes=90, half_angle=20.0, width=5):
    """Points that no tangent vector of a layer leads to, but a sum of two does; some of them are near the origin."""
    random = torch.Generator().manual_seed(0)
    way = torch.randn(nodes, 1, width, dtype=torch.float64, generator=random)
    t = torch.linspace(0, half_angle, nodes, dtype=torch.float64)[:, None, None]
    return [*((way / way.norm(dim=-1, keepdim=True)) * t.sinh(), t.cosh()), torch.tensor([-1.0])]


def test_squares_of_the_largest_numbers_do_not_overflow():
    points, pairs = sums_of_far_points(), some_pairs(300)
    got = results([t.float() for t in points], pairs, torch.float32)
    with fused.torch_forms():
        want = results([t.float() for t in points], pairs, torch.float64)
    assert want["value"].max().sqrt() > 70, "beyond log(4 · 1e18)"
    for name, exact in want.items():
        torch.testing.assert_close(got[name].double(), exact, rtol=1e-5, atol=1e-5 * exact.abs().max().item())
    rows, columns = squared_dist_rows(*(t.float() for t in points), pairs[0]), pairs[1]
    torch.testing.assert_close(rows[range(300), columns], got["value"], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("form", ["native", "eager"])
def test_nor_do_they_in_sums_over_all_pairs(form):
    neighbours = Neighbours.of(torch.tensor([[0, 1], [1, 2]]), 90)

    def gradients(dtype, form):
        leaves = [t.float().to(dtype).requires_grad_() for t in sums_of_far_points()]
        return torch.autograd.grad(log_partition(*leaves, neighbours, form=form).sum(), leaves)

    for got, exact in zip(gradients(torch.float32, form), gradients(torch.float64, "eager"), strict=True):
        torch.testing.assert_close(got.double(), exact, rtol=1e-4, atol=1e-5 * exact.abs().max().item())


def test_a_node_is_at_no_distance_from_itself_and_from_its_double():
    points, pairs = draw([-1.0, 0.7], 2.0), some_pairs(300)
    found = pair_squared_dist(*points, *pairs)
    assert found[0] == found[1] == 0
    assert (found[2:] > 0).sum() > 290


def test_the_same_threads_give_the_same_bits_and_others_nearly(monkeypatch):
    points, pairs = draw([-1.0, 0.7], 0.5), some_pairs(1000)
    once, again = (results(points, pairs, torch.float32) for _ in range(2))
    assert all(torch.equal(once[name], again[name]) for name in NAMES)
    for threads in (3, 20):  # more than there are blocks of pairs
        monkeypatch.setattr(build, "threads", lambda threads=threads: threads)
        other = results(points, pairs, torch.float32)
        assert torch.equal(other["value"], once["value"])
        for name in NAMES:
            torch.testing.assert_close(other[name], once[name], rtol=1e-5, atol=1e-5)


def test_no_pairs_at_all():
    points = [t.requires_grad_() for t in draw([-1.0], 0.5)]
    none = pair_squared_dist(*points, *torch.empty(2, 0, dtype=torch.int64))
    assert none.shape == (0,)
    assert not any(grad.any() for grad in torch.autograd.grad(none.sum(), points))


def test_it_can_be_differentiated_again():
    points, pairs = [t.requires_grad_() for t in draw([-1.0, 0.7], 0.5)], some_pairs(40)

    def second():
        first = torch.autograd.grad(pair_squared_dist(*points, *pairs).sum(), points, create_graph=True)
        return torch.autograd.grad(sum(grad.square().sum() for grad in first), points)

    got = second()
    with fused.torch_forms():
        want = second()
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_the_operator_is_sound_for_the_compiler():
    points = [t.requires_grad_() for t in draw([-1.0, 0.7], 0.5)]
    torch.library.opcheck(torch.ops.gyroformer.pair_distances.default, (*points, *some_pairs(50)))


@pytest.mark.parametrize(
    "source, words",
    [
        (torch.tensor([0, 90]), "from 0 to 89"),
        (torch.tensor([-1, 0]), "from 0 to 89"),
        (torch.tensor([0.0, 1.0]), "int64"),
        (torch.tensor([0, 1, 2]), "as long"),
    ],
)
def test_pairs_that_name_no_nodes_are_refused(source, words):
    with pytest.raises(UsageError, match=words):
        pair_squared_dist(*draw([-1.0], 0.5), source, torch.tensor([0, 1]))
