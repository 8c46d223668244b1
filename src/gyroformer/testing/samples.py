"""Random points, and arguments for every operation of the geometry."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from gyroformer import geometry

#: operation -> the kinds of its positional arguments (see :func:`sample_arguments`)
OPERATIONS: dict[str, tuple[str, ...]] = {
    "antipode": ("point",),
    "arsin_k": ("small",),
    "artan_k": ("small",),
    "dist": ("point", "point"),
    "dist0": ("point",),
    "dist2plane": ("point", "point", "tangent"),
    "egrad2rgrad": ("point", "tangent"),
    "expmap": ("point", "tangent"),
    "expmap0": ("tangent",),
    "geodesic": ("share", "point", "point"),
    "geodesic_unit": ("share", "point", "tangent"),
    "gyration": ("point", "point", "tangent"),
    "inner": ("point", "tangent", "tangent"),
    "inv_sproj": ("point",),
    "lambda_x": ("point",),
    "logmap": ("point", "point"),
    "logmap0": ("point",),
    "mobius_add": ("point", "point"),
    "mobius_coadd": ("point", "point"),
    "mobius_cosub": ("point", "point"),
    "mobius_matvec": ("matrix", "point"),
    "mobius_pointwise_mul": ("tangent", "point"),
    "mobius_scalar_mul": ("share", "point"),
    "mobius_sub": ("point", "point"),
    "norm": ("point", "tangent"),
    "pairwise_dist": ("point", "point"),
    "parallel_transport": ("point", "point", "tangent"),
    "parallel_transport0": ("point", "tangent"),
    "parallel_transport0back": ("point", "tangent"),
    "project": ("point",),
    "sin_k": ("small",),
    "sproj": ("ambient",),
    "tan_k": ("small",),
    "weighted_midpoint": ("point",),
}
#: powers of a length in the result of an operation (0 for pure numbers), for the scaling law
DEGREE = {"lambda_x": 0, "egrad2rgrad": 1, "inner": 2}


def radius_of(k: float, *, share: float = 0.6) -> float:
    """Return ``share`` of the space's natural length, 1/√|k|, at most ``share`` itself."""
    return share * min(1.0, 1 / math.sqrt(abs(k))) if k else share


def random_points(
    *shape: int, k: float, generator: torch.Generator, dtype: torch.dtype = torch.float64, share: float = 0.6
) -> Tensor:
    """Return points in random directions, their norms uniform up to ``share`` of the natural length."""
    direction = torch.randn(*shape, generator=generator, dtype=torch.float64)
    direction = direction / direction.norm(dim=-1, keepdim=True)
    radius = torch.rand(*shape[:-1], 1, generator=generator, dtype=torch.float64) * radius_of(k, share=share)
    return (direction * radius).to(dtype)


def random_rotation(size: int, *, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> Tensor:
    """Return a random orthogonal matrix (rotations and reflections alike)."""
    q, r = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64))
    return (q * r.diagonal().sign()).to(dtype)


def sample_arguments(
    name: str, *, k: float, generator: torch.Generator, count: int = 5, size: int = 3, dtype: torch.dtype
) -> tuple[Tensor, ...]:
    """Return arguments at ordinary radius for an operation: ``count`` samples of dimension ``size``."""
    draw: dict[str, Callable[[], Tensor]] = {
        "point": lambda: random_points(count, size, k=k, generator=generator, dtype=dtype),
        "tangent": lambda: random_points(count, size, k=k, generator=generator, dtype=dtype),
        "small": lambda: random_points(count, 1, k=k, generator=generator, dtype=dtype),
        "share": lambda: 0.2 + random_points(count, 1, k=0.0, generator=generator, dtype=dtype).abs(),
        "matrix": lambda: torch.randn(size, size, generator=generator, dtype=torch.float64).to(dtype) / size,
        "ambient": lambda: geometry.inv_sproj(
            random_points(count, size, k=k, generator=generator), k=torch.tensor(k, dtype=torch.float64)
        ).to(dtype),
    }
    return tuple(draw[kind]() for kind in OPERATIONS[name])


def operation(name: str) -> Callable[..., Tensor]:
    """Return the function ``name`` of the geometry, taking ``k`` by keyword."""
    function: Callable[..., Tensor] = getattr(geometry, name)
    return function
