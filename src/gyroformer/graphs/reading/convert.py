"""Graphs of other libraries as one clean ``Data``."""

import dataclasses as dc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.build import graph_from_edges
from gyroformer.graphs.listing import Listing
from gyroformer.graphs.reading.attributed import from_igraph, from_networkx
from gyroformer.graphs.reading.columns import NO_WEIGHT, Wanted
from gyroformer.graphs.reading.edge_table import listing_of_table
from gyroformer.graphs.reading.npz import matrix_entries
from gyroformer.graphs.reading.read import read_graph

if TYPE_CHECKING:
    from torch_geometric.data import Data


def to_graph(
    obj: object,
    *,
    directed: bool = False,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    labels: str | None = None,
) -> "Data":
    """Return the clean graph of anything that is one.

    Args:
        obj: a path, a ``torch_geometric.data.Data``, a NetworkX or igraph graph, a pandas ``DataFrame`` with a row for
            each edge, a list of pairs of ids (or of triples with a weight), an array ``(E, 2)`` of integer ids or
            ``(E, 3)`` with weights, a square array or scipy sparse matrix (an entry other than 0 is an edge, its value
            the weight unless all are 1), or ``(edge_index, num_nodes)``.
        directed: keep the direction of edges; by default both directions are stored, whatever ``obj`` is.
        source: the column of a table or file that holds the first ends; found by default.
        target: the same for the second ends.
        weight: the same for weights, or the edges' attribute in a NetworkX or igraph graph (``"weight"`` by default);
            ``"none"`` for an unweighted graph.
        features: attributes of the nodes of a NetworkX or igraph graph that become features, in this order.
        labels: the attribute that becomes the label.

    Raises:
        UsageError: if it is none of these, or an argument does not fit it.
        DataError: if it is one that cannot be used.
    """
    columns: dict[str, Any] = {"source": source, "target": target}
    named: dict[str, Any] = {"features": features, "labels": labels}
    kind, make = _kind_of(obj)
    fitting = {"weight": weight, **(columns if kind in ("path", "table") else {})}
    fitting |= named if kind == "attributed" else {}
    for name, value in {"weight": weight, **columns, **named}.items():
        if value is not None and (name not in fitting or (kind == "index" and value != NO_WEIGHT)):
            raise UsageError(
                f"{name}={value!r} has no meaning for a graph given as {type(obj).__name__}: leave it out"
            )
    if kind in ("path", "data", "index"):
        if kind == "path":
            return read_graph(obj, directed=directed, source=source, target=target, weight=weight)  # type: ignore[arg-type]
        data = make(obj, directed)
        if weight == NO_WEIGHT and "edge_weight" in data:
            del data.edge_weight
            data.summary = dc.replace(data.summary, weights=None)
        return data
    listing: Listing = make(obj, **fitting)
    return listing.graph(directed=directed)


def _kind_of(obj: object) -> tuple[str, Any]:
    """Return what a graph is given as, and the function that makes it one."""
    from scipy.sparse import issparse

    from gyroformer.graphs.pyg import Data

    if isinstance(obj, (str, Path)):
        return "path", None
    if isinstance(obj, Data):
        return "data", _from_data
    if issparse(obj):
        return "index", _from_sparse
    # who holds such an object has imported its library
    for module, name, make in (("networkx", "Graph", from_networkx), ("igraph", "Graph", from_igraph)):
        library = sys.modules.get(module)
        if library is not None and isinstance(obj, getattr(library, name)):
            return "attributed", make
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(obj, pandas.DataFrame):
        return "table", _from_frame
    if isinstance(obj, np.ndarray) and obj.ndim == 2 and obj.shape[0] == obj.shape[1] and obj.shape[0] > 3:
        return "index", lambda matrix, directed: _from_sparse(_sparse(matrix), directed)
    if isinstance(obj, np.ndarray) and obj.ndim == 2 and obj.shape[1] in (2, 3):
        return "pairs", _from_pairs
    if (
        isinstance(obj, tuple)
        and len(obj) == 2
        and isinstance(obj[1], (int, np.integer))
        and not _is_pair(obj)
    ):
        return "index", lambda both, directed: _from_index(*both, directed=directed)
    if isinstance(obj, (list, tuple)) and obj and all(isinstance(row, (list, tuple)) for row in obj):
        return "pairs", _from_pairs
    raise UsageError(
        f"{type(obj).__name__} is not a graph: give a path, a torch_geometric Data, a NetworkX or igraph graph, a "
        "DataFrame of edges, a list or array of pairs, a square matrix or (edge_index, num_nodes)"
    )


