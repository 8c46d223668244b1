"""A finished run that can be asked: its model with the graph, as they were after training."""

import dataclasses as dc
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from gyroformer.data.load import load
from gyroformer.errors import CorruptFileError, DataError, UsageError, did_you_mean, in_file
from gyroformer.graphs.adjacency import Csr, directed_adjacency, simple_adjacency, upper_edges
from gyroformer.jobs.plan import plan_task, ready_for, trained_features
from gyroformer.models.pretrained import WEIGHTS, check_tensors
from gyroformer.ops.positions import Positions
from gyroformer.runs.graph import changed_parts, graph_checksums
from gyroformer.runs.read import Run, open_run
from gyroformer.settings import JobSettings
from gyroformer.tasks import Task

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gyroformer.models.base import GraphModel
    from gyroformer.tasks.decoders import LinkDecoder
    from gyroformer.tasks.hierarchy import Hierarchy

_log = logging.getLogger(__name__)

#: relative difference of coordinates on another machine that is worth a word
TOLERANCE = 1e-3


@dc.dataclass(frozen=True)
class Restored:
    """A trained model with a graph.

    Attributes:
        run: the run.
        job: its settings, on the CPU.
        model: the trained model.
        data: the graph that the model sees, with features prepared.
        joined: adjacency matrix of all known edges; for a link run more than those the model sees, and directed if
            it is.
        decoder: of a link run; None for others.
        hierarchy: who is above whom, and the score, of a run of ``embed --hierarchy``; None for others.
        same: whether the graph is the run's own.
        placed: where the nodes are, if the model does not say so: with nodes that were not in training.
        added: number of these nodes, the last ones.
        moved: number of known nodes that are not where the run had them.
    """

    run: Run
    job: JobSettings
    model: "GraphModel"
    data: "Data"
    joined: Csr
    decoder: "LinkDecoder | None"
    hierarchy: "Hierarchy | None"
    same: bool
    placed: Positions | None = None
    added: int = 0
    moved: int = 0

    @property
    def results(self) -> dict[str, Any]:
        """The results of the run."""
        return self.run.results

    @property
    def label_names(self) -> list[str] | None:
        """The names of the classes of a classify run."""
        return self.results.get("label_names")

    @property
    def ids(self) -> list[Any]:
        """The nodes' ids in order, as the graph has them."""
        return list(self.data.ids)

    def positions(self) -> Positions:
        """Return where the nodes are."""
        if self.placed is not None:
            return self.placed
        with torch.no_grad():
            return self.model.positions(self.data)

    def indices(self, names: Sequence[str]) -> Tensor:
        """Return the indices of the nodes that have these ids, given as text."""
        index = {str(name): number for number, name in enumerate(self.data.ids)}
        for name in names:
            if name not in index:
                raise UsageError(
                    f"no node of {self.job.graph.source or 'the graph'} has the id {name!r}"
                    f"{did_you_mean(name, index)}"
                )
        return torch.tensor([index[name] for name in names], dtype=torch.int64)


def restore(
    path: str | Path,
    graph: "str | Path | Data | None" = None,
    *,
    features: str | None = None,
    reading: Mapping[str, Any] | None = None,
    verify: bool = True,
) -> Restored:
    """Return the model of a finished run with its graph, or with another.

    Args:
        path: the run folder.
        graph: a data set's name, a file or a graph; by default the run's own, which its folder holds.
        features: a file of features, or a data set's feature set, for a ``graph`` that is given by name.
        reading: how the file of a ``graph`` is to be read: arguments of :func:`gyroformer.load`.
        verify: whether every file of the run is checked against its checksum first.
    """
    run = open_run(path, verify=verify)
    job = run.settings.but(device="cpu")
    model = run.model.requires_grad_(False)  # it is asked, not trained
    given = None if graph is None else _given(job, graph, features, reading or {})
    for name in ["features"] if features is not None else list(reading or {}):
        if graph is None:
            raise UsageError(f"--{name} belongs to a graph that is given; the run's own is in its folder")
    if given is not None and model.options.num_nodes:
        given = _in_order(given, run.ids, run.path)
    same = given is None or _is_own(run, given)
    task = restored_task(run, job) if same else None
    if task is not None:
        seen, all_edges = task.data, run.graph.edge_index
    else:
        assert given is not None
        seen = _ready(run, job, given)
        all_edges = given.edge_index
    model.prepare(seen)
    joined = joined_by(job, all_edges, int(seen.num_nodes or 0))
    hierarchy = _hierarchy(run, job, task, given)
    found = Restored(run, job, model, seen, joined, _decoder(run, job, task, joined), hierarchy, same)
    if same:
        _compare(found)
    return found


def joined_by(job: JobSettings, edges: Tensor, nodes: int) -> Csr:
    """Return the adjacency matrix of a job's known edges, directed in directed link prediction."""
    directed = job.task == "link" and job.graph.directed
    return (directed_adjacency if directed else simple_adjacency)(edges, nodes)


def restored_task(run: Run, job: JobSettings) -> Task:
    """Return the task of a run on its own graph, with the parameters that training left."""
    stored = run.stored_graph
    given = {} if stored is None or stored.split is None else {"split": stored.split}
    task = plan_task(job, run.graph, **given)
    split, known = getattr(task, "split", None), run.results.get("split")
    if split is not None and isinstance(known, dict) and split.sha256 != known["sha256"]:
        raise DataError(
            f"{job.graph.source}: is not the graph that {run.path} was trained on (its nodes or edges changed): "
            "restore the file, or give it as GRAPH to use it as another graph"
        )
    if task.module is not None:
        _load(task.module, run.task_weights, run)
        task.module.requires_grad_(False).eval()
    return task


