"""What a pass costs: time and peak memory of inference and of a training step, the paper's models on its networks.

Each model runs in a process of its own, warm, on the tokens and the loss of ``embed``; times are medians over repeats.
Absolute times mean little on a shared machine: ``ratio`` is the time beside TokenGT's on the same network.
"""

import dataclasses as dc
import multiprocessing as mp
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gyroformer.bench.speed import give_back_memory, reset_peak, resident, timed
from gyroformer.errors import GyroformerError
from gyroformer.paper.tables import TABLES, printed
from gyroformer.runs.rows import Number, checked_rows

if TYPE_CHECKING:
    from gyroformer.jobs.plan import Plan

REPEATS = 20
TWIN = "tokengt"
PASSES = ("inference", "training")


@dc.dataclass(frozen=True)
class Cost:
    """What a model costs on a network.

    Attributes:
        dataset: the network.
        model: the model.
        part: ``"inference"``: where the nodes are, without gradients; ``"training"``: loss, gradients and Adam.
        milliseconds: median time.
        spread: half the range between the quartiles of the repeats, relative to the median.
        megabytes: what the pass adds to the resident memory at most; None where it cannot be read.
        repeats: number of repeats.
        threads: CPU threads.
    """

    dataset: str
    model: str
    part: str
    milliseconds: float
    spread: float
    megabytes: float | None
    repeats: int
    threads: int


def paper_models() -> list[str]:
    """Return the models that the paper has."""
    table = TABLES["table1"]
    return [name for name in table.models if printed("table1", "web-edu", name) is not None]


def measure_costs(
    datasets: Sequence[str],
    models: Sequence[str],
    *,
    repeats: int = REPEATS,
    threads: int = 1,
    tell: Callable[[str], None] = lambda line: None,
) -> Iterator[list[Cost]]:
    """Yield the costs of one model after the other, each in a process of its own."""
    context = mp.get_context("spawn")
    for dataset in datasets:
        for model in models:
            receiver, sender = context.Pipe(duplex=False)
            child = context.Process(target=_measured, args=(dataset, model, repeats, threads, sender))
            child.start()
            sender.close()
            try:
                costs: list[Cost] | GyroformerError = receiver.recv()
            except EOFError:
                raise GyroformerError(f"{dataset} {model}: the process ended without a result") from None
            finally:
                child.join()
            if isinstance(costs, GyroformerError):
                raise costs
            tell(f"{dataset} {model}: " + ", ".join(f"{one.part} {one.milliseconds:.1f} ms" for one in costs))
            yield costs


def _measured(dataset: str, model: str, repeats: int, threads: int, sender: Any) -> None:
    """Send the costs of a model, or what is wrong, to the process that asked."""
    try:
        sender.send(_costs(dataset, model, repeats, threads))
    except GyroformerError as error:
        sender.send(error)


def _costs(dataset: str, model: str, repeats: int, threads: int) -> list[Cost]:
    import torch

    from gyroformer.jobs.plan import plan_model, plan_task
    from gyroformer.runs.read import load_graph
    from gyroformer.train.learner import Learner

    torch.set_num_threads(threads)
    cell = TABLES["table1"].cells([dataset], [model])[0]
    job = cell.job()
    graph = load_graph(job.graph)
    plan = plan_model(job, graph, plan_task(job, graph))
    learner = Learner(plan.model, plan.task, job.training)
    steps = {"inference": _inference(plan), "training": _training(learner)}
    costs = []
    for part in PASSES:
        step = steps[part]
        seconds = timed(step, repeats)
        learner.optimizer.zero_grad(set_to_none=True)
        give_back_memory()  # what earlier steps have freed would be used again unseen
        reset_peak()
        before = resident("VmRSS")
        step()
        peak = resident("VmHWM")
        memory = None if before is None or peak is None else round((peak - before) / 1024, 1)
        middle = statistics.median(seconds)
        low, _, high = statistics.quantiles(seconds, n=4)
        spread = round((high - low) / 2 / middle, 3)
        costs.append(Cost(dataset, model, part, round(1e3 * middle, 3), spread, memory, repeats, threads))
    return costs


def _inference(plan: "Plan") -> Callable[[], None]:
    import torch

    def step() -> None:
        plan.model.eval()
        with torch.no_grad():
            plan.model.positions(plan.data)

    return step


def _training(learner: Any) -> Callable[[], None]:
    def step() -> None:
        learner.train()
        learner.optimizer.zero_grad(set_to_none=True)
        learner.task.loss(learner.model).backward()
        learner.optimizer.step()

    return step


def cost_rows(measured: Sequence[Cost], kept: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
    """Return the costs as rows, each with its time beside the flat twin's; those kept stay unless measured anew."""
    rows = {_key(row): dict(row) for row in [*kept, *map(dc.asdict, measured)]}
    twins = {
        (row["dataset"], row["part"]): row["milliseconds"] for row in rows.values() if row["model"] == TWIN
    }
    for row in rows.values():
        twin = twins.get((row["dataset"], row["part"]))
        row["ratio"] = None if not twin else round(row["milliseconds"] / twin, 3)
    return [rows[key] for key in sorted(rows)]


def _key(row: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return the place of a row: by network and model as in the table, then by pass."""
    table = TABLES["table1"]
    parts = table.datasets.index(row["dataset"]), table.models.index(row["model"])
    return *parts, PASSES.index(row["part"])


def read_costs(path: Path) -> list[dict[str, Any]]:
    """Return the rows that were written; none if there is no file."""
    if not path.exists():
        return []
    needed = {"milliseconds": Number(low=0), "repeats": Number(int, low=1), "threads": Number(int, low=1)}
    columns = [field.name for field in dc.fields(Cost)]
    rows: list[dict[str, Any]] = [*checked_rows(path, columns, needed)]
    for row in rows:
        for name in ("milliseconds", "spread", "megabytes", "ratio"):
            row[name] = float(row[name]) if row[name] else None
        for name in ("repeats", "threads"):
            row[name] = int(row[name])
    return rows
