"""Triangles of a simple undirected graph, listed in blocks, as triples whose two neighbours are adjacent."""

from collections.abc import Iterator

import numpy as np

from gyroformer.graphs.adjacency import Csr, IntArray
from gyroformer.graphs.bfs import blocks_of, joined_ranges

#: pairs of neighbours looked at in one block
_BLOCK_PAIRS = 1 << 20


def closed_triples(adjacency: Csr) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Yield the triples (m; {b, c}) with b ~ c, three for each triangle, in blocks.

    A block is three arrays: the nodes m, and the indices of mb and of mc among the entries of ``adjacency``
    (CSR with sorted indices). Each edge is pointed to its end of higher degree, so no node has many edges
    going out and the pairs to look at are O(E^1.5) even in a star.
    """
    nodes = adjacency.shape[0]
    degree = np.diff(adjacency.indptr).astype(np.int64)
    source, target = np.repeat(np.arange(nodes), degree), adjacency.indices.astype(np.int64)
    rank = np.empty(nodes, np.int64)
    rank[np.argsort(degree, kind="stable")] = np.arange(nodes)

    out = np.flatnonzero(rank[source] < rank[target])
    out = out[np.lexsort((rank[target[out]], rank[source[out]]))]
    back = np.searchsorted(source * nodes + target, target[out] * nodes + source[out])
    tail, head = rank[source[out]], rank[target[out]]
    keys = tail * nodes + head
    # edge i = (u, v) is paired with u's later edges j = (u, w); they close if k = (v, w) is an edge
    later = np.searchsorted(tail, tail, side="right") - np.arange(tail.size) - 1
    for first, last in blocks_of(later, _BLOCK_PAIRS):
        block = np.arange(first, last)
        i = np.repeat(block, later[block])
        j, _ = joined_ranges(block + 1, later[block])
        wanted = head[i] * nodes + head[j]
        k = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        closed = keys[k] == wanted
        i, j, k = i[closed], j[closed], k[closed]
        yield (
            np.concatenate([source[out[i]], target[out[i]], target[out[j]]]),
            np.concatenate([out[i], back[i], back[j]]),
            np.concatenate([out[j], out[k], back[k]]),
        )


def closed_counts(adjacency: Csr) -> IntArray:
    """Return the number of triangles at each node."""
    counts = np.zeros(adjacency.shape[0], np.int64)
    for m, _, _ in closed_triples(adjacency):
        counts += np.bincount(m, minlength=counts.size)
    return counts
