"""The graph of a run: its folder holds the nodes' names, its edges and labels are where they came from."""

import dataclasses as dc
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gyroformer.data.load import load
from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.adjacency import simple_adjacency

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dc.dataclass(frozen=True, slots=True)
class RunGraph:
    """What can be shown of a graph.

    Attributes:
        edges: each edge once, ``(2, E)``; None if the graph is not to be had.
        degree: number of neighbours of each node; None likewise.
        labels: class of each node; None if there are none.
        missing: why there are no edges, as a sentence; empty if there are.
    """

    edges: "np.ndarray[Any, Any] | None" = None
    degree: "np.ndarray[Any, Any] | None" = None
    labels: "np.ndarray[Any, Any] | None" = None
    missing: str = ""


def graph_of_run(settings: Mapping[str, Any], ids: Sequence[str], data: "Data | None" = None) -> RunGraph:
    """Return the graph that a run's settings name, or the reason why it cannot be shown.

    Args:
        settings: the table ``graph`` of the job.
        ids: the nodes' ids as the run holds them.
        data: the graph itself, if it need not be read again.
    """
    if data is None:
        if not settings.get("source"):
            return RunGraph(missing="The run does not say where its graph came from.")
        try:
            data = load(
                settings["source"],
                directed=bool(settings.get("directed")),
                features=settings.get("features"),
                labels=settings.get("labels"),
            )
        except (DataError, UsageError) as error:
            return RunGraph(missing=f"The graph could not be read again: {error}.")
    if [str(name) for name in data.ids] != list(ids):
        return RunGraph(missing=f"{settings.get('source')} now has other nodes than this run.")
    adjacency = simple_adjacency(data.edge_index, len(ids))
    source = np.repeat(np.arange(len(ids)), np.diff(adjacency.indptr))
    once = source < adjacency.indices
    return RunGraph(
        edges=np.stack([source[once], adjacency.indices[once]]).astype(np.int64),
        degree=np.diff(adjacency.indptr).astype(np.int64),
        labels=None if data.y is None else data.y.cpu().numpy(),
    )