def _is_pair(both: tuple[Any, Any]) -> bool:
    return isinstance(both[0], (int, str, np.integer))


def _sparse(matrix: np.ndarray) -> Any:
    from scipy.sparse import coo_array

    if matrix.dtype.kind not in "biufc":
        raise DataError(f"an adjacency matrix must hold numbers, got {matrix.dtype}")
    if not np.isfinite(matrix).all():
        raise DataError("an adjacency matrix must hold finite numbers: 0 where there is no edge")
    return coo_array(matrix)


def _from_frame(frame: Any, *, source: str | None, target: str | None, weight: str | None) -> Listing:
    columns = {str(name): frame.iloc[:, index] for index, name in enumerate(frame.columns)}
    if len(columns) != frame.shape[1]:
        raise DataError("the DataFrame has two columns of one name: rename one")
    wanted = Wanted(source=source, target=target, weight=weight)
    return listing_of_table(
        "the DataFrame", columns, wanted, location=lambda row: f"the DataFrame, row {row}"
    )


def _from_pairs(pairs: Any, *, weight: str | None = None) -> Listing:
    """Return the edges of pairs of ids, or of triples whose third value is a weight."""
    rows = pairs.tolist() if isinstance(pairs, np.ndarray) else [tuple(row) for row in pairs]
    width = len(rows[0]) if rows else 0
    if width not in (2, 3) or any(len(row) != width for row in rows):
        raise UsageError("a list of edges has two ids a row, or two ids and a weight, in every row the same")
    names = ("source", "target", "weight")[:width]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    if isinstance(pairs, np.ndarray) and pairs.dtype.kind == "f" and width == 3:
        ends = pairs[:, :2]
        if not np.isfinite(ends).all() or (ends != np.floor(ends)).any():
            raise UsageError(
                "an array (E, 3) of edges has integers as ids: a table of features is not a graph"
            )
        columns |= {"source": ends[:, 0].astype(int).tolist(), "target": ends[:, 1].astype(int).tolist()}
    return listing_of_table(
        "the list of edges", columns, Wanted(weight=weight), location=lambda row: f"edge {row}"
    ).without_header()


def _from_index(edge_index: object, num_nodes: object, *, directed: bool) -> "Data":
    if isinstance(num_nodes, bool) or not isinstance(num_nodes, (int, np.integer)):
        raise UsageError(f"num_nodes must be an integer, got {type(num_nodes).__name__}")
    ends = (
        edge_index.detach().cpu().numpy() if isinstance(edge_index, torch.Tensor) else np.asarray(edge_index)
    )
    if ends.ndim != 2 or ends.shape[0] != 2:
        raise DataError(f"edge_index must have the shape (2, edges), got {ends.shape}")
    return graph_from_edges(ends[0], ends[1], num_nodes=int(num_nodes), directed=directed)


def _from_sparse(matrix: Any, directed: bool) -> "Data":
    rows, columns = matrix.shape
    if rows != columns:
        raise DataError(f"a {rows} x {columns} matrix is not a graph: it must be square")
    ends, nodes, weight = matrix_entries(matrix)
    return graph_from_edges(ends[0], ends[1], num_nodes=nodes, weight=weight, directed=directed)


def _from_data(data: "Data", directed: bool) -> "Data":
    if data.edge_index is None or data.num_nodes is None:
        raise DataError("the Data has no edge_index: set it, or num_nodes as well for a graph without edges")
    ends = data.edge_index.detach().cpu().numpy()
    weight = data.edge_weight if "edge_weight" in data else None
    clean = graph_from_edges(
        ends[0],
        ends[1],
        num_nodes=int(data.num_nodes),
        ids=data.ids if "ids" in data else None,
        weight=weight,
        x=data.x,
        y=data.y,
        directed=directed,
    )
    same = np.array_equal(clean.edge_index.numpy(), ends)
    for key in data.keys():  # noqa: SIM118 - Data is no mapping
        if key in clean or key == "num_nodes":
            continue
        if data.is_edge_attr(key) and not same:
            raise DataError(
                f"the Data's {key!r} belongs to edges that are not clean (sorted, both directions, no loops, "
                "no duplicates): remove it or clean the edges with torch_geometric.transforms first"
            )
        clean[key] = data[key]
    return clean
