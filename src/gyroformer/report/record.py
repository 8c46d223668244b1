"""What a page shows of a run, from the one reader of run folders."""

import dataclasses as dc
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gyroformer.data.link_split import LinkSplit
from gyroformer.data.split import Split
from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.adjacency import simple_adjacency, upper_edges
from gyroformer.graphs.check import MAX_CLASSES
from gyroformer.models.pretrained import CONFIG
from gyroformer.ops.positions import Positions, StereographicPositions
from gyroformer.ops.pseudo_positions import PseudoHyperboloidPositions
from gyroformer.runs.files import RESULTS
from gyroformer.runs.read import Row, Run, open_run
from gyroformer.tasks.classify import ClassifyObjective, split_of
from gyroformer.tasks.link import LinkObjective, link_split_of

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = np.ndarray[Any, Any]


@dc.dataclass(frozen=True, slots=True)
class RunGraph:
    """What can be shown of a graph.

    Attributes:
        edges: each edge once, ``(2, E)``; None if the graph is not to be had.
        degree: number of neighbours of each node; None likewise.
        labels: class of each node; None if there are none.
        missing: why there are no edges, as a sentence; empty if there are.
    """

    edges: Array | None = None
    degree: Array | None = None
    labels: Array | None = None
    missing: str = ""


@dc.dataclass(frozen=True, slots=True)
class RunRecord:
    """A finished run.

    Attributes:
        name: what the page calls it; different for different runs of a page.
        path: its folder.
        results: its results.
        job: its settings, nested.
        model: the model's own arguments.
        manifest: environment and checksums.
        rows: one for each epoch.
        ids: the nodes' ids as text.
        embedding: tangent vectors at the origin of each head, ``(N, heads, d)``.
        curvature: one for each head; zeros for a model that has none.
        probability: of each class ``(N, classes)``; None for a model without classes.
        graph: edges and labels, if they are to be had.
        held_out: which nodes or edges were for what; None if the task holds none out, or it is not known any more.
    """

    name: str
    path: Path
    results: dict[str, Any]
    job: dict[str, Any]
    model: dict[str, Any]
    manifest: dict[str, Any]
    rows: list[Row]
    ids: list[str]
    embedding: Array
    curvature: Array
    probability: Array | None
    graph: RunGraph
    held_out: Split | LinkSplit | None = None

    @property
    def predicted(self) -> Array | None:
        """The most probable class of each node; None for a model without classes."""
        return None if self.probability is None else self.probability.argmax(-1)

    @property
    def unseen(self) -> tuple[str, str]:
        """The part of the split that it may be judged on, and what the nodes or edges of it are called.

        The test of a run that is not finished is not looked at.
        """
        return ("val", "validation") if self.results.get("stopped") == "interrupted" else ("test", "test")

    @property
    def task(self) -> str:
        """What was trained for."""
        return str(self.results.get("task"))

    @property
    def positions(self) -> Positions:
        """Where the nodes are, in the product of all heads."""
        u = torch.from_numpy(self.embedding)
        k = torch.from_numpy(self.curvature).unsqueeze(-1)
        time = self.model.get("time_dim") or 1
        if time > 1:  # the one model whose space is no product of stereographic ones
            return PseudoHyperboloidPositions.from_tangent(u[:, 0], k, time)
        return StereographicPositions.from_tangent(u, k)

    def class_name(self, label: int) -> str:
        """Return what a class is called."""
        names = self.results.get("label_names")
        return str(names[label]) if names and label < len(names) else f"class {label}"


def run_folders(paths: Sequence[Path]) -> list[Path]:
    """Return the runs that are meant: a folder that is no run itself stands for the runs right in it.

    Where there are none right in it, as ``gyroformer compare`` leaves a folder, it stands for those one folder deeper.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            raise UsageError(f"{path}: is not a folder; give the folder of a run (see runs/)")
        inside: list[Path] = []
        if not (path / CONFIG).exists():
            inside = list(path.glob(f"*/{RESULTS}")) or list(path.glob(f"*/*/{RESULTS}"))
            inside.sort(key=_by_number)
        found += [result.parent for result in inside] or [path]
    distinct = list(dict.fromkeys(folder.resolve() for folder in found))
    if not distinct:
        raise UsageError("no run was named: give the folder of a run (see runs/)")
    return distinct


def _by_number(result: Path) -> tuple[Path, str, int]:
    """Return a key that sorts seed-10 after seed-9."""
    above, name = result.parent.parent, result.parent.name
    stem, _, number = name.rpartition("-")
    return (above, stem, int(number)) if number.isdecimal() else (above, name, -1)


def run_names(folders: Sequence[Path]) -> list[str]:
    """Return a name for each folder: its last parts, as few as tell it from the others."""
    for depth in range(1, max(len(folder.parts) for folder in folders) + 1):
        names = ["/".join(folder.parts[-depth:]) for folder in folders]
        if len(set(names)) == len(names):
            return names
    raise UsageError("the same run was named twice")


def read_run(folder: Path, name: str) -> RunRecord:
    """Return what a page shows of the finished run in ``folder``, called ``name``; its checksums are verified."""
    run = open_run(folder)
    arrays = run.embeddings
    embedding = arrays["embedding"].astype(np.float64)
    curvature = arrays.get("curvature", np.zeros(0)).astype(np.float64)
    if curvature.shape != (embedding.shape[1],):  # a model without curvatures: its space is flat
        curvature = np.zeros(embedding.shape[1])
    return RunRecord(
        name=name,
        path=folder,
        results=run.results,
        job=run.config.get("job", {}),
        model=run.config.get("config", {}),
        manifest=run.manifest,
        rows=run.history,
        ids=run.ids,
        embedding=embedding,
        curvature=curvature,
        probability=arrays["probability"].astype(np.float64) if "probability" in arrays else None,
        graph=graph_of(run),
        held_out=held_out(run),
    )


def held_out(run: Run) -> Split | LinkSplit | None:
    """Return the split that a run was judged on, drawn again from its seed; None if that gives another one."""
    known = run.results.get("split")
    if not isinstance(known, dict):
        return None
    try:
        graph, job = run.graph, run.settings
        split: Split | LinkSplit | None = None if run.stored_graph is None else run.stored_graph.split
        if split is None and isinstance(job.objective, ClassifyObjective):
            split = split_of(graph, job.objective, job.seed)
        elif split is None and isinstance(job.objective, LinkObjective):
            split = link_split_of(graph, job.objective, job.seed, directed=job.graph.directed)
    except (DataError, UsageError):  # the page says why there is no graph
        return None
    return split if split is not None and split.sha256 == known.get("sha256") else None


def graph_of(run: Run) -> RunGraph:
    """Return the graph of a run, or the reason why it cannot be shown."""
    try:
        data = run.graph
    except (DataError, UsageError) as error:
        return RunGraph(missing=f"The graph is not to be had: {error}.")
    nodes = len(run.ids)
    adjacency = simple_adjacency(data.edge_index, nodes)
    return RunGraph(
        edges=np.stack(upper_edges(adjacency)).astype(np.int64),
        degree=np.diff(adjacency.indptr).astype(np.int64),
        labels=_class_numbers(data),
    )


def _class_numbers(data: "Data") -> Array | None:
    """Return the class of each node; None for labels that are no class numbers, as a regression has them."""
    y = data.y
    if y is None or y.dim() != 1 or y.is_floating_point() or (y.numel() and int(y.max()) >= MAX_CLASSES):
        return None
    found: Array = y.cpu().numpy()
    return found
