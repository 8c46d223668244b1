"""Time of the sum over non-neighbours with its gradient, by form: ``python -m gyroformer.bench.pairs web-edu``.

Points are random, the sizes and neighbours those of the data set; Σ_u deg(u) log S_u and its gradient in the points and
the curvatures are computed. All forms of a case run in one process, in turn, warm; times are medians, by the clock and
of the processor (all threads together). On shared machines the ratios are what is measured.
"""

import argparse
import csv
import dataclasses as dc
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gyroformer.bench import speed
from gyroformer.data.load import load
from gyroformer.errors import GyroformerError, UsageError, did_you_mean
from gyroformer.ops.lifted import sine_cosine
from gyroformer.ops.pairs import Neighbours, log_partition

FORMS = ("native", "compiled", "eager")
CURVATURES = (-1.0, -0.3)
WIDTH = 8
#: standard deviation of a tangent coordinate, which puts the median distance near 3
SPREAD = 0.25
#: columns of the sampled sum
SAMPLE = 512


@dc.dataclass(frozen=True, slots=True)
class Case:
    """Points and their graph."""

    sine: Tensor
    cosine: Tensor
    k: Tensor
    neighbours: Neighbours

    @classmethod
    def of(cls, neighbours: Neighbours) -> "Case":
        """Return random points for the nodes of a graph."""
        random = torch.Generator().manual_seed(0)
        k = torch.tensor(CURVATURES)
        tangent = SPREAD * torch.randn(neighbours.num_nodes, len(CURVATURES), WIDTH, generator=random)
        sine, cosine = sine_cosine(tangent, k[:, None])
        return cls(sine.requires_grad_(), cosine.requires_grad_(), k.requires_grad_(), neighbours)

    def step(self, form: str, columns: Tensor | None) -> Callable[[], None]:
        """Return the sum with its gradient as a function to time."""
        degree = self.neighbours.degree.float()
        leaves = (self.sine, self.cosine, self.k)
        scale = 1.0 if columns is None else self.neighbours.num_nodes / columns.numel()

        def run() -> None:
            logs = log_partition(*leaves, self.neighbours, columns=columns, scale=scale, form=form)
            torch.autograd.grad((degree * logs).sum(), leaves)

        return run


class ProcessorTime:
    """A step that notes the processor time of each of its runs."""

    def __init__(self, step: Callable[[], None]) -> None:
        self.step = step
        self.seconds: list[float] = []

    def __call__(self) -> None:
        """Run the step."""
        start = time.process_time()
        self.step()
        self.seconds.append(time.process_time() - start)


def measure(
    names: list[str], forms: list[str], *, rounds: int, said: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Yield one row for each data set, kind of sum and form; ``said`` takes lines of progress."""
    for form in forms:
        if form not in FORMS:
            raise UsageError(f"no form is called {form!r}{did_you_mean(form, FORMS)}")
    if rounds < 1:
        raise UsageError(f"rounds must be at least 1, got {rounds}")
    for name in names:
        graph = load(name)
        assert graph.num_nodes is not None
        case = Case.of(Neighbours.of(graph.edge_index, graph.num_nodes))
        yield from measure_case(name, case, forms, rounds=rounds, said=said)


def measure_case(
    name: str, case: Case, forms: list[str], *, rounds: int, said: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one graph: over all pairs, and over a sample of columns."""
    nodes = case.neighbours.num_nodes
    sample = torch.randperm(nodes, generator=torch.Generator().manual_seed(1))[:SAMPLE]
    for label, columns in (("all", None), (str(sample.numel()), sample)):
        torch.compiler.reset()  # the compiled form at its best: made for these sizes, not for any
        said(f"{name}: columns {label}, {rounds} rounds of {len(forms)} forms")
        steps = {form: ProcessorTime(case.step(form, columns)) for form in forms}
        seconds = speed.interleaved(dict(steps), rounds)
        medians = {form: 1e3 * statistics.median(times) for form, times in seconds.items()}
        for form, milliseconds in medians.items():
            busy = 1e3 * statistics.median(steps[form].seconds[-rounds:])
            yield {
                "data": name,
                "nodes": nodes,
                "edges": case.neighbours.indices.numel() // 2,
                "columns": label,
                "form": form,
                "milliseconds": round(milliseconds, 2),
                "processor_milliseconds": round(busy, 2),
                "over_native": round(milliseconds / medians["native"], 2) if "native" in medians else None,
                "rounds": rounds,
            }


def save(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write the rows as CSV, each with what it depends on."""
    with path.open("w", newline="", encoding="utf-8") as file:
        about = speed.environment()
        writer = csv.DictWriter(file, [*rows[0], *about], lineterminator="\n")
        writer.writeheader()
        writer.writerows(row | about for row in rows)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write if asked to; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=["web-edu"], help="data sets or graph files")
    parser.add_argument("--forms", default=",".join(FORMS), help="which to run, separated by commas")
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds; the median is reported")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the rows to this CSV file")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    rows = []
    try:
        for row in measure(
            options.names,
            options.forms.split(","),
            rounds=options.rounds,
            said=lambda line: print(line, file=sys.stderr),
        ):
            rows.append(row)
            print(
                f"{row['data']:<12} {row['columns']:>5} columns  {row['form']:<9} {row['milliseconds']:>9.1f} ms  "
                f"{row['processor_milliseconds']:>9.1f} ms of processor  "
                f"{row['over_native'] or '-':>6} x native",
                flush=True,
            )
    except GyroformerError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    if options.out:
        save(options.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
