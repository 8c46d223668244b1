import pytest
import torch

from gyroformer.errors import UsageError
from gyroformer.geometry import pseudo_hyperboloid as quadric
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.pseudo_positions import PseudoHyperboloidPositions

NODES, DIM = 60, 6
TIMES = [2, 4, 6]
#: of the wide formats' difference: near the light cone the angle is the root of what is left of q - 1
RTOL = {torch.float32: 2e-5, torch.float64: 1e-9}


def points(dtype, time, size=1.0, k=-0.7):
    generator = torch.Generator().manual_seed(time)
    u = size * torch.randn(NODES, DIM - 1, generator=generator, dtype=torch.float64)
    u[1], u[3] = u[0], 1.001 * u[2]
    u = u.to(dtype).requires_grad_()
    k = torch.tensor([[k]], dtype=dtype, requires_grad=True)
    return PseudoHyperboloidPositions.from_tangent(u, k, time), u, k


def exact(positions):
    """All squared distances, by the geometry's own function on every pair, in double precision."""
    x, beta = positions.x.double(), 1 / positions.k.double()
    return quadric.squared_dist(x[:, None], x, beta=beta, time=positions.time)


def graph():
    return Neighbours.of(torch.randint(0, NODES, (2, 100), generator=torch.Generator().manual_seed(5)), NODES)


def expected_log_partition(positions, neighbours, columns, scale, squared, bias=None):
    apart = exact(positions)
    away = torch.where(apart > 0, torch.where(apart > 0, apart, 1).sqrt(), 0)
    keep = ~neighbours.adjacent(torch.arange(NODES)) & ~torch.eye(NODES, dtype=torch.bool)
    exponent = -(apart if squared else away)
    if bias is not None:
        exponent = exponent + bias[0][:, None] + bias[1]
    terms = torch.where(keep, torch.exp(exponent), 0)
    return torch.log1p(scale * terms[:, columns if columns is not None else slice(None)].sum(1))


@pytest.mark.parametrize("size", [0.01, 0.3, 1.0, 100.0])
@pytest.mark.parametrize("time", TIMES)
def test_rows_and_pairs_are_the_exact_distances(dtype, time, size):
    positions, u, k = points(dtype, time, size)
    right = exact(positions)
    rows = positions.squared_dist_rows(torch.arange(NODES))
    assert rows.dtype == dtype
    torch.testing.assert_close(rows.double(), right, rtol=RTOL[dtype], atol=RTOL[dtype])
    source, target = torch.cartesian_prod(torch.arange(NODES), torch.arange(NODES)).mT
    pairs = positions.pair_squared_dist(source, target)
    torch.testing.assert_close(pairs.double(), right.flatten(), rtol=RTOL[dtype], atol=RTOL[dtype])
    weight = torch.randn(NODES, NODES, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = torch.autograd.grad((rows * weight).sum(), (u, k), retain_graph=True)
    for mine, other in zip(found, torch.autograd.grad((right * weight).sum(), (u, k)), strict=True):
        # a coordinate's derivative near the light cone amplifies like the distance; k's nearly cancels at the pole
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-4 * float(found[0].abs().max()))


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("columns", [None, torch.tensor([5, 2, 2, 40])])
@pytest.mark.parametrize("time", TIMES)
def test_the_partition_is_the_sum_written_out(dtype, time, columns, squared):
    positions, u, k = points(dtype, time)
    scale = 1.0 if columns is None else NODES / 4
    found = positions.log_partition(graph(), columns=columns, scale=scale, squared=squared)
    right = expected_log_partition(positions, graph(), columns, scale, squared)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), right, rtol=1e-5, atol=1e-5)
    weight = torch.linspace(-1, 2, NODES, dtype=torch.float64)
    mine = torch.autograd.grad((found * weight).sum(), (u, k), retain_graph=True)
    tolerance = {torch.float32: 3e-4, torch.float64: 1e-8}[dtype]
    for a, b in zip(mine, torch.autograd.grad((right * weight).sum(), (u, k)), strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance * float(b.abs().max()))


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("columns", [None, torch.tensor([5, 2, 2, 40])])
def test_the_partition_with_biases(columns, squared):
    positions, u, k = points(torch.float64, TIMES[0])
    bias = [torch.linspace(-1, 1, NODES, dtype=torch.float64).roll(i).requires_grad_() for i in (0, 7)]
    options = {"columns": columns, "scale": 1.5, "squared": squared, "bias": bias}
    found = positions.log_partition(graph(), **options)
    right = expected_log_partition(positions, graph(), **options)
    torch.testing.assert_close(found, right, rtol=1e-8, atol=1e-8)
    inputs, weight = (u, k, *bias), torch.linspace(-1, 2, NODES, dtype=torch.float64)
    mine = torch.autograd.grad((found * weight).sum(), inputs, retain_graph=True)
    for a, b in zip(mine, torch.autograd.grad((right * weight).sum(), inputs), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-8 * float(b.abs().max()))


def test_many_blocks_are_one(monkeypatch):
    positions, u, k = points(torch.float64, 3)
    expected = positions.log_partition(graph())
    expected_gradient = torch.autograd.grad(expected.sum(), (u, k), retain_graph=True)
    monkeypatch.setattr("gyroformer.ops.pair_blocks.EAGER_NUMBERS", 7 * NODES)
    found = positions.log_partition(graph())
    torch.testing.assert_close(found, expected)
    gradient = torch.autograd.grad(found.sum(), (u, k), retain_graph=True)
    torch.testing.assert_close(gradient, expected_gradient)


@pytest.mark.parametrize("time", TIMES)
def test_far_equal_and_opposite_points_are_finite(dtype, time):
    u = torch.zeros(NODES, DIM - 1, dtype=dtype)
    u[1:5] = torch.tensor([1e-30, 1e3, 1e10, -1e15], dtype=dtype)[:, None]
    u[5, 0], u[6, 0], u[7, -1] = torch.pi, -torch.pi, 1e15
    u.requires_grad_()
    k = torch.tensor([[-1.0]], dtype=dtype, requires_grad=True)
    positions = PseudoHyperboloidPositions.from_tangent(u, k, time)
    rows = positions.squared_dist_rows(torch.arange(NODES))
    loss = rows.clamp(max=1e4).sum() + positions.log_partition(graph()).sum()
    loss.backward()
    assert torch.isfinite(rows).all()
    assert torch.isfinite(u.grad).all()
    assert torch.isfinite(k.grad).all()
    assert (rows.diagonal() == 0).all()
    torch.testing.assert_close(rows[5, 0], torch.tensor(torch.pi, dtype=dtype).square())


def test_coordinates_lead_to_the_points():
    positions, u, _ = points(torch.float64, 4, 0.3)
    assert positions.coordinates().shape == (NODES, 1, DIM - 1)
    torch.testing.assert_close(positions.coordinates().squeeze(1), u)
    assert len(positions) == NODES


def test_a_graph_of_another_size_is_refused():
    positions, _, _ = points(torch.float32, 2)
    with pytest.raises(UsageError, match="there are 60 points, but the graph has 5 nodes"):
        positions.log_partition(Neighbours.of(torch.tensor([[0], [1]]), 5))
