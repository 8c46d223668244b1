"""How exact is a geometry? ``python -m gyroformer.testing.exactness --impl MODULE --csv FILE``.

Every operation with a 60-digit reference is evaluated on the grid curvature x radius regime
(:mod:`gyroformer.testing.regimes`), in float32 and float64, at float32 inputs; its value, its gradient in the
arguments and its gradient in k are compared with the reference at exactly these inputs. ``MODULE`` is any
module with geoopt's function names and arguments. The table goes to stdout, one row a cell to the CSV.
"""

import argparse
import csv
import importlib
import math
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

from gyroformer import geometry
from gyroformer.errors import UsageError
from gyroformer.testing import reference
from gyroformer.testing.regimes import arguments, has_reference_gradient, regimes_of

CURVATURES = (-10.0, -1.0, -1e-3, -1e-4, -1e-6, -1e-8, 0.0, 1e-8, 1e-6, 1e-4, 1e-3, 1.0, 10.0)
DTYPES = (torch.float32, torch.float64)
SAMPLES = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """The errors of one operation at one curvature, radius regime and format; one row of the CSV."""

    operation: str
    k: float
    regime: str
    dtype: str
    samples: int
    value: float  # largest ‖got − true‖/‖true‖ over the finite samples, NaN if there is none
    grad_x: float  # the same for the gradients in the arguments, the worst argument
    grad_k: float  # the same for the gradient in the curvature
    wrong_sign: float  # fraction of the samples whose gradient in k has the wrong sign
    not_finite: int  # samples with NaN or Inf in value or gradients


def bind(name: str, module: ModuleType = geometry) -> Callable[..., Tensor]:
    """Return the operation ``name`` of ``module`` as the reference takes its arguments (one sample)."""
    function: Callable[..., Tensor] = getattr(module, name)
    if name == "weighted_midpoint":
        return lambda xs, w, k: function(xs.view(w.numel(), -1), w, k=k, reducedim=[0])
    if name == "dist2plane":
        return lambda x, p, a, k: function(x, p, a, k=k, signed=True)
    return function


def measure(
    name: str, k: float, regime: str, *, module: ModuleType = geometry, samples: int = SAMPLES
) -> list[Cell]:
    """Return the cells of one operation, curvature and regime, one for each of ``DTYPES``."""
    # the seed is the cell's own, so that one cell can be measured again without the others
    generator = torch.Generator().manual_seed(zlib.crc32(f"{name} {k:g} {regime}".encode()))
    exact_k = torch.tensor(k, dtype=torch.float32).item()
    run = bind(name, module)
    tallies = {dtype: _Tally() for dtype in DTYPES}
    for _ in range(samples):
        single = [a.to(torch.float32) for a in arguments(name, regime, exact_k, generator)]
        truth = _truth(name, single, exact_k)
        for dtype, tally in tallies.items():
            tally.add(_evaluate(run, [a.to(dtype) for a in single], exact_k), truth)
    return [
        Cell(
            operation=name,
            k=k,
            regime=regime,
            dtype=str(dtype).removeprefix("torch."),
            samples=samples,
            value=_worst(tally.value),
            grad_x=_worst(tally.grad_x),
            grad_k=_worst(tally.grad_k),
            wrong_sign=tally.wrong / samples,
            not_finite=tally.not_finite,
        )
        for dtype, tally in tallies.items()
    ]


@dataclass(frozen=True, slots=True)
class _Result:
    """Value, gradient in each argument, gradient in k; floats or 60-digit numbers."""

    value: Sequence[reference.Number]
    by_argument: Sequence[Sequence[reference.Number]]
    by_k: reference.Number


class _Tally:
    """The errors of the samples of one cell."""

    def __init__(self) -> None:
        self.value: list[float] = []
        self.grad_x: list[float] = []
        self.grad_k: list[float] = []
        self.wrong = 0
        self.not_finite = 0

    def add(self, got: _Result, truth: _Result) -> None:
        error = reference.relative_error
        pairs = zip(got.by_argument, truth.by_argument, strict=True)
        by_argument = [error(list(ours), list(true)) for ours, true in pairs]
        # max() would drop a NaN that does not come first
        grad_x = math.nan if any(map(math.isnan, by_argument)) else max(by_argument)
        errors = error(list(got.value), list(truth.value)), grad_x, error([got.by_k], [truth.by_k])
        for column, one in zip((self.value, self.grad_x, self.grad_k), errors, strict=True):
            column.append(one)
        self.not_finite += any(map(math.isnan, errors))
        # below the differences' own noise a derivative is zero and has no sign
        self.wrong += abs(truth.by_k) > 1e-30 and not got.by_k * float(truth.by_k) > 0


