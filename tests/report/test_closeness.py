import numpy as np
import pytest
import torch

from gyroformer.ops.nearest import nearest_nodes
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.positions import StereographicPositions
from gyroformer.ops.pseudo_positions import PseudoHyperboloidPositions
from gyroformer.report import closeness as module
from gyroformer.report.closeness import closeness, pair_distances, quick_rows
from gyroformer.tasks.average_precision import mean_average_precision

NODES = 300


def product(spread=0.5, k=(-1.3, 0.2, 0.0)):
    u = torch.from_numpy(np.random.default_rng(0).normal(size=(NODES, len(k), 3))) * spread
    return StereographicPositions.from_tangent(u, torch.tensor(k, dtype=torch.float64).unsqueeze(1))


def ring():
    nodes = np.arange(NODES)
    return np.stack([nodes, (nodes + 1) % NODES])


@pytest.mark.parametrize("spread", [0.02, 0.5, 30.0])
def test_quick_distances_are_as_good_as_they_must_be(spread):
    # far out the product would cancel: the exact ones are taken there
    positions = product(spread, k=(-1.3, -0.2, 0.0))
    rows = torch.arange(20)
    quick, exact = quick_rows(positions)(rows).double(), positions.squared_dist_rows(rows)
    apart = exact > 1e-12
    error = ((quick - exact).abs() / exact.clamp(min=1e-12))[apart]
    assert float(error.max()) < module.QUICK_ERROR
    assert (quick_rows(positions) == positions.squared_dist_rows) == (spread > 1)


def test_nearest_nodes_are_exact():
    positions = product()
    found = closeness(positions, 7, ring())
    nodes, squared = nearest_nodes(positions, torch.arange(NODES), 7)
    assert (found.nearest == nodes.numpy()).all()
    np.testing.assert_allclose(found.distance, squared.sqrt().numpy(), rtol=1e-12)


@pytest.mark.parametrize("edges", [None, ring()])
def test_the_index_is_asked_where_no_precision_is_wanted(edges, monkeypatch):
    positions = product()
    expected = closeness(positions, 7, edges)
    asked = []
    monkeypatch.setattr(module, "has_index", lambda *given: True)
    found = nearest_nodes
    monkeypatch.setattr(module, "nearest_nodes", lambda *given: asked.append(given[2]) or found(*given))
    got = closeness(positions, 7, edges)
    assert asked == ([7] if edges is None else [])
    assert (got.nearest == expected.nearest).all()
    assert (got.distance == expected.distance).all()


def test_many_equal_distances_are_taken_in_their_order():
    same = StereographicPositions.from_tangent(
        torch.ones(60, 1, 2, dtype=torch.float64), -torch.ones(1, 1, dtype=torch.float64)
    )
    found = closeness(same, 3, None)
    assert found.nearest[:2].tolist() == [[1, 2, 3], [0, 2, 3]]
    assert found.precision is None


def test_each_nodes_precision_adds_up_to_the_mean():
    positions = product()
    found = closeness(positions, 2, ring()[:, :-1])
    mean = mean_average_precision(positions.squared_dist_rows, Neighbours.of(ring()[:, :-1], NODES))
    assert np.nanmean(found.precision) == pytest.approx(mean, abs=1e-6)
    alone = closeness(positions, 2, np.array([[0], [1]]))
    assert np.isfinite(alone.precision).sum() == 2


def test_progress_is_told_to_the_end(monkeypatch):
    heard = []
    closeness(product(), 2, None, progress=lambda done, of: heard.append((done, of)))
    assert heard[-1] == (NODES, NODES)


def test_a_pseudo_hyperboloid_has_its_own_distance():
    u = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 5))) * 0.3
    positions = PseudoHyperboloidPositions.from_tangent(u, -torch.ones(1, 1, dtype=torch.float64), 2)
    found = closeness(positions, 4, None)
    nodes, _ = nearest_nodes(positions, torch.arange(40), 4)
    assert (found.nearest == nodes.numpy()).all()


def test_pairs_have_their_distances():
    positions = product()
    far = pair_distances(positions, np.array([[0, 5], [9, 9]]))
    rows = positions.squared_dist_rows(torch.tensor([9]))[0].sqrt()
    np.testing.assert_allclose(far, rows[[0, 5]].numpy(), rtol=1e-9)
    assert pair_distances(positions, np.zeros((2, 0), dtype=np.int64)).size == 0
