"""From settings to what is trained: the graph with its features, the task, and the model."""

import copy
import dataclasses as dc
import logging
from typing import TYPE_CHECKING, Any

import torch

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.features import Table, prepared_features
from gyroformer.models import get_model
from gyroformer.models.shapes import shapes_only
from gyroformer.settings import JobSettings
from gyroformer.tasks import TASKS, Task

_log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gyroformer.models.base import GraphModel
    from gyroformer.tasks.task import Ready


@dc.dataclass(frozen=True)
class Plan:
    """A job that is ready to be trained.

    Attributes:
        job: its settings.
        graph: the graph as it was read.
        task: what the model is trained for, with the graph that it sees.
        model: the model, not yet trained.
    """

    job: JobSettings
    graph: "Data"
    task: Task
    model: "GraphModel"

    @property
    def data(self) -> "Data":
        """The graph that the model sees, with features prepared, on the job's device."""
        return self.task.data

    @property
    def edges(self) -> int:
        """The number of edges, as it is told to people."""
        return int(self.data.summary.edges if "summary" in self.data else self.data.edge_index.size(1) // 2)


def plan_task(job: JobSettings, graph: "Data", **given: Any) -> Task:
    """Return the job's task on a graph as it was read; ``given`` is what a caller in Python brings, e.g. a split."""
    ready = ready_for(job)
    source = {"features": job.graph.features, "directed": job.graph.directed}
    return TASKS[job.task].from_graph(graph, job.objective, ready, seed=job.seed, **source, **given)


def plan_model(job: JobSettings, graph: "Data", task: Task) -> Plan:
    """Return the plan of a job whose task is made, with a new model."""
    model = build_model(job, task)
    check_use(job, task, model)
    task.start(model)
    model.prepare(task.data)
    return Plan(job, graph, task, model)


def check_use(job: JobSettings, task: Task, model: "GraphModel") -> None:
    """Say where weights or directions of edges have no effect on a job; refuse them if the user asked for them."""
    mixed = task.data.x is not None and job.features.mixing != "none" and job.features.hops > 0
    if "edge_weight" in task.data and not (task.uses_weights or mixed or model.reads_weights):
        why = (
            f"weights of edges have no effect on {job.task} with the model {job.model.name} as it is set: it does not "
            "average over neighbours by their weights"
        )
        if job.graph.weight_column is not None:
            raise UsageError(
                f"{why}; leave --weight out, mix features (--mixing power), or choose --model gcn"
            )
        _log.warning("%s; --weight none says the same", why)
    if job.graph.directed and not (task.uses_direction or model.reads_direction):
        raise UsageError(
            f"--directed has no effect with the model {job.model.name} as it is set: it takes every edge both ways; "
            "leave it out, or use --model fpst --edge-tokens directed --identifiers 16"
        )


def ready_for(job: JobSettings, trained: Table | None = None) -> "Ready":
    """Return the function that makes of a graph what the job's model sees.

    Args:
        job: the job.
        trained: the features that its model was trained on, for another graph; they say what is usual.
    """

    def ready(graph: "Data", features: bool) -> "Data":
        data = copy.copy(graph)
        if "edge_weight" in data:
            data.edge_weight = relative_weights(data)
        table = _table(data, data) if features and data.x is not None else None
        data.x = None if table is None else prepared_features(table, job.features, like=trained)
        # tensors by their names: torch_geometric would look at every id of a list
        tensors = [name for name in data.keys() if isinstance(data[name], torch.Tensor)]  # noqa: SIM118
        data = data.to(job.device, *tensors)
        if data.x is not None:
            data.x = data.x.to(getattr(torch, job.dtype))
        return data

    return ready


def trained_features(graph: "Data", task: Task) -> Table | None:
    """Return the features that a task's model is trained on, with the edges that it sees; None if it has none."""
    return None if task.data.x is None else _table(graph, task.data)


def _table(graph: "Data", seen: "Data") -> Table:
    """Return the features of a graph as it was read, on the edges of ``seen``."""
    weight = seen.edge_weight if "edge_weight" in seen else None
    device = graph.x.device
    return Table(graph.x, seen.edge_index.to(device), None if weight is None else weight.to(device))


def relative_weights(graph: "Data") -> torch.Tensor:
    """Return the weights of a graph's edges divided by their mean: their unit does not matter.

    Raises:
        DataError: a weight is not above 0.
    """
    weight = graph.edge_weight
    wrong = torch.nonzero(~(weight > 0)).flatten()
    if wrong.numel():
        first = int(wrong[0])
        ends = [graph.ids[int(node)] if "ids" in graph else int(node) for node in graph.edge_index[:, first]]
        raise DataError(
            f"the edge from {ends[0]!r} to {ends[1]!r} has the weight {float(weight[first]):g}, and {wrong.numel()} "
            "weights in all are not above 0: a weight says how much an edge counts; correct them, or leave weights "
            "out with --weight none (from Python: weight='none')"
        )
    return weight / weight.double().mean().to(weight.dtype) if weight.numel() else weight


def build_model(job: JobSettings, task: Task, *, device: str | None = None) -> "GraphModel":
    """Return the job's model for its task, seeded, in the job's dtype and on its device, or on another ``device``."""
    in_features = 0 if task.data.x is None else task.data.x.size(1)
    num_nodes = None if in_features else int(task.data.num_nodes or 0)
    spec = get_model(job.model.name)
    torch.manual_seed(job.seed)
    with shapes_only() if device == "meta" else torch.device(device or "cpu"):
        model = spec.make(in_features, num_nodes=num_nodes, classes=task.classes, **job.model.options)
    return model.to(device=device or job.device, dtype=getattr(torch, job.dtype))


def usable_device(name: str) -> str:
    """Return a device that is there; ``"auto"`` takes the fastest."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        if torch.empty(1, device=name).zero_().tolist() != [0.0]:
            raise RuntimeError("it does not keep its values")
    except (RuntimeError, AssertionError, NotImplementedError, ImportError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UsageError(f"the device {name!r} cannot be used here ({reason})") from None
    return name
