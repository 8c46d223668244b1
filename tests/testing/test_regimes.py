import math

import pytest
import torch

from gyroformer.testing import regimes
from gyroformer.testing.reference import REFERENCE


@pytest.mark.parametrize("k", [-10.0, -1e-8, 0.0, 1e-8, 10.0])
def test_points_lie_where_the_regime_says(k, generator):
    length = regimes.natural_length(k)
    for _ in range(20):
        norms = {r: regimes.point(r, k, generator).norm().item() / length for r in regimes.REGIMES}
        assert norms["origin"] == 0
        assert norms["tiny"] * length == pytest.approx(1e-5)
        assert norms["ordinary"] <= 0.6 + 1e-12
        if k < 0:
            assert 0.9 <= norms["large"] <= 0.99 < 0.999 - 1e-12 <= norms["edge"] < 1
        else:
            assert 2 <= norms["large"] <= 10 <= norms["edge"] <= 100 + 1e-9


@pytest.mark.parametrize("k", [-10.0, 0.0, 10.0])
def test_partners_are_close_or_opposite(k, generator):
    x = regimes.point("ordinary", k, generator)
    near, far = (regimes.partner(regime, k, x, generator) for regime in ("close", "opposite"))
    assert (near - x).norm() == pytest.approx(1e-4 * x.norm().item())
    antipode = -x / (k * x.square().sum()) if k > 0 else -x
    assert 0 < (far - antipode).norm() <= 1e-3 * antipode.norm()


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_arguments_fit_every_reference(name, generator):
    for regime in regimes.regimes_of(name):
        given = regimes.arguments(name, regime, -0.7, generator)
        assert all(a.dtype == torch.float64 and bool(a.isfinite().all()) for a in given)
        if name == "expmap" and regime == "large":
            conformal = 1 - 0.7 * given[0].square().sum().item()
            assert 1 <= given[1].norm().item() / conformal * math.sqrt(0.7) <= 1.4


def test_only_pairs_are_close_or_opposite():
    assert set(regimes.REGIMES) - set(regimes.regimes_of("logmap0")) == {"close", "opposite"}
    assert regimes.regimes_of("dist") == regimes.REGIMES