def _ready(run: Run, job: JobSettings, given: "Data") -> "Data":
    """Return another graph as the model of a run sees it: its features by what was usual in training."""
    takes = bool(run.model.options.in_features)
    trained = trained_features(run.graph, restored_task(run, job)) if takes else None
    if trained is not None:
        _check_columns(given, trained.x.size(1), run.path)
    return ready_for(job, trained)(given, takes)


def _given(
    job: JobSettings, graph: "str | Path | Data", features: str | None, reading: Mapping[str, Any]
) -> "Data":
    if isinstance(graph, (str, Path)):
        return load(graph, directed=job.graph.directed, features=features, **reading)
    if features is not None:
        raise UsageError("features belong to a graph given by name: put them into data.x")
    if "ids" in graph:
        return graph
    data = graph.clone()
    data.ids = list(range(int(data.num_nodes or 0)))
    return data


def _is_own(run: Run, given: "Data") -> bool:
    """Return whether a graph has the run's own nodes and edges (and features, if the run used any)."""
    stored = run.stored_graph
    if stored is None:
        return False
    parts = {"nodes", "edges", "weights"} | ({"features"} if run.model.options.in_features else set())
    return not parts.intersection(changed_parts(stored.checksums, graph_checksums(given)))


def _in_order(data: "Data", ids: list[str], run: Path) -> "Data":
    """Return ``data`` with its nodes in the order of ``ids``: each has a learned vector, found by its index."""
    from gyroformer.graphs.pyg import Data

    names = [str(name) for name in data.ids]
    if names == ids:
        return data
    if sorted(names) != sorted(ids):
        strange = sorted(set(names) - set(ids)) or sorted(set(ids) - set(names))
        raise DataError(
            f"{run}: the model has learned a vector for each of its {len(ids)} nodes and knows no others; the graph "
            f"has {len(names)} nodes, and {strange[0]!r} is in one of the two only: use the same nodes, add new ones "
            "by their edges (--add FILE), or take a run with node features"
        )
    index = {name: number for number, name in enumerate(ids)}
    moved = torch.tensor([index[name] for name in names], device=data.edge_index.device)
    order = moved.argsort()
    turned: dict[str, Any] = {key: data[key][order] for key in ("x", "y") if data.get(key) is not None}
    turned["ids"] = [data.ids[i] for i in order.tolist()]
    # edges sorted again, as a graph that was read has them: the order of sums is then that of training
    edges = moved[data.edge_index]
    by_ends = (edges[0] * len(ids) + edges[1]).argsort()
    edges = edges[:, by_ends]
    if "edge_weight" in data:
        turned["edge_weight"] = data.edge_weight[by_ends]
    return Data(edge_index=edges, num_nodes=len(ids), **turned)


def _decoder(run: Run, job: JobSettings, task: Task | None, joined: Csr) -> "LinkDecoder | None":
    """Return the decoder of a link run as training left it; on another graph it counts that graph's degrees."""
    from gyroformer.tasks.link import LinkObjective, LinkPrediction, decoder_of

    if isinstance(task, LinkPrediction):
        return task.decoder
    if not isinstance(job.objective, LinkObjective):
        return None
    decoder = decoder_of(job.objective, directed=job.graph.directed).requires_grad_(False)
    _load(decoder, {name.removeprefix("decoder."): t for name, t in run.task_weights.items()}, run)
    return decoder.know(known_edges(decoder, joined), joined.shape[0])


def known_edges(decoder: "LinkDecoder", joined: Csr) -> Tensor:
    """Return the edges ``(2, E)`` of an adjacency matrix as a decoder takes them: undirected ones once."""
    ends = joined.nonzero() if decoder.directed else upper_edges(joined)
    return torch.from_numpy(np.stack(ends).astype(np.int64))


def _hierarchy(run: Run, job: JobSettings, task: Task | None, given: "Data | None") -> "Hierarchy | None":
    """Return the task of a hierarchy as training left it, on the run's own graph or on another."""
    from gyroformer.tasks.hierarchy import Hierarchy

    if task is None and given is not None and getattr(job.objective, "hierarchy", False):
        task = plan_task(job, given)
        assert task.module is not None
        _load(task.module, run.task_weights, run)
    return task if isinstance(task, Hierarchy) else None


def _load(module: nn.Module, weights: dict[str, Tensor], run: Run) -> None:
    """Set the parameters of the task's own, after checking that they are these."""
    with in_file(run.path / WEIGHTS, CorruptFileError):
        check_tensors(module.state_dict(), weights)
    module.load_state_dict(weights)


def _check_columns(given: "Data", wanted: int, run: Path) -> None:
    found = 0 if given.x is None else given.x.size(1)
    if not found:
        raise DataError(
            f"{run}: the model needs node features and the graph has none: give them with --features"
        )
    if wanted != found:
        raise DataError(
            f"{run}: the model takes {wanted} feature columns, the graph gives {found}: use a graph with the same "
            "features"
        )


def _compare(found: Restored) -> None:
    """Say so if the coordinates are not those that the run wrote."""
    stored = found.run.embeddings["embedding"]
    with torch.no_grad():
        now = found.positions().coordinates().numpy()
    difference = float(np.abs(now - stored).max(initial=0.0)) if now.shape == stored.shape else np.inf
    if difference > TOLERANCE * float(np.abs(stored).max(initial=1.0)):
        _log.warning(
            "%s: coordinates differ from those of the run by up to %.2g: the libraries or the machine changed",
            *(found.run.path, difference),
        )
