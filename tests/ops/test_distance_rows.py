"""Distances from nodes to all others in C++, beside the torch form in float64."""

import pytest
import torch

from gyroformer.compiled import torch_forms
from gyroformer.errors import UsageError
from gyroformer.ops.lifted import sine_cosine
from gyroformer.ops.native import build, fused_rows
from gyroformer.ops.pairs import squared_dist_lists, squared_dist_rows

pytestmark = pytest.mark.skipif(build.library() is None, reason="no C++ compiler on this machine")
NODES = 150  # two tiles and a piece of one


def points(k, spread=0.6, width=5):
    u = spread * torch.randn(NODES, len(k), width, generator=torch.Generator().manual_seed(0))
    k = torch.tensor(k)
    return *sine_cosine(u, k[:, None]), k


@pytest.mark.parametrize("spread", [1e-3, 0.6, 4.0])
@pytest.mark.parametrize("k", [[-1.0], [0.0], [0.7], [1e-9], [-3.0, 0.0, 0.2]], ids=str)
@pytest.mark.parametrize("width", [2, 16])
def test_distances_are_those_of_float64(k, spread, width):
    given, rows = points(k, spread, width), torch.tensor([3, 149, 0, 80])
    exact = squared_dist_rows(*(part.double() for part in given), rows)
    torch.testing.assert_close(squared_dist_rows(*given, rows).double(), exact, rtol=1e-6, atol=1e-14)


def test_a_pair_has_the_same_bits_among_few_and_among_all():
    given, rows = points([-1.0, 0.3]), torch.arange(NODES)
    everything = squared_dist_rows(*given, rows)
    assert torch.equal(everything, everything.T)
    assert torch.equal(everything.diagonal(), torch.zeros(NODES))
    some = torch.tensor([149, 2, 2, 77])
    assert torch.equal(squared_dist_rows(*given, rows, some), everything[:, some])
    lists = torch.randint(0, NODES, (NODES, 70), generator=torch.Generator().manual_seed(1))
    assert torch.equal(squared_dist_lists(*given, rows, lists), everything.gather(1, lists))


@pytest.mark.parametrize("k", [-1.0, 0.0, 0.5])
def test_what_is_not_finite_is_seen(k):
    sine, cosine, k = points([0.0, k])
    sine[7, 1, 2] = torch.nan
    found = squared_dist_rows(sine, cosine, k, torch.arange(NODES))
    others = torch.arange(NODES) != 7
    assert found[7].isnan().all()
    assert found[:, 7].isnan().all()
    assert found[others][:, others].isfinite().all()


def test_gradients_are_had_from_the_torch_form(monkeypatch):
    monkeypatch.setattr(fused_rows, "distance_rows", None)  # it has none
    sine, cosine, k = points([-1.0])
    sine.requires_grad_()
    squared_dist_rows(sine, cosine, k, torch.arange(3)).sum().backward()
    assert sine.grad.abs().sum() > 0


def test_the_operator_is_as_torch_expects():
    rows, lists = torch.tensor([3, 4]), torch.tensor([[1, 2, 3], [4, 5, 6]])
    for columns in (torch.arange(NODES), lists):
        torch.library.opcheck(
            torch.ops.gyroformer.distance_rows.default, (*points([-1.0, 0.5]), rows, columns)
        )


@pytest.mark.parametrize("rows", [[150], [-1]])
def test_nodes_that_are_none_are_named(rows):
    with pytest.raises(UsageError, match="nodes from 0 to 149"):
        squared_dist_rows(*points([-1.0]), torch.tensor(rows))


def test_without_kernels_it_is_the_same():
    given, rows = points([-1.0, 0.3]), torch.arange(5)
    with torch_forms():
        plain = squared_dist_rows(*given, rows)
    torch.testing.assert_close(squared_dist_rows(*given, rows), plain, rtol=2e-6, atol=1e-14)
