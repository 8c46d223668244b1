import pytest
import torch

from gyroformer.ops import flatten
from gyroformer.ops.flatten import flat_vectors
from gyroformer.ops.positions import StereographicPositions


@pytest.mark.parametrize("landmarks", [100, 20])
def test_flat_points_come_back(monkeypatch, landmarks):
    """Of points of a flat space all distances are kept, with landmarks too."""
    monkeypatch.setattr(flatten, "LANDMARKS", landmarks)
    points = torch.randn(60, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = flat_vectors(StereographicPositions.flat(points), 5)
    torch.testing.assert_close(torch.cdist(found, found), torch.cdist(points, points), rtol=1e-6, atol=1e-6)
    assert found[:, 3:].abs().max() < 1e-6


def test_roots_of_distances():
    points = torch.arange(4.0, dtype=torch.float64).unsqueeze(1)
    found = flat_vectors(StereographicPositions.flat(points), 3, power=1.0)
    torch.testing.assert_close(
        torch.cdist(found, found) ** 2, torch.cdist(points, points), rtol=1e-6, atol=1e-6
    )
