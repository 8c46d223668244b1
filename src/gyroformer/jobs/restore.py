"""A finished run made ready to be asked: its model with the graph, as they were after training."""

import dataclasses as dc
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gyroformer.data.load import load
from gyroformer.errors import DataError, UsageError, did_you_mean
from gyroformer.graphs.adjacency import Csr, simple_adjacency
from gyroformer.jobs.link import decoder_of, link_split_of
from gyroformer.jobs.plan import read_graph_of, to_device, with_features
from gyroformer.jobs.settings import EmbedJob, JobSettings, LinkJob, job_from_plain
from gyroformer.models import GraphModel
from gyroformer.ops.positions import Positions
from gyroformer.tasks.decoders import LinkDecoder
from gyroformer.train.finished import FinishedRun, load_run

if TYPE_CHECKING:
    from torch_geometric.data import Data

_log = logging.getLogger(__name__)

#: part of their size by which coordinates may differ on another machine before it is worth a word
TOLERANCE = 1e-3


@dc.dataclass(frozen=True)
class Restored:
    """A trained model with a graph.

    Attributes:
        job: the settings of the run.
        results: its figures.
        model: the trained model.
        data: the graph that the model sees, with features made ready.
        joined: adjacency matrix of all known edges; for a link run more than those the model sees.
        decoder: of a link run; None for others.
        label_names: of a classify run, the names of the classes.
        same: whether the graph is the run's own.
    """

    job: JobSettings
    results: dict[str, Any]
    model: GraphModel
    data: "Data"
    joined: Csr
    decoder: LinkDecoder | None
    label_names: list[str] | None
    same: bool

    @property
    def ids(self) -> list[Any]:
        """The nodes' ids in order, as the graph has them."""
        return list(self.data.ids)

    def positions(self) -> Positions:
        """Return where the nodes are."""
        with torch.no_grad():
            return self.model.positions(self.data)

    def places(self, names: Sequence[str]) -> Tensor:
        """Return the numbers of the nodes that have these ids, given as text."""
        place = {str(name): number for number, name in enumerate(self.data.ids)}
        for name in names:
            if name not in place:
                raise UsageError(
                    f"no node of {self.job.graph.source or 'the graph'} has the id {name!r}"
                    f"{did_you_mean(name, list(place))}"
                )
        return torch.tensor([place[name] for name in names], dtype=torch.int64)


def restore(
    path: str | Path,
    graph: "str | Path | Data | None" = None,
    *,
    features: str | None = None,
    verify: bool = True,
) -> Restored:
    """Return the model of a finished run with its graph, or with another.

    Args:
        path: the run folder.
        graph: a data set's name, a file or a graph; by default where the run's settings say.
        features: a file of features, or a data set's feature set, for a ``graph`` that is given by name.
        verify: whether every file of the run is checked against its sum first.
    """
    run = load_run(path, verify=verify)
    if "task" not in run.config:
        raise DataError(
            f"{path}: the run has no settings of a job; it was not made by embed, classify or link"
        )
    job = job_from_plain(run.config)
    data = _graph(job, graph, features, Path(path))
    model = run.model
    assert isinstance(model, GraphModel)
    model.requires_grad_(False)  # it is asked, not trained
    if model.config["num_nodes"]:
        data = _in_order(data, run.ids, Path(path))
    seen, same = _seen_graph(job, data, run)
    if graph is None and not same:
        raise DataError(
            f"{job.graph.source}: is not the graph that {path} was trained on (nodes or edges differ): restore the "
            "file, or give it as GRAPH to use it as another graph"
        )
    ready = to_device(with_features(job, seen, use=_uses_features(job)), dc.replace(job, device="cpu"))
    _check_features(model, ready, Path(path))
    model.prepare(ready)
    joined = simple_adjacency(data.edge_index, int(data.num_nodes or 0))
    decoder = _decoder(job, run)
    found = Restored(job, run.results, model, ready, joined, decoder, run.results.get("label_names"), same)
    if same:
        _compare(found, run, Path(path))
    return found


