"""From settings to what is trained: the graph with its features, the model, and the task."""

import dataclasses as dc
from typing import TYPE_CHECKING

import torch

from gyroformer.data.load import load
from gyroformer.errors import UsageError
from gyroformer.graphs.features import ready_features
from gyroformer.jobs.settings import JobSettings
from gyroformer.models import GraphModel, get_model
from gyroformer.tasks.task import Task

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dc.dataclass(frozen=True)
class Plan:
    """A job that is ready to be trained.

    Attributes:
        job: its settings.
        data: the graph, with features made ready, on the job's device.
        model: the model, not yet trained.
        task: what it is trained for.
        notes: what the user should know of choices that were made.
    """

    job: JobSettings
    data: "Data"
    model: GraphModel
    task: Task
    notes: list[str] = dc.field(default_factory=list)


def read_graph_of(job: JobSettings) -> "Data":
    """Return the graph that the settings name."""
    graph = job.graph
    return load(graph.source, directed=graph.directed, features=graph.features, labels=graph.labels)


def with_features(job: JobSettings, data: "Data", *, use: bool = True) -> "Data":
    """Return a copy of ``data`` whose features are made ready, or that has none."""
    data = data.clone()
    if use and data.x is not None:
        data.x = ready_features(data.x, data.edge_index, job.features)
    else:
        data.x = None
    return data


def build_model(job: JobSettings, data: "Data", classes: int | None = None) -> GraphModel:
    """Return the job's model for ``data``, seeded, in the job's format and on its device."""
    in_features = 0 if data.x is None else data.x.size(1)
    num_nodes = None if in_features else int(data.num_nodes or 0)
    torch.manual_seed(job.seed)
    model = get_model(job.model.name).make(
        in_features, num_nodes=num_nodes, classes=classes, **job.model.options
    )
    return model.to(device=job.device, dtype=getattr(torch, job.dtype))


def to_device(data: "Data", job: JobSettings) -> "Data":
    """Return ``data`` on the job's device with floating-point tensors in its format."""
    data = data.to(job.device)
    if data.x is not None:
        data.x = data.x.to(getattr(torch, job.dtype))
    return data


def usable_device(name: str) -> str:
    """Return a device that is there; ``"auto"`` takes the fastest."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"the device {name!r} cannot be used here ({reason})") from None
    return name
