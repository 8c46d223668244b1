"""Hostile cases, counted: a target makes them one by one, and each must end well or in one clear error.

``python tests/helpers/fuzzing.py --seconds 60`` runs every target so long, and writes how many cases ran and how many
failed to ``results/fuzz.csv``; the tests run a few of each.
"""

import argparse
import csv
import dataclasses as dc
import itertools
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from gyroformer.errors import GyroformerError

#: a case: what it is, for the report of a failure, and what is to be called
Case = tuple[str, Callable[[], object]]
#: makes the cases of a target in a folder of its own, from a source of randomness, without end or until all are done
Target = Callable[[Path, random.Random], Iterator[Case]]

COLUMNS = ("target", "cases", "refused", "failed", "seed")
#: seconds of work that one case may take
PATIENCE = 10.0


@dc.dataclass
class Tally:
    """What became of the cases of a target."""

    target: str
    ran: int = 0
    refused: int = 0
    seconds: float = 0.0
    failures: list[str] = dc.field(default_factory=list)


def run_target(
    name: str, target: Target, folder: Path, *, count: int, seconds: float, seed: int = 0
) -> Tally:
    """Run at most ``count`` cases within ``seconds``."""
    tally, begun = Tally(name), time.monotonic()
    for what, call in itertools.islice(target(folder, random.Random(seed)), count):
        start = time.process_time()  # of this process: others may be at work on the machine
        try:
            call()
        except GyroformerError as error:
            tally.refused += 1
            if "\n" in str(error):
                tally.failures.append(f"{what}: more than one line: {error!r}")
        except Exception as error:  # noqa: BLE001 - every other kind is what is looked for
            last = traceback.extract_tb(error.__traceback__)[-1]
            tally.failures.append(f"{what}: {error!r} at {Path(last.filename).name}:{last.lineno}")
        if time.process_time() - start > PATIENCE:
            tally.failures.append(f"{what}: took {time.process_time() - start:.0f} s")
        tally.ran += 1
        tally.seconds = time.monotonic() - begun
        if tally.seconds > seconds:
            break
    return tally


def write_tallies(path: Path, tallies: list[Tally], seed: int, order: list[str]) -> None:
    """Write a row for each target; those that did not run keep theirs."""
    rows = {}
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            rows = {row["target"]: row for row in csv.DictReader(file)}
    for one in tallies:
        values = (one.target, one.ran, one.refused, len(one.failures), seed)
        rows[one.target] = dict(zip(COLUMNS, values, strict=True))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in order if name in rows)


def main() -> None:
    import tempfile

    from fuzz_targets import TARGETS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=list(TARGETS))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/fuzz.csv"))
    asked = parser.parse_args()
    out = asked.out.absolute()  # a target may change the working folder
    tallies = []
    for name in asked.targets:
        with tempfile.TemporaryDirectory() as folder:
            tally = run_target(
                name, TARGETS[name], Path(folder), count=10**9, seconds=asked.seconds, seed=asked.seed
            )
        print(f"{name}: {tally.ran} cases, {len(tally.failures)} failed", file=sys.stderr)
        for failure in tally.failures[:20]:
            print(f"  {failure[:300]}", file=sys.stderr)
        tallies.append(tally)
    write_tallies(out, tallies, asked.seed, list(TARGETS))
    sys.exit(1 if any(tally.failures for tally in tallies) else 0)


if __name__ == "__main__":
    main()
