"""Every operation against 60 digits: value, gradient in each argument, gradient in k.

The grid is curvature x radius. float32 must be right to the last place everywhere, because it is computed
in float64; float64 up to what its own conditioning leaves near the edge of the ball and near antipodes.
"""

import math

import pytest
import torch

from gyroformer import geometry
from gyroformer.testing import assert_matches_reference
from gyroformer.testing.reference import REFERENCE

CURVATURES = [-10.0, -2.3, -1e-3, -1e-6, -1e-8, 0.0, 1e-8, 1e-6, 1e-3, 0.7, 10.0]
REGIMES = ["origin", "tiny", "ordinary", "large", "edge", "close", "opposite"]
PAIRS = {
    "mobius_add",
    "mobius_coadd",
    "logmap",
    "dist",
    "parallel_transport",
    "dist2plane",
    "gyration",
    "geodesic",
}
RTOL = {torch.float32: 3e-7, torch.float64: 1e-10}
CONDITIONED = 1e-7
SIZE = 3


def natural_length(k):
    return 1 / math.sqrt(abs(k)) if k else 1.0


def radius(regime, k, draw):
    length = natural_length(k)
    if regime == "origin":
        return 0.0
    if regime == "tiny":
        return 1e-5
    if regime == "large":
        return (0.9 + 0.09 * draw) * length if k < 0 else (2 + 8 * draw) * length
    if regime == "edge":
        return (1 - 10 ** (-5 + 2 * draw)) * length if k < 0 else 10 ** (1 + draw) * length
    return (0.1 + 0.5 * draw) * min(1.0, length)


def direction(generator):
    v = torch.randn(SIZE, generator=generator, dtype=torch.float64)
    return v / v.norm()


def uniform(generator):
    return torch.rand((), generator=generator, dtype=torch.float64).item()


def point(regime, k, generator):
    return direction(generator) * radius(regime, k, uniform(generator))


def partner(regime, k, x, generator):
    if regime == "close":
        return x + 1e-4 * x.norm() * direction(generator)
    if regime == "opposite":
        opposite = -x / (k * x.square().sum()) if k > 0 else -x
        return opposite * (1 + 1e-3 * direction(generator))
    return point(regime, k, generator)


def tangent(regime, k, generator, conformal):
    """A tangent vector whose length, seen from the origin, fits the regime."""
    if regime in ("origin", "tiny"):
        return direction(generator) * (0.0 if regime == "origin" else 1e-5)
    if regime == "large":
        length = (1 + 0.4 * uniform(generator)) * natural_length(k)
    elif regime == "edge":
        length = (4 + 3 * uniform(generator) if k <= 0 else math.pi / 2 - 1e-3) * natural_length(k)
    else:
        length = radius("ordinary", k, uniform(generator))
    return direction(generator) * length * conformal


def arguments(name, regime, k, generator):
    x = point(regime, k, generator)
    conformal = 1 + k * x.square().sum().item()
    share = torch.tensor([0.3 + uniform(generator)], dtype=torch.float64)
    any_tangent = direction(generator)
    if name == "expmap0":
        return [tangent(regime, k, generator, 1.0)]
    if name == "expmap":
        return [x, tangent(regime, k, generator, conformal)]
    if name in PAIRS:
        y = partner(regime, k, x, generator)
        extra = {"parallel_transport": [any_tangent], "dist2plane": [any_tangent], "gyration": [any_tangent]}
        return [share, x, y] if name == "geodesic" else [x, y, *extra.get(name, [])]
    if name == "mobius_scalar_mul":
        return [share, x]
    if name == "inner":
        return [x, any_tangent, direction(generator)]
    if name == "weighted_midpoint":
        points = torch.cat([point(regime, k, generator) for _ in range(3)])
        return [points, torch.softmax(torch.randn(3, generator=generator, dtype=torch.float64), 0)]
    return [x, any_tangent] if name in ("parallel_transport0", "parallel_transport0back", "norm") else [x]


def run(name):
    if name == "weighted_midpoint":
        return lambda xs, w, k: geometry.weighted_midpoint(xs.view(3, -1), w, k=k, reducedim=[0])
    if name == "dist2plane":
        return lambda x, p, a, k: geometry.dist2plane(x, p, a, k=k, signed=True)
    return getattr(geometry, name)


def has_reference_gradient(name, regime, k):
    """Where the true derivative does not exist, or the plain definition cannot be evaluated at all."""
    if regime == "origin" and name in ("dist", "dist0", "norm"):
        return False  # a norm at zero: ours is 0 by definition
    if name in ("geodesic", "mobius_coadd") and regime in ("opposite", "edge", "large"):
        return k <= 0 and regime == "large"  # several geodesics; the point at infinity
    return not (
        name == "gyration" and regime in ("large", "edge", "opposite")
    )  # the definition leaves the ball


CASES = [
    (name, regime)
    for name in sorted(REFERENCE)
    for regime in REGIMES
    if name in PAIRS or regime not in ("close", "opposite")
]


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
        assert_matches_reference(name, single, k=exact_k, rtol=rtol, function=run(name))
