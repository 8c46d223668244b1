"""Every operation against 60 digits: value, gradient in each argument, gradient in k.

The grid is curvature x radius. float32 must be right to the last place everywhere, because it is computed
in float64; float64 up to what its own conditioning leaves near the edge of the ball and near antipodes.
"""

import pytest
import torch

from gyroformer.testing import assert_matches_reference
from gyroformer.testing.exactness import bind
from gyroformer.testing.reference import REFERENCE
from gyroformer.testing.regimes import arguments, has_reference_gradient, regimes_of

CURVATURES = [-10.0, -2.3, -1e-3, -1e-6, -1e-8, 0.0, 1e-8, 1e-6, 1e-3, 0.7, 10.0]
RTOL = {torch.float32: 3e-7, torch.float64: 1e-10}
CONDITIONED = 1e-7

CASES = [(name, regime) for name in sorted(REFERENCE) for regime in regimes_of(name)]


@pytest.mark.parametrize("name, regime", CASES)
def test_values_and_gradients_match_60_digits(name, regime, dtype):
    generator = torch.Generator().manual_seed(sum(map(ord, name + regime)))
    # near the edge, an antipode or another point, float64's own rounding is amplified by the condition number
    conditioned = dtype == torch.float64 and regime in ("edge", "opposite", "close")
    rtol = CONDITIONED if conditioned else RTOL[dtype]
    for k in CURVATURES:
        if not has_reference_gradient(name, regime, k):
            continue
        single = [a.to(torch.float32).to(dtype) for a in arguments(name, regime, k, generator)]
        exact_k = torch.tensor(k, dtype=torch.float32).item()
        assert_matches_reference(name, single, k=exact_k, rtol=rtol, function=bind(name))
