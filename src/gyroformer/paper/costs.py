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

from gyroformer.bench.speed import environment, give_back_memory, reset_peak, resident, timed
from gyroformer.durable import make_folder, only_one
from gyroformer.errors import CorruptFileError, GyroformerError
from gyroformer.paper.printed import printed
from gyroformer.paper.tables import TABLES
from gyroformer.runs.rows import Number, checked_rows, generation, write_table
from gyroformer.settings import JobSettings

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
        generation: of the code of the model; None for a row that is older than this column, as the next four are.
        commit: of the checkout; empty without one.
        torch: its version.
        gyroformer: its version.
        processor: its name.
    """

    dataset: str
    model: str
    part: str
    milliseconds: float
    spread: float
    megabytes: float | None
    repeats: int
    threads: int
    generation: int | None = None
    commit: str = ""
    torch: str = ""
    gyroformer: str = ""
    processor: str = ""


#: what every row has, and what those have that were written since it is kept
ALWAYS = (*(field.name for field in dc.fields(Cost) if field.default is dc.MISSING), "ratio")
SINCE = tuple(field.name for field in dc.fields(Cost) if field.default is not dc.MISSING)
NUMBERS = {
    "milliseconds": Number(low=0),
    **dict.fromkeys(("spread", "megabytes", "ratio"), Number(low=0, may_be_empty=True)),
    **dict.fromkeys(("repeats", "threads"), Number(int, low=1)),
    "generation": Number(int, low=1, may_be_empty=True),
}


def paper_models() -> list[str]:
    """Return the models that the paper has."""
    table = TABLES["table1"]
    return [name for name in table.models if printed("table1", "web-edu", name) is not None]


def not_measured(
    rows: Sequence[Mapping[str, Any]], datasets: Sequence[str], models: Sequence[str], *, threads: int
) -> list[tuple[str, str]]:
    """Return networks and models of which a pass has no row by this generation of the code and so many threads."""
    done = {(row["dataset"], row["model"], row["part"], row["threads"], row["generation"]) for row in rows}

    def is_done(dataset: str, model: str) -> bool:
        now = generation(_job(dataset, model))
        return all((dataset, model, part, threads, now) in done for part in PASSES)

    return [(dataset, model) for dataset in datasets for model in models if not is_done(dataset, model)]


def measure_costs(
    pairs: Sequence[tuple[str, str]],
    *,
    repeats: int = REPEATS,
    threads: int = 1,
    tell: Callable[[str], None] = lambda line: None,
) -> Iterator[list[Cost]]:
    """Yield the costs of one network and model after the other, each in a process of its own."""
    context = mp.get_context("spawn")
    for dataset, model in pairs:
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


def _job(dataset: str, model: str) -> JobSettings:
    return TABLES["table1"].cells([dataset], [model])[0].job()


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
    job = _job(dataset, model)
    graph = load_graph(job.graph)
    plan = plan_model(job, graph, plan_task(job, graph))
    learner = Learner(plan.model, plan.task, job.training)
    steps = {"inference": _inference(plan), "training": _training(learner)}
    made_by, costs = _origin(job), []
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
        numbers = round(1e3 * middle, 3), spread, memory, repeats, threads
        costs.append(Cost(dataset, model, part, *numbers, **made_by))
    return costs


def _origin(job: JobSettings) -> dict[str, Any]:
    """Return by what code and on which machine a cost is measured."""
    here = environment()
    return {"generation": generation(job), **{name: here[name] or "" for name in SINCE if name in here}}


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
    """Return the costs as rows, each with its time beside the flat twin's; those kept stay unless measured anew.

    The twin is one with as many threads on the same processor: other times say nothing about the models.
    """
    rows = {_key(row): dict(row) for row in [*kept, *map(dc.asdict, measured)]}
    alike = ("dataset", "part", "threads", "processor")
    twins = {
        tuple(row[name] for name in alike): row["milliseconds"]
        for row in rows.values()
        if row["model"] == TWIN
    }
    for row in rows.values():
        twin = twins.get(tuple(row[name] for name in alike))
        row["ratio"] = None if not twin else round(row["milliseconds"] / twin, 3)
    return [rows[key] for key in sorted(rows)]


def _key(row: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """Return the place of a row: by network and model as in the table, then by pass and threads."""
    table = TABLES["table1"]
    parts = table.datasets.index(row["dataset"]), table.models.index(row["model"])
    return *parts, PASSES.index(row["part"]), row["threads"]


def add_costs(path: Path, costs: Sequence[Cost]) -> None:
    """Add costs to a file, to which other commands may be adding theirs."""
    make_folder(path.parent)
    with only_one(path.with_name(f"{path.name}.lock")):
        write_table(path, (*ALWAYS, *SINCE), cost_rows(costs, read_costs(path)))


def read_costs(path: Path) -> list[dict[str, Any]]:
    """Return the rows that were written; none if there is no file. Older ones are empty where columns are younger."""
    if not path.exists():
        return []
    table, found = TABLES["table1"], dict[tuple[int, ...], dict[str, Any]]()
    names = {"dataset": table.datasets, "model": table.models, "part": PASSES}
    for row in checked_rows(path, ALWAYS, NUMBERS, names):
        one = _as_numbers({**dict.fromkeys(SINCE, ""), **row})
        if found.setdefault(_key(one), one) != one:
            raise CorruptFileError(
                f"{path}: has two rows of {row['dataset']}, {row['model']}, {row['part']} with {row['threads']} "
                "threads that differ; remove one of them"
            )
    return list(found.values())


def _as_numbers(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its numbers as such, None where there is none."""
    return {**row, **{name: of.read(row[name]) if row[name] else None for name, of in NUMBERS.items()}}


def as_result(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with the keys that rows of every table have: the paper prints no costs to compare with."""
    middle, spread = row["milliseconds"], row["spread"]
    low, high = (None, None) if spread is None else (max(0.0, middle * (1 - spread)), middle * (1 + spread))
    summary = {"mean": middle, "low": low, "high": high, "seeds": row["repeats"]}
    return {**row, **summary, "paper": None, "paper_std": None}
