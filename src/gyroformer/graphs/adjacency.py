"""From an edge index to the adjacency matrix of a simple undirected graph, and its components."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from gyroformer.errors import DataError, UsageError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.floating[Any]]
#: scipy's CSR matrix; the library has no type information.
Csr = Any


def sum_by(index: IntArray, weights: NDArray[Any], size: int) -> FloatArray:
    """Return, for each i below ``size``, the sum of the weights whose ``index`` is i."""
    return np.asarray(np.bincount(index, weights=weights, minlength=size), np.float64)


def checked_edges(edge_index: Tensor | NDArray[Any], num_nodes: int) -> IntArray:
    """Return ``edge_index`` as an int64 array ``(2, E)`` whose entries all name a node."""
    if isinstance(edge_index, Tensor):
        edge_index = edge_index.detach().cpu().numpy()
    edges = np.asarray(edge_index)
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise UsageError(f"edge_index must have the shape (2, E), got {edges.shape}")
    if edges.size and not np.issubdtype(edges.dtype, np.integer):
        raise UsageError(f"edge_index must hold integers, got {edges.dtype}")
    if num_nodes < 1:
        raise DataError(f"a graph needs at least one node, got num_nodes={num_nodes}")
    if edges.size and (edges.min() < 0 or edges.max() >= num_nodes):
        worst = int(edges.max() if edges.max() >= num_nodes else edges.min())
        raise DataError(f"edge_index names node {worst}, but the graph has the nodes 0 to {num_nodes - 1}")
    return edges.astype(np.int64, copy=False)


def simple_adjacency(edge_index: Tensor | NDArray[Any], num_nodes: int) -> Csr:
    """Return the adjacency matrix of the simple undirected graph behind ``edge_index``.

    Directions, repetitions and self-loops are dropped. The result is CSR with sorted column indices and
    ones as data, so equal graphs give equal arrays whatever the order of their edges.
    """
    source, target = checked_edges(edge_index, num_nodes)
    proper = source != target
    source, target = source[proper], target[proper]
    both = (np.concatenate([source, target]), np.concatenate([target, source]))
    matrix = sp.coo_matrix((np.ones(both[0].size, np.int8), both), shape=(num_nodes, num_nodes)).tocsr()
    matrix.sum_duplicates()
    # repetitions are summed in int8 and may wrap; only the pattern counts
    matrix.data = np.ones(matrix.indices.size, np.float64)
    return matrix


def upper_edges(adjacency: Csr) -> tuple[IntArray, IntArray]:
    """Return the ends ``(u, v)`` of each undirected edge once, ``u < v``, sorted by ``u`` and then ``v``."""
    source = np.repeat(np.arange(adjacency.shape[0]), np.diff(adjacency.indptr))
    target = adjacency.indices.astype(np.int64)
    once = source < target
    return source[once], target[once]


def ranked_components(adjacency: Csr) -> tuple[int, IntArray]:
    """Return the number of components and each node's, numbered by size, largest first.

    Components of one size keep the order of their first nodes.
    """
    count, label = connected_components(adjacency, directed=False)
    sizes = np.bincount(label, minlength=count)
    _, first = np.unique(label, return_index=True)
    rank = np.empty(count, np.int64)
    rank[np.lexsort((first, -sizes))] = np.arange(count)
    return int(count), rank[label]
