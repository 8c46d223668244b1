"""Time and memory of a forward pass and a training step, beside flat Transformers and a geoopt-composed twin.

What is measured is what a user calls, ``model(tokens)``: points for ours and geoopt's, vectors for the flat ones. All
variants of a case run in one process, in turn, warm, on the same tokens and threads; times are medians, and how far
rounds differ is said beside them. Of one thread the processor's time is taken, which other jobs on the machine do not
lengthen; of several the clock's. Peak memory is that of one training step in a fresh process. Absolute times mean
little on shared machines; the ratios are what is measured.
"""

import ctypes
import dataclasses as dc
import json
import math
import multiprocessing as mp
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import gyroformer
from gyroformer.bench.flat_twins import LeanTransformer, TorchTransformer
from gyroformer.bench.geoopt_twin import GeooptTransformer
from gyroformer.durable import write_output
from gyroformer.errors import UsageError, did_you_mean
from gyroformer.nn.transformer import StereographicTransformer
from gyroformer.options.layers import AttentionKind
from gyroformer.untrusted import read_json

#: the folder that holds this package: src of a checkout
SOURCE = Path(gyroformer.__file__).resolve().parents[1]
#: curvatures of the measured model: one of each sign, so that no branch is spared
CURVATURES = (-0.7, 0.4)
#: seconds that the rounds of one variant may take; one that is over takes part in no further round
PATIENCE = 8.0
#: a step this long, in seconds, needs no second one to be warm
LONG = 1.0
VARIANTS = ("ours", "ours compiled", "flat", "flat compiled", "geoopt")


@dc.dataclass(frozen=True, slots=True)
class Case:
    """A size to measure."""

    tokens: int
    width: int
    heads: int
    layers: int
    attention: AttentionKind = "linear"
    geoopt: bool = (
        True  # whether the geoopt-composed twin is measured: it has linear attention only, and patience ends
    )


CASES = {
    "web-edu": Case(9_505, 16, 2, 1),
    "facebook": Case(92_273, 16, 2, 1),
    "wide": Case(50_000, 128, 4, 2),
    "big": Case(200_000, 64, 4, 2, geoopt=False),
    "softmax": Case(4_096, 64, 4, 1, "softmax", geoopt=False),
    "huge": Case(10_000_000, 16, 2, 1),
}
#: cases that run when none is named; the others take minutes and many gigabytes
USUAL = ("web-edu", "facebook", "wide", "big", "softmax")

Run = Callable[[Tensor], Tensor]
#: what a row has besides its sizes
COLUMNS = {"case", "pass", "variant", "milliseconds", "spread", "rounds", "peak_mb", "commit", "threads"}


def build(variant: str, case: Case) -> tuple[torch.nn.Module, Run]:
    """Return a model and the function to measure; the flat twin of softmax attention is torch's own encoder."""
    torch.manual_seed(0)
    shape = (case.width, case.heads, case.layers)
    model: torch.nn.Module
    if variant.startswith("flat"):
        model = (LeanTransformer if case.attention == "linear" else TorchTransformer)(*shape)
    else:
        curvature = [CURVATURES[h % 2] for h in range(case.heads)]
        curved = StereographicTransformer(*shape, curvature=curvature, attention=case.attention)
        model = GeooptTransformer(curved) if variant == "geoopt" else curved
    return model, torch.compile(model, fullgraph=True) if variant.endswith("compiled") else model


