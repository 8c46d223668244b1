"""Breadth-first search from many sources at once, one bit a source.

A row of ``words`` 64-bit words holds, for one node, which of ``64 * words`` lanes have reached it. One level
of all lanes is an OR over each node's neighbours. Sources in different components cannot meet, so a lane may
carry one source of every component: a graph of many small components costs no more than its largest one.
"""

import dataclasses as dc
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gyroformer.graphs.adjacency import Csr, IntArray

WORD = 64
Bits = NDArray[np.uint64]
#: words gathered at once: keeps the temporary in the processor's caches
_BLOCK_WORDS = 1 << 18


@dc.dataclass(frozen=True, slots=True)
class Level:
    """The nodes that some lane reaches after exactly ``depth`` steps.

    ``rows`` names them in increasing order; ``bits[v]`` holds the lanes for every node ``v`` of the graph
    and is zero outside ``rows``. The arrays are overwritten by the next level.
    """

    depth: int
    rows: IntArray
    bits: Bits


def joined_ranges(starts: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
    """Return the ranges ``starts[i] .. starts[i] + lengths[i] - 1`` end to end, and where each begins."""
    begins = np.cumsum(lengths) - lengths
    return np.repeat(starts - begins, lengths) + np.arange(int(lengths.sum())), begins


def blocks_of(sizes: IntArray, limit: int) -> Iterator[tuple[int, int]]:
    """Yield ``(first, last)`` of runs of items whose sizes add up to at most ``limit``; one item may exceed it."""
    ends = np.cumsum(sizes)
    first = 0
    while first < sizes.size:
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + limit, side="right")))
        yield first, last
        first = last


def row_entries(indptr: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return the positions of the CSR entries of ``rows``, and where each row begins among them."""
    return joined_ranges(indptr[rows], indptr[rows + 1] - indptr[rows])


def bfs_levels(adjacency: Csr, sources: IntArray, lanes: IntArray, words: int) -> Iterator[Level]:
    """Yield the levels 1, 2, ... of the searches that start at ``sources[i]`` in lane ``lanes[i]``.

    Args:
        adjacency: symmetric CSR matrix without self-loops.
        sources: distinct nodes.
        lanes: lane of each source, below ``64 * words``; two sources of one component need two lanes.
        words: 64-bit words in a row.
    """
    nodes = adjacency.shape[0]
    indptr, indices = adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int64)
    front = np.zeros((nodes, words), np.uint64)
    # byte by byte, so that lane 8 i + j is bit j of byte i whatever the machine's byte order
    front.view(np.uint8)[sources, lanes // 8] = np.uint8(1) << (lanes % 8).astype(np.uint8)
    seen = front.copy()
    rows = np.sort(sources)
    depth = 0
    while rows.size:
        depth += 1
        touched = _neighbours(indptr, indices, rows, nodes)
        gained = _or_over_neighbours(indptr, indices, touched, front)
        gained &= ~seen[touched]
        front[rows] = 0
        new = gained.any(axis=1)
        rows, gained = touched[new], gained[new]
        front[rows] = gained
        seen[rows] |= gained
        if rows.size:
            yield Level(depth, rows, front)


def _neighbours(indptr: IntArray, indices: IntArray, rows: IntArray, nodes: int) -> IntArray:
    mark = np.zeros(nodes, bool)
    if 4 * rows.size > nodes:  # most rows are active: looking at all is cheaper than listing their entries
        mark[:] = indptr[1:] > indptr[:-1]
    else:
        mark[indices[row_entries(indptr, rows)[0]]] = True
    return np.flatnonzero(mark)


def _or_over_neighbours(indptr: IntArray, indices: IntArray, rows: IntArray, front: Bits) -> Bits:
    """Return, for each of ``rows`` (all with neighbours), the OR of its neighbours' words."""
    words = front.shape[1]
    result = np.empty((rows.size, words), np.uint64)
    for first, last in blocks_of(indptr[rows + 1] - indptr[rows], max(1, _BLOCK_WORDS // words)):
        positions, starts = row_entries(indptr, rows[first:last])
        result[first:last] = np.bitwise_or.reduceat(front[indices[positions]], starts, axis=0)
    return result
