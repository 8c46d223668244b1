"""How good the lists of near nodes are while they follow a run, beside exact ones: results/near_lists.csv.

python scripts/measure_lists.py [--graphs web-edu,enron] [--epochs 200] [--at 2,10,50,100,200] [--threads 1]

One row is one epoch of ``gyroformer embed GRAPH --negatives near``, between two renewals as the step finds the lists:

- ``recall``: percent of the nearest nodes, as many as a list holds, that are listed; the mean over nodes.
- ``sum_listed``, ``sum_nearest``: percent of a node's sum over all non-neighbours that comes from its list, and that
  would come from the exact one; means over nodes.
- ``renewal_seconds``, ``exact_seconds``: processor time of a renewal as training does it, and of an exact one.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from result_file import write_rows
from torch import Tensor

from gyroformer.jobs.plan import plan_model, plan_task
from gyroformer.ops.near_field import NearField
from gyroformer.ops.positions import StereographicPositions
from gyroformer.runs.read import load_graph
from gyroformer.settings import make_job
from gyroformer.tasks.negatives import NearNegatives
from gyroformer.train.loop import fit
from gyroformer.train.outcome import Progress

TARGET = Path(__file__).parents[1] / "results" / "near_lists.csv"


def measured(graph: str, epochs: int, at: list[int]) -> list[dict[str, Any]]:
    """Train, and return a row for each epoch asked for."""
    job = make_job(
        "embed",
        dataset=graph,
        graph={"source": graph},
        objective={"negatives": "near"},
        training={"epochs": epochs, "eval_every": epochs},
    )
    data = load_graph(job.graph)
    plan = plan_model(job, data, plan_task(job, data))
    near = plan.task.kept
    assert isinstance(near, NearNegatives)
    rows = []

    def listen(progress: Progress) -> None:
        if progress.epoch in at:
            with torch.no_grad(), torch.random.fork_rng(devices=[]):  # the run goes on as if nobody looked
                positions = plan.model.positions(plan.data)
                assert isinstance(positions, StereographicPositions)
                about = {"graph": graph, "nodes": len(positions), "epoch": progress.epoch}
                rows.append(about | compared(positions, near))
            print(rows[-1], flush=True)

    fit(plan.model, plan.task, job.training, listen=listen)
    return rows


def compared(positions: StereographicPositions, near: NearNegatives) -> dict[str, float]:
    """Return lists beside exact ones, and what renewing them costs."""
    lists, graph = near.lists, near.neighbours
    exact, exact_seconds = timed(lambda: positions.renewed_lists(lists, graph, exact=True))
    _, seconds = timed(lambda: positions.renewed_lists(lists, graph))
    listed = (exact[:, :, None] == lists[:, None]) & (exact[:, :, None] >= 0)
    whole = positions.log_partition(graph).double().expm1()
    ring = torch.arange(len(positions))

    def share(some: Tensor) -> float:
        part = positions.near_log_partition(NearField(graph, some, ring, 0)).double().expm1()
        return 100 * float((part / whole)[whole > 0].mean())

    return {
        "recall": 100 * float(listed.any(2).sum() / (exact >= 0).sum()),
        "sum_listed": share(lists),
        "sum_nearest": share(exact),
        "renewal_seconds": seconds,
        "exact_seconds": exact_seconds,
    }


def timed(work: Callable[[], Tensor]) -> tuple[Tensor, float]:
    """Return what ``work`` returns and the processor seconds that it took."""
    begun = time.process_time()
    found = work()
    return found, time.process_time() - begun


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--graphs", default="web-edu,enron", help="with commas between; a name or a file")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--at", default="2,10,50,100,200", help="epochs to look at")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=TARGET)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    rows = []
    for graph in given.graphs.split(","):
        rows += measured(graph, given.epochs, [int(epoch) for epoch in given.at.split(",")])
        cells = [
            {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()}
            for row in rows
        ]
        write_rows(given.out, cells)


if __name__ == "__main__":
    main()