def _graph(job: JobSettings, graph: "str | Path | Data | None", features: str | None, run: Path) -> "Data":
    if graph is None:
        if features is not None:
            raise UsageError(
                "--features belongs to a graph that is given; the run's own has those of its settings"
            )
        if not job.graph.source:
            raise DataError(f"{run}: does not say where its graph came from: give it as GRAPH")
        return read_graph_of(job)
    if isinstance(graph, (str, Path)):
        return load(graph, directed=job.graph.directed, features=features)
    if features is not None:
        raise UsageError("features belong to a graph given by name: put them into data.x")
    if "ids" in graph:
        return graph
    data = graph.clone()
    data.ids = list(range(int(data.num_nodes or 0)))
    return data


def _in_order(data: "Data", ids: list[str], run: Path) -> "Data":
    """Return ``data`` with its nodes in the order of ``ids``: each has a learned vector, found by its place."""
    from torch_geometric.data import Data

    names = [str(name) for name in data.ids]
    if names == ids:
        return data
    if sorted(names) != sorted(ids):
        strange = sorted(set(names) - set(ids)) or sorted(set(ids) - set(names))
        raise DataError(
            f"{run}: the model has learned a vector for each of its {len(ids)} nodes and knows no others; the graph "
            f"has {len(names)} nodes, and {strange[0]!r} is in one of the two only: use the same nodes, or a run "
            "with node features"
        )
    place = {name: number for number, name in enumerate(ids)}
    moved = torch.tensor([place[name] for name in names])
    order = moved.argsort()
    turned: dict[str, Any] = {key: data[key][order] for key in ("x", "y") if data.get(key) is not None}
    turned["ids"] = [data.ids[i] for i in order.tolist()]
    # edges sorted again, as a graph that was read has them: the order of sums is then that of training
    edges = moved[data.edge_index]
    edges = edges[:, (edges[0] * len(ids) + edges[1]).argsort()]
    return Data(edge_index=edges, num_nodes=len(ids), **turned)


def _seen_graph(job: JobSettings, data: "Data", run: FinishedRun) -> tuple["Data", bool]:
    """Return the graph that the model is to see, and whether it is the run's own.

    For a link run its own graph is the training graph, drawn again: the sum of the split tells. Another graph is seen
    with all its edges.
    """
    same = [str(name) for name in data.ids] == run.ids
    if not isinstance(job, LinkJob) or not same:
        return data, same and data.edge_index.size(1) // _ways(job) == run.results["edges"]
    try:
        split = link_split_of(job, data)
    except DataError:  # too few edges to be the graph of the run
        return data, False
    same = split.sha256 == run.results["split"]["sha256"]
    return (split.training_graph(data), True) if same else (data, False)


def _ways(job: JobSettings) -> int:
    """Return how often an edge is stored."""
    return 1 if job.graph.directed else 2


def _decoder(job: JobSettings, run: FinishedRun) -> LinkDecoder | None:
    """Return the decoder of a link run as training left it."""
    if not isinstance(job, LinkJob):
        return None
    decoder = decoder_of(job.objective).requires_grad_(False)
    decoder.load_state_dict({name.removeprefix("decoder."): tensor for name, tensor in run.task.items()})
    return decoder


def _uses_features(job: JobSettings) -> bool:
    return job.objective.use_features if isinstance(job, EmbedJob) else True


def _check_features(model: GraphModel, data: "Data", run: Path) -> None:
    wanted = int(model.config["in_features"])
    found = 0 if data.x is None else data.x.size(1)
    if wanted and not found:
        raise DataError(
            f"{run}: the model needs node features and the graph has none: give them with --features"
        )
    if wanted and wanted != found:
        raise DataError(
            f"{run}: the model takes {wanted} feature columns (made ready as in training), the graph gives {found}: "
            "use a graph with the same features"
        )
    if not wanted:
        data.x = None


def _compare(found: Restored, run: FinishedRun, path: Path) -> None:
    """Say so if the coordinates are not those that the run wrote."""
    stored = run.embeddings["embedding"]
    with torch.no_grad():
        now = found.positions().coordinates().numpy()
    difference = float(np.abs(now - stored).max(initial=0.0))
    if difference > TOLERANCE * float(np.abs(stored).max(initial=1.0)):
        _log.warning(
            "%s: coordinates differ from those of the run by up to %.2g: the graph's file or the libraries changed",
            *(path, difference),
        )
