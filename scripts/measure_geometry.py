"""What exactness costs: processor time of every function that geoopt has too, ours against geoopt's.

python scripts/measure_geometry.py [--sizes 50000x8,5000x64] [--repeats 15] [--functions NAMES] [--csv FILE]

Float32 points, one thread, eager, warm; k = -1 and 0.7; a forward pass, and a forward with a backward pass to all
arguments and the curvature. The two sides take turns, so that a machine that slows down slows both; medians of the
process's own time. Beside each ratio stands the largest relative error of value and gradients in float32, from the
origin to the edge, as results/exactness_*.csv have it. Rows of a file that are not measured again stay.
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
from gyroformer.testing.exactness import read_csv
from gyroformer.testing.samples import OPERATIONS, sample_arguments

RESULTS = Path(__file__).parents[1] / "results"
CURVATURES = (-1.0, 0.7)
#: each measured time is of at least so many seconds' worth of calls: the clock of a process is coarse
LEAST = 0.004
#: functions of one number; and an inner product that geoopt broadcasts to all pairs of points
LEFT_OUT = {"tan_k", "artan_k", "sin_k", "arsin_k", "inner"}
COLUMNS = [
    *("function", "pass", "k", "points", "dim", "ours_us", "geoopt_us", "ratio"),
    *("ours_worst_error", "geoopt_worst_error"),
]


def functions(oracle):
    """Return the functions that both have; geoopt has no distances of all pairs."""
    return sorted(name for name in OPERATIONS if name not in LEFT_OUT and hasattr(oracle, name))


def arguments(name, k, points, dim):
    generator = torch.Generator().manual_seed(0)
    found = sample_arguments(name, k=k, generator=generator, dtype=torch.float32, count=points, size=dim)
    # a midpoint of 10 points each, as an attention head with ten neighbours takes it
    options = {"reducedim": [1]} if name == "weighted_midpoint" else {}
    if options:
        found = [found[0][: points // 10 * 10].view(-1, 10, dim)]
    return found, options


def passes(function, found, k, options):
    """Return the two things to measure, as functions without arguments."""
    inputs = [a.detach().clone().requires_grad_() for a in found]
    curvature = torch.tensor(k, requires_grad=True)
    value = function(*inputs, k=curvature, **options)
    cotangent = torch.randn(value.shape, generator=torch.Generator().manual_seed(1))

    def forward():
        with torch.no_grad():
            function(*inputs, k=curvature, **options)

    def both():
        value = function(*inputs, k=curvature, **options)
        # some functions of geoopt's do not read a curvature that does not matter
        torch.autograd.grad(value, [*inputs, curvature], cotangent, allow_unused=True)

    return {"forward": forward, "forward+backward": both}


def seconds(run, calls):
    start = time.process_time()
    for _ in range(calls):
        run()
    return (time.process_time() - start) / calls


def compare(ours, theirs, repeats):
    """Return the medians of both in seconds, measured in turns."""
    sides = (ours, theirs)
    for side in sides:
        seconds(side, 3)  # the first calls compile and allocate
    calls = [max(1, round(LEAST / max(seconds(side, 2), 1e-6))) for side in sides]
    turns = [[seconds(side, n) for side, n in zip(sides, calls, strict=True)] for _ in range(repeats)]
    return [statistics.median(times) for times in zip(*turns, strict=True)]


def worst_errors(side):
    """Return the largest error of each operation that was measured, of value and both gradients."""
    found = {}
    for cell in read_csv(RESULTS / f"exactness_{side}.csv"):
        if cell.dtype == "float32":
            errors = [e for e in (cell.value, cell.grad_x, cell.grad_k) if e == e]
            found[cell.operation] = max([found.get(cell.operation, 0.0), *errors])
    return found


def rows(options, oracle):
    errors = [worst_errors(side) for side in ("gyroformer", "geoopt")]
    for size in options.sizes.split(","):
        points, dim = map(int, size.split("x"))
        for name in options.functions.split(",") if options.functions else functions(oracle):
            print(f"measuring {name} {size}", file=sys.stderr)
            for k in CURVATURES:
                found, more = arguments(name, k, points, dim)
                sides = [passes(getattr(module, name), found, k, more) for module in (geometry, oracle)]
                for kind in sides[0]:
                    ours, theirs = compare(*(side[kind] for side in sides), options.repeats)
                    times = [f"{ours * 1e6:.0f}", f"{theirs * 1e6:.0f}", f"{ours / theirs:.2f}"]
                    worst = [f"{side[name]:.0e}" if name in side else "" for side in errors]
                    yield dict(zip(COLUMNS, [name, kind, k, points, dim, *times, *worst], strict=True))


def write(path, found):
    """Write the rows; those of a file that were not measured again stay where they are."""

    def key(row):
        return tuple(str(row[name]) for name in COLUMNS[:5])

    held = list(csv.DictReader(path.open(newline=""))) if path.exists() else []
    every = {key(row): row for row in held} | {key(row): row for row in found}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(every.values())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="50000x8,5000x64")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--functions", default="", help="some of them, separated by commas; default: all")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import geoopt.manifolds.stereographic.math as oracle
    torch.set_num_threads(1)
    found = []
    print(" ".join(COLUMNS))
    for row in rows(options, oracle):
        found.append(row)
        print(" ".join(map(str, row.values())), flush=True)
    if options.csv:
        write(options.csv, found)


if __name__ == "__main__":
    main()
