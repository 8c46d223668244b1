r"""Arguments for every operation by curvature and radius regime: from the origin to the edge of the space.

A regime says where the points lie, in units of the space's natural length :math:`1/\sqrt{|\kappa|}`:

========  ==========================================================================================
origin    the point 0, the tangent vector 0
tiny      norms of 1e-5
ordinary  norms of 0.1 to 0.6
large     0.9 to 0.99 of the ball's radius (k < 0); 2 to 10 lengths away, past the equator (k ≥ 0)
edge      1e-5 to 1e-3 inside the ball (k < 0); 10 to 100 lengths away, near the antipode of 0 (k ≥ 0)
close     ordinary, the second point 1e-4 of its norm from the first
opposite  ordinary, the second point within 1e-3 of the antipode (k > 0) or of -x (k ≤ 0)
========  ==========================================================================================
"""

import math

import torch
from torch import Tensor

REGIMES = ("origin", "tiny", "ordinary", "large", "edge", "close", "opposite")
#: operations of two points, for which "close" and "opposite" mean something
PAIRS = frozenset(
    {
        "mobius_add",
        "mobius_coadd",
        "logmap",
        "dist",
        "parallel_transport",
        "dist2plane",
        "gyration",
        "geodesic",
    }
)
SIZE = 3


def regimes_of(name: str) -> tuple[str, ...]:
    """Return the regimes that an operation is measured in."""
    return tuple(regime for regime in REGIMES if name in PAIRS or regime not in ("close", "opposite"))


def natural_length(k: float) -> float:
    r"""Return :math:`1/\sqrt{|\kappa|}`, 1 in the flat space."""
    return 1 / math.sqrt(abs(k)) if k else 1.0


def radius(regime: str, k: float, draw: float) -> float:
    """Return the norm of a point; ``draw`` in [0, 1) picks it within the regime."""
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


def direction(generator: torch.Generator) -> Tensor:
    """Return a unit vector."""
    v = torch.randn(SIZE, generator=generator, dtype=torch.float64)
    return v / v.norm()


def uniform(generator: torch.Generator) -> float:
    """Return a number of [0, 1)."""
    return torch.rand((), generator=generator, dtype=torch.float64).item()


def point(regime: str, k: float, generator: torch.Generator) -> Tensor:
    """Return one point of the regime."""
    return direction(generator) * radius(regime, k, uniform(generator))


def partner(regime: str, k: float, x: Tensor, generator: torch.Generator) -> Tensor:
    """Return the second point of a pair whose first is ``x``."""
    if regime == "close":
        return x + 1e-4 * x.norm() * direction(generator)
    if regime == "opposite":
        opposite = -x / (k * x.square().sum()) if k > 0 else -x
        return opposite * (1 + 1e-3 * direction(generator))
    return point(regime, k, generator)


def tangent(regime: str, k: float, generator: torch.Generator, conformal: float) -> Tensor:
    """Return a tangent vector whose length, seen from the origin, fits the regime."""
    if regime in ("origin", "tiny"):
        return direction(generator) * (0.0 if regime == "origin" else 1e-5)
    if regime == "large":
        length = (1 + 0.4 * uniform(generator)) * natural_length(k)
    elif regime == "edge":
        length = (4 + 3 * uniform(generator) if k <= 0 else math.pi / 2 - 1e-3) * natural_length(k)
    else:
        length = radius("ordinary", k, uniform(generator))
    return direction(generator) * length * conformal


def arguments(name: str, regime: str, k: float, generator: torch.Generator) -> list[Tensor]:
    """Return one sample of the positional arguments of an operation, in float64."""
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


def has_reference_gradient(name: str, regime: str, k: float) -> bool:
    """Return whether the true derivative exists and the plain definition can be evaluated at all."""
    if regime == "origin" and name in ("dist", "dist0", "norm"):
        return False  # a norm at zero: ours is 0 by definition
    if name in ("geodesic", "mobius_coadd") and regime in ("opposite", "edge", "large"):
        return k <= 0 and regime == "large"  # several geodesics; the point at infinity
    # the definition of a gyration adds the vector to a point, which leaves the ball
    return not (name == "gyration" and regime in ("large", "edge", "opposite"))
