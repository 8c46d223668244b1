"""Where the time of whole jobs goes, from the first import to the report page: results/jobs.csv.

python scripts/measure_jobs.py [--jobs "embed web-edu --epochs 100,classify cora,link cora"] [--out FILE]

Each job is one command in a process of its own, one thread. One row is a part of a job: ``seconds`` of processor time,
and its ``share`` of the whole. ``steps`` are forward pass, loss, backward pass and optimizer; ``evaluations`` are
the metrics during training; ``rest of the loop`` is what the loop adds to both (rows, checkpoints, progress); ``fixed``
is all but these three, the cost of a command however short it trains. Rows of other jobs stay as they are.
"""

import argparse
import csv
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from result_file import write_rows

TARGET = Path(__file__).parents[1] / "results" / "jobs.csv"
JOBS = "embed web-edu --epochs 100,classify cora,link cora"


class Stopwatch:
    """Processor time by part; a part inside another counts for both."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}

    def add(self, part: str, seconds: float) -> None:
        """Count one more call of a part."""
        self.seconds[part] = self.seconds.get(part, 0.0) + seconds
        self.calls[part] = self.calls.get(part, 0) + 1

    def watch(self, owner: Any, name: str, part: str) -> None:
        """Count what a function of a module or class takes."""
        function: Callable[..., Any] = getattr(owner, name)

        def timed(*given: Any, **named: Any) -> Any:
            begun = time.process_time()
            try:
                return function(*given, **named)
            finally:
                self.add(part, time.process_time() - begun)

        setattr(owner, name, timed)


def work(words: list[str], out: Path) -> None:
    """Do a job in this process and write what its parts took."""
    watch = Stopwatch()
    from gyroformer.__main__ import COLLECT_AFTER

    gc.set_threshold(*COLLECT_AFTER)  # as the command does
    from gyroformer.cli.app import app
    from gyroformer.jobs import run
    from gyroformer.train import loop

    watch.add("imports", time.process_time())
    watch.watch(run, "_graph_of", "reading")
    watch.watch(run, "plan_job", "preparing")
    watch.watch(loop._Training, "_step", "steps")
    watch.watch(loop._Training, "_evaluate", "evaluations")
    watch.watch(loop._Training, "finish", "loop")
    watch.watch(run, "_write_report", "report")
    app(words, standalone_mode=False)
    watch.add("whole", time.process_time())
    out.write_text(json.dumps({"seconds": watch.seconds, "calls": watch.calls}))


def measured(job: str) -> list[dict[str, object]]:
    """Return the rows of a job."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "parts.json"
        words = [*job.split(), "--threads", "1", "--out", f"{folder}/run"]
        subprocess.run([sys.executable, __file__, "--work", str(found), *words], check=True)
        both = json.loads(found.read_text())
    seconds, calls = both["seconds"], both["calls"]
    loop = seconds.pop("loop")
    seconds["rest of the loop"] = loop - seconds["steps"] - seconds["evaluations"]
    seconds["fixed"] = seconds["whole"] - loop
    return [
        {
            "job": job,
            "part": part,
            "calls": calls.get(part, 1),
            "seconds": f"{taken:.2f}",
            "share": f"{taken / seconds['whole']:.3f}",
        }
        for part, taken in seconds.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", default=JOBS, help="commands, with commas between")
    parser.add_argument("--out", type=Path, default=TARGET)
    given = parser.parse_args()
    jobs, rows = given.jobs.split(","), []
    if given.out.exists():
        with given.out.open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["job"] not in jobs]
    for job in jobs:
        rows += measured(job)
        write_rows(given.out, rows)
        print(*(f"{row['part']:>17} {row['seconds']:>8} s {row['share']}" for row in rows[-8:]), sep="\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[3:], Path(sys.argv[2]))
    else:
        main()
