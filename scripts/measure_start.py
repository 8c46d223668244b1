"""Where nodes start, and what it is worth: mAP of short runs from disorder and along a tree of the graph.

python scripts/measure_start.py [--graphs power,enron] [--csv results/start.csv]

One row is one run of ``gyroformer embed`` in a process of its own, seed 0, one thread. ``map_untrained`` is the mAP of
the start itself. ``imports`` is the import graph of the standard library, the graph of ``gyroformer demo``, read from a
file like a graph of a user's own and trained until its loss has converged; the others have the epochs of ``CASES``.
Rows of graphs that are not named stay.
"""

import argparse
import csv
import tempfile
from pathlib import Path

import torch
from measure_near import run
from result_file import write_rows

from gyroformer.demo.stdlib_graph import stdlib_graph
from gyroformer.demo.twins import write_graph
from gyroformer.jobs.plan import plan_model, plan_task
from gyroformer.runs.read import load_graph
from gyroformer.settings import make_job

RESULTS = Path(__file__).parents[1] / "results"
#: graph, model, and epochs; None for as many as the loss takes to converge
CASES = (
    ("power", "points", 100),
    ("web-edu", "points", 100),
    ("ca-astroph", "points", 60),
    ("enron", "points", 60),
    ("imports", "fpst", None),
    ("imports", "tokengt", None),
)
STARTS = ("random", "tree")


def untrained(source: str, model: str, start: str) -> float:
    """Return the mAP of a model before its first step."""
    values = {"model": {"name": model}, "objective": {"start": start}}
    job = make_job("embed", graph={"source": source}, dataset=source, **values)
    graph = load_graph(job.graph)
    plan = plan_model(job, graph, plan_task(job, graph))
    with torch.no_grad():
        return plan.task.evaluate(plan.model)["map"]


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--graphs", default=",".join(dict.fromkeys(graph for graph, *_ in CASES)))
    parser.add_argument("--csv", type=Path, default=RESULTS / "start.csv")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    if given.csv.exists():
        with given.csv.open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["graph"] not in given.graphs.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        imports = str(write_graph(Path(scratch), stdlib_graph()))
        for graph, model, epochs in CASES:
            if graph not in given.graphs.split(","):
                continue
            source = imports if graph == "imports" else graph
            for start in STARTS:
                words = [source, "--model", model, "--start", start, "--threads", "1"]
                words += ["--epochs", str(epochs)] if epochs else []
                found = run(words, Path(scratch) / f"{graph}-{model}-{start}")
                rows.append(
                    {
                        **{"graph": graph, "nodes": found["nodes"], "model": model, "start": start},
                        **{"map_untrained": round(untrained(source, model, start), 2)},
                        **{"epochs": found["epochs"], "map": round(found["map"], 2)},
                        "cpu_seconds": found["cpu_seconds"],
                    }
                )
                print(rows[-1], flush=True)
                write_rows(given.csv, rows)


if __name__ == "__main__":
    main()
