"""Graphs of other libraries as one clean ``Data``."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.build import graph_from_edges
from gyroformer.graphs.listing import Listing
from gyroformer.graphs.reading.npz import matrix_entries
from gyroformer.graphs.reading.read import read_graph

if TYPE_CHECKING:
    from torch_geometric.data import Data


def to_graph(obj: object, *, directed: bool = False) -> "Data":
    """Return the clean graph of anything that is one.

    Args:
        obj: a path, a ``torch_geometric.data.Data``, a NetworkX graph, a square scipy sparse matrix (an entry
            other than 0 is an edge, its value the weight unless all are 1), or ``(edge_index, num_nodes)``.
        directed: keep the direction of edges; by default both directions are stored, whatever ``obj`` is.

    Raises:
        UsageError: if it is none of these.
        DataError: if it is one that cannot be used.
    """
    from scipy.sparse import issparse
    from torch_geometric.data import Data

    if isinstance(obj, (str, Path)):
        return read_graph(obj, directed=directed)
    if isinstance(obj, Data):
        return _from_data(obj, directed)
    if issparse(obj):
        return _from_sparse(obj, directed)
    networkx = sys.modules.get("networkx")  # who holds such a graph has imported it
    if networkx is not None and isinstance(obj, networkx.Graph):
        return _from_networkx(obj, directed)
    if isinstance(obj, tuple) and len(obj) == 2:
        return _from_index(*obj, directed=directed)
    raise UsageError(
        f"{type(obj).__name__} is not a graph: give a path, a torch_geometric Data, a NetworkX graph, "
        "a scipy sparse matrix or (edge_index, num_nodes)"
    )


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


def _from_networkx(graph: Any, directed: bool) -> "Data":
    """Take nodes in their order; an edge without a weight among weighted ones counts 1, as NetworkX says."""
    nodes = list(graph.nodes())
    index = {node: i for i, node in enumerate(nodes)}
    listed = list(graph.edges(data="weight"))
    ends = np.array([(index[u], index[v]) for u, v, _ in listed], dtype=np.int64).reshape(-1, 2).T
    weight = None
    if any(value is not None for _, _, value in listed):
        weight = np.array([1.0 if value is None else value for _, _, value in listed])
    names = [
        node if isinstance(node, (int, str)) and not isinstance(node, bool) else str(node) for node in nodes
    ]
    symmetric = not graph.is_directed()
    return Listing(ends[0], ends[1], names, weight, symmetric=symmetric).graph(directed=directed)


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
