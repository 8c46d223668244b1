"""Measure what the margin of ``geometry.project`` leaves of a walk to the edge of the ball and back.

python scripts/measure_project.py --csv results/project_margins.csv

A tangent vector of length 1e7 is followed, the end projected, made 1000 times as long, projected, and the vector
carried there, a hundred times; then it is followed backwards, which should lead to the opposite point. The error is the
distance from it in units of the ball's radius, the largest of all walks.
"""

import argparse
import itertools
import math
from pathlib import Path

import torch
from result_file import write_rows
from torch import Tensor

from gyroformer import geometry as g

CURVATURES, WIDTHS, WALKS, STEPS = (-0.1, -0.5, -1.0, -3.0), (2, 5, 10), 40, 100
#: the margin in terms of eps; None is the default
MARGINS = {
    "8 eps": lambda eps: 8 * eps,
    "√eps": math.sqrt,
    "4 √eps": lambda eps: 4 * math.sqrt(eps),
    "16 √eps": lambda eps: 16 * math.sqrt(eps),
    "the default": None,
}


def error_of_walks(k: float, width: int, dtype: torch.dtype, margin: float | None) -> float:
    """Return the largest error of some walks."""
    draw = torch.Generator().manual_seed(1)
    a = torch.randn(WALKS, width, generator=draw, dtype=dtype)
    a = (
        a
        / a.norm(dim=-1, keepdim=True)
        * torch.rand(WALKS, 1, generator=draw, dtype=dtype)
        * 0.9
        / (-k) ** 0.5
    )
    far = 1e7 * 0.3 * torch.randn(WALKS, width, generator=draw, dtype=dtype)

    def inside(x: Tensor) -> Tensor:
        return g.project(x, k=k) if margin is None else g.project(x, k=k, eps=margin)

    for _ in range(STEPS):
        end = inside(g.expmap(a, far, k=k))
        end = inside(g.mobius_scalar_mul(torch.tensor(1000.0, dtype=dtype), end, k=k))
        a, far = end, g.parallel_transport(a, end, far, k=k)
    back = g.expmap(a, -far, k=k)
    return float(((back + a).norm(dim=-1) * (-k) ** 0.5).max())


def reach(dtype: torch.dtype, margin: float | None) -> float:
    """Return how far from the origin a projected point can be, at k = -1."""
    edge = torch.tensor([[2.0, 0.0]], dtype=dtype)
    inside = g.project(edge, k=-1.0) if margin is None else g.project(edge, k=-1.0, eps=margin)
    return float(g.dist0(inside.double(), k=-1.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", type=Path, required=True)
    path, rows = parser.parse_args().csv, []
    for name, of_eps in MARGINS.items():
        row: dict[str, object] = {"margin": name}
        for dtype in (torch.float32, torch.float64):
            margin = None if of_eps is None else of_eps(torch.finfo(dtype).eps)
            cases = itertools.product(CURVATURES, WIDTHS)
            short = str(dtype).removeprefix("torch.")
            row[f"{short}_error"] = f"{max(error_of_walks(k, d, dtype, margin) for k, d in cases):.2g}"
            row[f"{short}_reach"] = f"{reach(dtype, margin):.1f}"
        rows.append({**row, "walks": len(CURVATURES) * len(WIDTHS) * WALKS})
        print(rows[-1], flush=True)
    write_rows(path, rows)


if __name__ == "__main__":
    main()