def training_step(model: torch.nn.Module, run: Run, tokens: Tensor) -> Callable[[], None]:
    """Return one step of training: forward, backward, Adam."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        run(tokens).square().mean().backward()
        optimizer.step()

    return step


def forward_pass(run: Run, tokens: Tensor) -> Callable[[], None]:
    """Return one forward pass without gradients."""

    def step() -> None:
        with torch.no_grad():
            run(tokens)

    return step


def check_names(names: list[str], variants: list[str]) -> None:
    """Raise unless these are cases and variants."""
    for name in names:
        if name not in CASES:
            raise UsageError(f"no case is called {name!r}{did_you_mean(name, CASES)}")
    if not variants:
        raise UsageError(f"no variant is named; choose from {', '.join(VARIANTS)}")
    for variant in variants:
        if variant not in VARIANTS:
            raise UsageError(f"no variant is called {variant!r}{did_you_mean(variant, VARIANTS)}")


def measure(
    names: list[str], variants: list[str], *, rounds: int, memory: bool, said: Callable[[str], None]
) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each case, one for each pass and variant; ``said`` takes lines of progress."""
    check_names(names, variants)
    for name in names:
        chosen = [variant for variant in variants if CASES[name].geoopt or variant != "geoopt"]
        found = list(_times(name, chosen, rounds=rounds, said=said))
        # after the times: compiled code is then in the cache on disk
        for variant in chosen if memory else []:
            said(f"{name}: memory of {variant}")
            peak = peak_memory(variant, CASES[name])
            found = [
                row | {"peak_mb": peak} if (row["pass"], row["variant"]) == ("training", variant) else row
                for row in found
            ]
        yield found


def _times(
    name: str, variants: list[str], *, rounds: int, said: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    case = CASES[name]
    torch.compiler.reset()  # code that was compiled for other cases counts against a limit
    tokens = torch.randn(case.tokens, case.width, generator=torch.Generator().manual_seed(0))
    built = {variant: build(variant, case) for variant in variants}
    for kind in ("forward", "training"):
        steps = {
            variant: forward_pass(run, tokens) if kind == "forward" else training_step(model, run, tokens)
            for variant, (model, run) in built.items()
        }
        said(f"{name}: {kind}, up to {rounds} rounds of {len(steps)} variants")
        for variant, seconds in interleaved(steps, rounds, clock=clock(), patience=PATIENCE).items():
            yield {
                "case": name,
                **{key: getattr(case, key) for key in ("tokens", "width", "heads", "layers", "attention")},
                "pass": kind,
                "variant": variant,
                "milliseconds": round(1e3 * statistics.median(seconds), 3),
                "spread": round(spread(seconds), 3),
                "rounds": len(seconds),
                "peak_mb": None,
                "commit": commit(),
                "threads": torch.get_num_threads(),
            }


def clock() -> Callable[[], float]:
    """Return what tells the time: the processor for one thread, else the clock."""
    return time.process_time if torch.get_num_threads() == 1 else time.perf_counter


def interleaved(
    steps: dict[str, Callable[[], None]],
    rounds: int,
    *,
    clock: Callable[[], float] = time.perf_counter,
    patience: float = math.inf,
) -> dict[str, list[float]]:
    """Return the seconds of each step, round after round, all steps in turn and warm.

    A step whose rounds have taken ``patience`` seconds takes part in no further one.
    """

    def timed_once(step: Callable[[], None]) -> float:
        start = clock()
        step()
        return clock() - start

    for variant, step in steps.items():  # compile, fill caches
        if timed_once(step) < LONG or "compiled" in variant:
            step()
    seconds: dict[str, list[float]] = {variant: [] for variant in steps}
    for _ in range(rounds):
        for variant, step in steps.items():
            if sum(seconds[variant]) < patience:
                seconds[variant].append(timed_once(step))
    return seconds


def spread(seconds: list[float]) -> float:
    """Return how far rounds differ: half the range of the middle half of them, as a share of the median."""
    if len(seconds) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(seconds, n=4)
    return (high - low) / 2 / middle


def peak_memory(variant: str, case: Case) -> float | None:
    """Return what one training step adds to the resident memory at most, in MB; None where it cannot be read."""
    if resident("VmRSS") is None:
        return None
    context = mp.get_context("forkserver")  # which imports once, and has no threads that a fork would lose
    context.set_forkserver_preload([__name__])
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_probe, args=(variant, dc.astuple(case), torch.get_num_threads(), sender))
    child.start()
    sender.close()
    try:
        peak: float = receiver.recv()
    finally:
        child.join()
    return peak


def _probe(variant: str, case: tuple[Any, ...], threads: int, sender: Any) -> None:
    torch.set_num_threads(threads)
    shape = Case(*case)
    model, run = build(variant, shape)
    # compile and load everything first, so that only the step itself remains to be measured: eager code on few tokens,
    # compiled code on those that it is compiled for
    few = shape.tokens if variant.endswith("compiled") else 1024
    training_step(model, run, torch.randn(few, shape.width))()
    step = training_step(model, run, torch.randn(shape.tokens, shape.width))
    give_back_memory()
    before = resident("VmRSS")
    reset_peak()
    step()
    peak = resident("VmHWM")
    sender.send(None if before is None or peak is None else round((peak - before) / 1024, 1))


