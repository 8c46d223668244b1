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


def simple_adjacency(
    edge_index: Tensor | NDArray[Any], num_nodes: int, weight: Tensor | NDArray[Any] | None = None
) -> Csr:
    """Return the adjacency matrix of the simple undirected graph behind ``edge_index``.

    Directions, repetitions and self-loops are dropped. The result is CSR with sorted column indices and
    ones as data, so equal graphs give equal arrays whatever the order of their edges. With ``weight`` ``(E,)`` the
    data are the weights; of a pair that is listed with several, the largest.
    """
    if weight is not None:
        return _weighted_adjacency(edge_index, num_nodes, weight)
    source, target = checked_edges(edge_index, num_nodes)
    proper = source != target
    source, target = source[proper], target[proper]
    both = (np.concatenate([source, target]), np.concatenate([target, source]))
    matrix = sp.coo_matrix((np.ones(both[0].size, np.int8), both), shape=(num_nodes, num_nodes)).tocsr()
    matrix.sum_duplicates()
    # repetitions are summed in int8 and may wrap; only the pattern counts
    matrix.data = np.ones(matrix.indices.size, np.float64)
    return matrix


def directed_adjacency(edge_index: Tensor | NDArray[Any], num_nodes: int) -> Csr:
    """Return the adjacency matrix of the simple directed graph behind ``edge_index``, as :func:`simple_adjacency`."""
    source, target = checked_edges(edge_index, num_nodes)
    proper = source != target
    ends = source[proper], target[proper]
    matrix = sp.coo_matrix((np.ones(ends[0].size, np.float64), ends), shape=(num_nodes, num_nodes)).tocsr()
    matrix.sum_duplicates()
    matrix.data = np.ones(matrix.indices.size, np.float64)
    return matrix


def _weighted_adjacency(
    edge_index: Tensor | NDArray[Any], num_nodes: int, weight: Tensor | NDArray[Any]
) -> Csr:
    source, target = checked_edges(edge_index, num_nodes)
    value = np.asarray(weight.detach().cpu() if isinstance(weight, Tensor) else weight, np.float64)
    if value.shape != source.shape:
        raise DataError(f"{source.size} edges need {source.size} weights, got shape {value.shape}")
    if value.size and not (np.isfinite(value).all() and value.min() > 0):
        wrong = int(np.flatnonzero(~(np.isfinite(value) & (value > 0)))[0])
        raise DataError(f"weight of edge {wrong} is {value[wrong]}: weights must be above 0")
    proper = source != target
    source, target, value = source[proper], target[proper], value[proper]
    low, high = np.minimum(source, target), np.maximum(source, target)
    order = np.lexsort((-value, high, low))  # of equal pairs the largest weight first
    low, high, value = low[order], high[order], value[order]
    first = np.ones(low.size, dtype=bool)
    first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    low, high, value = low[first], high[first], value[first]
    both = (np.concatenate([low, high]), np.concatenate([high, low]))
    matrix = sp.coo_matrix((np.concatenate([value, value]), both), shape=(num_nodes, num_nodes)).tocsr()
    matrix.sort_indices()
    return matrix


def degrees(adjacency: Csr) -> FloatArray:
    """Return the sum of each row: the number of neighbours, or of their weights; 1 for a node without any."""
    found = np.asarray(adjacency.sum(axis=1), np.float64).ravel()
    return np.where(found > 0, found, 1.0)


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
