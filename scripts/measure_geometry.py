"""What the wide format costs: seconds of a forward and backward pass, ours against geoopt's, interleaved.

python scripts/measure_geometry.py [--points 50000] [--dim 8] [--repeats 15] [--csv FILE]

Float32 points, one thread, k = -1 and k = 1; medians. The two sides take turns, so that a machine that slows
down slows both. Other processes still make the ratios rough.
"""

import argparse
import csv
import statistics
import sys
import time
import warnings
from pathlib import Path

import torch

from gyroformer import geometry
from gyroformer.testing.samples import OPERATIONS

NAMES = [
    "expmap0",
    "logmap0",
    "expmap",
    "logmap",
    "mobius_add",
    "dist",
    "parallel_transport",
    "weighted_midpoint",
]
COLUMNS = ["operation", "k", "points", "dim", "ours_ms", "geoopt_ms", "ratio"]


def seconds(function, arguments, k, options):
    inputs = [a.detach().requires_grad_() for a in arguments]
    curvature = torch.tensor(k, requires_grad=True)
    start = time.perf_counter()
    torch.autograd.grad(function(*inputs, k=curvature, **options).sum(), [*inputs, curvature])
    return time.perf_counter() - start


def compare(name, k, points, dim, repeats, oracle):
    generator = torch.Generator().manual_seed(0)
    arguments = [0.3 * torch.randn(points, dim, generator=generator) / dim**0.5 for _ in OPERATIONS[name]]
    # a midpoint of 10 points each, as an attention head with ten neighbours takes it
    options = {"reducedim": [1]} if name == "weighted_midpoint" else {}
    if options:
        arguments = [arguments[0].view(points // 10, 10, dim)]
    sides = {"ours": getattr(geometry, name), "geoopt": getattr(oracle, name)}
    times = {side: [] for side in sides}
    for turn in range(repeats + 2):
        for side, function in sides.items():
            elapsed = seconds(function, arguments, k, options)
            if turn >= 2:  # the first calls compile and allocate
                times[side].append(elapsed)
    ours, theirs = (statistics.median(times[side]) * 1e3 for side in ("ours", "geoopt"))
    row = (name, k, points, dim, round(ours, 1), round(theirs, 1), round(ours / theirs, 2))
    return dict(zip(COLUMNS, row, strict=True))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=50_000)
    parser.add_argument("--dim", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import geoopt.manifolds.stereographic.math as oracle
    torch.set_num_threads(1)
    rows = []
    print("".join(f"{column:>18}" for column in COLUMNS))
    for k in (-1.0, 1.0):
        for name in NAMES:
            print(f"measuring {name}", file=sys.stderr)
            rows.append(compare(name, k, options.points, options.dim, options.repeats, oracle))
            print("".join(f"{value!s:>18}" for value in rows[-1].values()), flush=True)
    if options.csv:
        with options.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
