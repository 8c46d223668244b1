"""A directed graph read as a hierarchy: which end of an edge is the ancestor, cycles, and all ancestors of each node.

Edges go from a node to its parent, ``(2, E)`` of node indices, once :func:`oriented` has turned them.
"""

from collections import deque
from typing import Literal

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from gyroformer.graphs.adjacency import Csr, IntArray

End = Literal["source", "target"]


def upper_end(edges: IntArray, nodes: int) -> End | None:
    """Return which end of the listed edges looks like the ancestor; None where nothing tells.

    It is the one that makes the hierarchy a tree-like one: few nodes without a parent, many without a child.
    """
    without_out = nodes - np.unique(edges[0]).size
    without_in = nodes - np.unique(edges[1]).size
    if without_out == without_in:
        return None
    return "target" if without_out < without_in else "source"


def oriented(edges: IntArray, ancestor: End) -> IntArray:
    """Return the listed edges from each node to its parent, given which end of an edge the parent is."""
    return edges if ancestor == "target" else edges[::-1].copy()


def has_no_direction(edges: IntArray, nodes: int) -> bool:
    """Return whether every edge is listed in both directions."""
    there, back = edges[0] * np.int64(nodes) + edges[1], edges[1] * np.int64(nodes) + edges[0]
    return bool(np.isin(back, there).all())


def find_cycle(edges: IntArray, nodes: int) -> list[int] | None:
    """Return the nodes of a cycle in the order of its edges, a short one; None if there is none."""
    matrix = _matrix(edges, nodes)
    count, label = connected_components(matrix, directed=True, connection="strong")
    if count == nodes:
        return None
    sizes = np.bincount(label)
    tangle = int(np.argmin(np.where(sizes > 1, sizes, nodes + 1)))
    start = int(np.nonzero(label == tangle)[0][0])
    came: dict[int, int] = {start: -1}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for other in matrix.indices[matrix.indptr[node] : matrix.indptr[node + 1]].tolist():
            if other == start:
                return _way(came, node)
            if label[other] == tangle and other not in came:
                came[other] = node
                waiting.append(other)
    raise AssertionError("a strongly connected part has a cycle through each of its nodes")


def _way(came: dict[int, int], node: int) -> list[int]:
    way = []
    while node >= 0:
        way.append(node)
        node = came[node]
    return way[::-1]


def without_cycles(edges: IntArray, nodes: int) -> IntArray:
    """Return the edges without those that lead back: a walk from the lowest nodes upwards meets them on its own way."""
    matrix = _matrix(edges, nodes)
    _, label = connected_components(matrix, directed=True, connection="strong")
    inside = np.bincount(label)[label] > 1
    fresh, open_, done = 0, 1, 2
    state = np.zeros(nodes, np.int8)
    dropped: set[tuple[int, int]] = set()
    tangled = np.nonzero(inside)[0]
    # the lowest have more parents than children
    height = np.bincount(edges[1], minlength=nodes) - np.bincount(edges[0], minlength=nodes)
    for first in tangled[np.argsort(height[tangled], kind="stable")].tolist():
        if state[first] != fresh:
            continue
        way = [(first, iter(matrix.indices[matrix.indptr[first] : matrix.indptr[first + 1]].tolist()))]
        state[first] = open_
        while way:
            node, others = way[-1]
            other = next(others, None)
            if other is None:
                state[node] = done
                way.pop()
            elif state[other] == open_:
                dropped.add((node, other))
            elif state[other] == fresh and inside[other]:
                state[other] = open_
                way.append(
                    (other, iter(matrix.indices[matrix.indptr[other] : matrix.indptr[other + 1]].tolist()))
                )
    keep = [(u, v) not in dropped for u, v in edges.T.tolist()]
    return edges[:, keep]


def closure(edges: IntArray, nodes: int) -> tuple[IntArray, IntArray]:
    """Return every node with each of its ancestors, ``(2, M)``, ascending, and the depth of each node.

    The depth is the number of edges on the longest way up. The edges must have no cycle.
    """
    parents, children = _matrix(edges, nodes), _matrix(edges[::-1], nodes)
    left = np.diff(parents.indptr)
    waiting = deque(np.nonzero(left == 0)[0].tolist())
    above: list[IntArray] = [np.empty(0, np.int64)] * nodes
    depth = np.zeros(nodes, np.int64)
    while waiting:
        node = waiting.popleft()
        direct = parents.indices[parents.indptr[node] : parents.indptr[node + 1]].astype(np.int64)
        if direct.size:
            above[node] = np.unique(np.concatenate([direct, *(above[parent] for parent in direct)]))
            depth[node] = 1 + depth[direct].max()
        for child in children.indices[children.indptr[node] : children.indptr[node + 1]].tolist():
            left[child] -= 1
            if not left[child]:
                waiting.append(child)
    counts = [ancestors.size for ancestors in above]
    return np.stack([np.repeat(np.arange(nodes), counts), np.concatenate(above)]), depth


def implied(pairs: IntArray, nodes: int) -> np.ndarray:
    """Return which pairs of a closure follow from two others: those that are no direct edge, bool ``(M,)``."""
    matrix = _matrix(pairs, nodes).astype(np.int32)
    through = (matrix @ matrix).tocsr()
    through.sort_indices()
    keys = np.repeat(np.arange(nodes), np.diff(through.indptr)) * np.int64(nodes) + through.indices
    return np.isin(pairs[0] * np.int64(nodes) + pairs[1], keys)


def _matrix(edges: IntArray, nodes: int) -> Csr:
    ones = np.ones(edges.shape[1], np.int8)
    matrix = sp.csr_matrix((ones, (edges[0], edges[1])), shape=(nodes, nodes))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix
