"""Time an epoch in one and in several processes of one thread: results/processes.csv.

python scripts/measure_processes.py [--cases million,facebook,facebook-curved] [--counts 1,2] [--epochs 40] [--rounds 3]
    [--out FILE]

``million``: 100,000 nodes and 900,000 edges drawn at random, all of them tokens; 16 sampled nodes stand for all
others, so that the tokens are what costs. ``facebook``: the data set with its own settings and all pairs in the loss;
``facebook-curved``: the same from curvature -1, where rounding decides no step.
One row is a case and a number of processes, which have their turns in several rounds. ``seconds`` is the median time of
an epoch, ``cpu_seconds`` the median processor time of the busiest process in it, which a busy machine changes less;
``speed_up`` and ``cpu_speed_up`` are the quotients of one process's and these, ``least`` and ``most`` the range of the
rounds; ``message_ms`` is the median time of a sum of 100 numbers over the processes, when nothing else is done;
``difference`` is the largest relative difference of the loss from one process's. ``load`` is the number of processes
that wanted the machine's ``cores`` when it began: run it on as many quiet cores as processes. Rows of other cases stay.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from result_file import write_rows

TARGET = Path(__file__).parents[1] / "results" / "processes.csv"
NODES, EDGES = 100_000, 900_000
#: epochs that are not counted: the first ones wait for memory
WARM_UP = 2
#: messages that are timed
MESSAGES = 50


def settings(case: str, epochs: int) -> tuple[dict[str, Any], Any]:
    """Return the settings of a case, and its graph if it is no data set."""
    import numpy as np

    from gyroformer.graphs.build import graph_from_edges

    training = {"epochs": epochs, "eval_every": epochs}
    if case.startswith("facebook"):
        model = {"model": {"options": {"curvature": -1.0}}} if case == "facebook-curved" else {}
        return {"dataset": "facebook", "graph": {"source": "facebook"}, "training": training, **model}, None
    drawn = np.random.default_rng(0).integers(0, NODES, (2, 2 * EDGES))
    low, high = np.sort(drawn, axis=0)
    pairs = np.unique((low * NODES + high)[low != high])
    pairs = np.sort(np.random.default_rng(1).permutation(pairs)[:EDGES])
    graph = graph_from_edges(pairs // NODES, pairs % NODES, num_nodes=NODES)
    options = {"edge_tokens": "undirected", "identifiers": 0, "dim": 16, "heads": 2, "layers": 1}
    objective = {"negatives": 16, "map_nodes": 16, "start": "random"}
    return {"model": {"options": options}, "objective": objective, "training": training}, graph


def work(case: str, epochs: int, out: Path) -> None:
    """Train in this process, one of those that torchrun started, and write what it took."""
    import torch

    from gyroformer.jobs.run import run_job
    from gyroformer.processes.group import is_first, together
    from gyroformer.processes.launch import connected
    from gyroformer.processes.tensors import share, sum_numbers
    from gyroformer.settings import make_job

    torch.set_num_threads(1)
    values, graph = settings(case, epochs)
    walls, cpus = [time.perf_counter()], [time.process_time()]

    def note(_: object) -> None:
        walls.append(time.perf_counter())
        cpus.append(time.process_time())

    with connected("cpu", 300.0):
        done = run_job(make_job("embed", **values), data=graph, listen=note)
        # the last epoch is evaluated
        steps = [b - a for a, b in zip(walls[WARM_UP:-2], walls[WARM_UP + 1 : -1], strict=True)]
        busy = median(b - a for a, b in zip(cpus[WARM_UP:-2], cpus[WARM_UP + 1 : -1], strict=True))
        with together():
            mine = [0.0] * int(sum_numbers([1.0])[0])
            mine[share(len(mine))] = [busy]
            everyone = sum_numbers(mine)
            message = median(timed(lambda: sum_numbers([0.0] * 100)) for _ in range(MESSAGES))
        losses = [row["loss"] for row in done.outcome.history] if done.outcome else []
        if is_first():
            found = {"seconds": median(steps), "cpu_seconds": max(everyone), "losses": losses}
            found["message_ms"] = 1e3 * message
            out.write_text(
                json.dumps(found | {"nodes": done.results["nodes"], "edges": done.results["edges"]})
            )


def timed(call: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def measured(case: str, count: int, epochs: int) -> dict[str, Any]:
    """Return what ``count`` processes write."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        words = [__file__, "--work", case, "--epochs", str(epochs), "--out", str(out)]
        start = [sys.executable]
        if count > 1:
            start += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
        subprocess.run([*start, *words], check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
        found: dict[str, Any] = json.loads(out.read_text())
        return found


def main() -> None:
    """Measure and write."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--cases", default="million,facebook,facebook-curved")
    words.add_argument("--counts", default="1,2")
    words.add_argument("--epochs", type=int, default=40)
    words.add_argument(
        "--rounds", type=int, default=3, help="times that every number of processes has its turn"
    )
    words.add_argument("--out", type=Path, default=TARGET)
    words.add_argument("--work", help=argparse.SUPPRESS)
    given = words.parse_args()
    if given.work:
        work(given.work, given.epochs, given.out)
        return
    cases = given.cases.split(",")
    rows: list[dict[str, Any]] = []
    if given.out.exists():
        with given.out.open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["case"] not in cases]
    counts = sorted(int(count) for count in given.counts.split(","))
    for case in cases:
        load = os.getloadavg()[0]
        # in turns: what else the machine does changes from minute to minute
        rounds = [
            {count: measured(case, count, given.epochs) for count in counts} for _ in range(given.rounds)
        ]
        one = middle(rounds, counts[0])
        for count in counts:
            found = middle(rounds, count)
            pairs = zip(one["losses"], found["losses"], strict=True)
            ratios = sorted(each[counts[0]]["seconds"] / each[count]["seconds"] for each in rounds)
            rows.append(
                {
                    **{"case": case, "nodes": found["nodes"], "tokens": found["nodes"] + found["edges"]},
                    **{"processes": count, "threads": 1, "epochs": given.epochs, "rounds": given.rounds},
                    "seconds": round(found["seconds"], 4),
                    "cpu_seconds": round(found["cpu_seconds"], 4),
                    "speed_up": round(median(ratios), 2),
                    "least": round(ratios[0], 2),
                    "most": round(ratios[-1], 2),
                    "cpu_speed_up": round(one["cpu_seconds"] / found["cpu_seconds"], 2),
                    "message_ms": round(found["message_ms"], 2) if count > 1 else "",
                    "difference": f"{max(abs(a - b) / abs(a) for a, b in pairs):.1e}",
                    **{"load": round(load, 1), "cores": os.cpu_count()},
                }
            )
            print(rows[-1], flush=True)
            write_rows(given.out, rows)


def middle(rounds: list[dict[int, dict[str, Any]]], count: int) -> dict[str, Any]:
    """Return what a number of processes took: the medians over rounds, whose losses are the same."""
    found = [each[count] for each in rounds]
    times = {key: median(one[key] for one in found) for key in ("seconds", "cpu_seconds", "message_ms")}
    return found[0] | times


if __name__ == "__main__":
    main()