def _worst(errors: list[float]) -> float:
    return max((error for error in errors if not math.isnan(error)), default=math.nan)


def _cotangent(size: int, dtype: torch.dtype) -> Tensor:
    return torch.linspace(-1.0, 1.5, size, dtype=torch.float32).to(dtype)


def _truth(name: str, single: Sequence[Tensor], k: float) -> _Result:
    value = reference.evaluate(name, single, k)
    return _Result(value, *reference.gradients(name, single, k, _cotangent(len(value), torch.float32)))


def _evaluate(run: Callable[..., Tensor], single: Sequence[Tensor], k: float) -> _Result:
    inputs = [a.clone().requires_grad_() for a in single]
    curvature = torch.tensor(k, dtype=inputs[0].dtype, requires_grad=True)
    value = run(*inputs, k=curvature)
    weighed = (value.flatten() * _cotangent(value.numel(), value.dtype)).sum()
    # an implementation may not depend on k at all, and then its derivative is 0
    grads = torch.autograd.grad(weighed, [*inputs, curvature], allow_unused=True)
    *by_argument, by_k = [
        [0.0] * a.numel() if grad is None else grad.double().flatten().tolist()
        for a, grad in zip([*inputs, curvature], grads, strict=True)
    ]
    return _Result(value.detach().double().flatten().tolist(), by_argument, by_k[0])


def measure_all(module: ModuleType = geometry, *, samples: int = SAMPLES) -> Iterator[list[Cell]]:
    """Yield the cells of every operation that ``module`` has, one operation after the other."""
    for name in sorted(reference.REFERENCE):
        if hasattr(module, name):
            yield [
                cell
                for k in CURVATURES
                for regime in regimes_of(name)
                if has_reference_gradient(name, regime, k)
                for cell in measure(name, k, regime, module=module, samples=samples)
            ]


def write_csv(cells: Sequence[Cell], path: Path) -> None:
    """Write one row a cell."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Cell)], lineterminator="\n")
        writer.writeheader()
        for cell in cells:
            row = asdict(cell)
            writer.writerow({key: f"{v:.3g}" if isinstance(v, float) else v for key, v in row.items()})


def read_csv(path: Path) -> list[Cell]:
    """Return the cells of a file that :func:`write_csv` wrote."""
    texts = ("operation", "regime", "dtype")
    counts = ("samples", "not_finite")
    kinds: dict[str, type] = dict.fromkeys(texts, str) | dict.fromkeys(counts, int)
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Cell(**{key: kinds.get(key, float)(text) for key, text in row.items()})
            for row in csv.DictReader(file)
        ]


def table(cells: Sequence[Cell]) -> str:
    """Return the worst errors of each operation over curvatures and regimes, for each format."""
    lines = [
        f"{'':24}{'all regimes':>44}   {'ordinary radius':>26}",
        f"{'operation':24}{'value':>9}{'grad x':>9}{'grad k':>9}{'sign':>8}{'NaN':>9}   "
        f"{'value':>9}{'grad x':>9}{'grad k':>9}",
    ]
    for dtype in dict.fromkeys(cell.dtype for cell in cells):
        lines.append(
            f"-- {dtype}: largest relative errors; fraction of wrong signs of grad k; samples not finite"
        )
        for name in dict.fromkeys(cell.operation for cell in cells):
            mine = [cell for cell in cells if cell.dtype == dtype and cell.operation == name]
            usual = [cell for cell in mine if cell.regime == "ordinary"]
            worst, ordinary = (
                "".join(
                    f"{_worst([getattr(c, what) for c in some]):9.1e}"
                    for what in ("value", "grad_x", "grad_k")
                )
                for some in (mine, usual)
            )
            sign, bad = max(cell.wrong_sign for cell in mine), sum(cell.not_finite for cell in mine)
            lines.append(f"{name:24}{worst}{sign:8.0%}{bad:9d}   {ordinary}")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print the table, write the CSV."""
    parser = argparse.ArgumentParser(prog="python -m gyroformer.testing.exactness", description=__doc__)
    parser.add_argument("--impl", default="gyroformer.geometry", help="module to measure")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="samples a cell")
    parser.add_argument("--csv", type=Path, help="file to write one row a cell to")
    options = parser.parse_args(argv)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other packages' deprecations are not what is measured
        try:
            module = importlib.import_module(options.impl)
        except ImportError as error:
            raise UsageError(f"--impl {options.impl} cannot be imported: {error}") from error
        cells: list[Cell] = []
        for one in measure_all(module, samples=options.samples):
            print(f"measured {one[0].operation}: {len(one)} cells", file=sys.stderr, flush=True)
            cells += one
    print(table(cells))
    if options.csv:
        write_csv(cells, options.csv)


if __name__ == "__main__":
    main()