def timed(step: Callable[[], None], rounds: int) -> list[float]:
    """Return the seconds of a step, warm, round after round: the processor's for one thread."""
    return interleaved({"": step}, rounds, clock=clock())[""]


def give_back_memory() -> None:
    """Return what the allocator holds but nobody uses to the system, where the C library can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def reset_peak() -> None:
    """Begin anew to count the peak of the resident memory, where that can be done."""
    if Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")


def resident(key: str) -> int | None:
    """Return ``VmRSS``, the resident memory, or ``VmHWM``, its peak, in KB; None where the system does not tell."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    line = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith(key))
    return int(line.split()[1])


#: label of a ratio -> what is divided by what: the best of several variants, by a column
RATIOS = {
    "ours/flat": (("ours", "ours compiled"), ("flat", "flat compiled"), "milliseconds"),
    "eager ours/flat": (("ours",), ("flat",), "milliseconds"),
    "compiled ours/flat": (("ours compiled",), ("flat compiled",), "milliseconds"),
    "ours compiled/eager": (("ours compiled",), ("ours",), "milliseconds"),
    "geoopt/ours": (("geoopt",), ("ours", "ours compiled"), "milliseconds"),
    "memory ours/flat": (("ours", "ours compiled"), ("flat", "flat compiled"), "peak_mb"),
}


def ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each case and pass how ours compares, by :data:`RATIOS`; None where something was not measured."""
    table = {(r["case"], r["pass"], r["variant"]): r for r in rows}

    def best(case: str, kind: str, variants: tuple[str, ...], key: str) -> float | None:
        values = [table.get((case, kind, variant), {}).get(key) for variant in variants]
        known = [value for value in values if value]
        return min(known) if len(known) == len(variants) else None

    found = []
    for case, kind in dict.fromkeys((r["case"], r["pass"]) for r in rows):
        row: dict[str, Any] = {"case": case, "pass": kind}
        for label, (top, bottom, key) in RATIOS.items():
            above, below = best(case, kind, top, key), best(case, kind, bottom, key)
            row[label] = round(above / below, 3) if above and below else None
        found.append(row)
    return found


def environment() -> dict[str, Any]:
    """Return what the measurements depend on."""
    return {
        "gyroformer": gyroformer.__version__,
        "commit": commit(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "clock": clock().__name__,
        "processor": _processor_name(),
    }


def commit(source: Path = SOURCE) -> str | None:
    """Return the commit of the checkout that this package runs from, None if it is installed otherwise.

    ``-dirty`` follows if the source differs from it, and the source alone: rows that a command writes into a tracked
    file of results do not change what it runs.

    Args:
        source: the folder that holds the package.
    """
    found = _git(source, "describe", "--always", "--abbrev=12")
    if not found:
        return None
    changed = _git(source, "status", "--porcelain", "--untracked-files=no", "--", ".")
    return f"{found}-dirty" if changed else found


def _git(folder: Path, *words: str) -> str | None:
    """Return what git says in a folder; None if there is no git."""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", *words],
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=10,
        )
    except OSError:
        return None
    return done.stdout.strip()


def _processor_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.exists() else []
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )


def save(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows and environment as JSON; rows of other cases that the file holds stay."""
    measured = {row["case"] for row in rows}
    kept = [row for row in _held(path) if row["case"] not in measured]
    order = list(CASES)
    every = sorted(
        kept + rows, key=lambda row: order.index(row["case"]) if row["case"] in order else len(order)
    )
    found = {"environment": environment(), "rows": every, "ratios": ratios(every)}
    write_output(path, (json.dumps(found, indent=1) + "\n").encode())


def _held(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, none if there is no file, or one of an earlier form whose rows mean something else."""
    if not path.exists():
        return []
    rows = read_json(path).get("rows")
    if not isinstance(rows, list) or not all(isinstance(row, dict) and row.keys() >= COLUMNS for row in rows):
        return []
    return rows
