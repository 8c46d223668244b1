"""Sums over shortest-path distances that a curvature needs, streamed without a distance matrix.

For each node v the sums of d(a, v) and of 1 / d(a, v) over sources a, and for each edge uv the sum of
1 / d(a, u) over the sources at the same distance from both ends. Memory is O(nodes + edges).
"""

import dataclasses as dc
from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from gyroformer.graphs.adjacency import Csr, FloatArray, IntArray, upper_edges
from gyroformer.graphs.bfs import WORD, Level, bfs_levels, row_entries

#: words of one block: rows of a cache line, so that gathering them wastes no memory traffic
_WORDS = 8
#: nodes or edges whose words are gathered at once
_CHUNK = 1 << 15
#: measured: a level that reaches few nodes; and, for each edge, one source on one level
_LEVEL_SECONDS, _EDGE_SECONDS = 4e-4, 1e-10
#: lanes of a group whose functional is summed apart: one byte of a word
GROUP = 8


@dc.dataclass(frozen=True, slots=True)
class Sources:
    """Nodes to search from, with their lanes, and how many of each component were taken."""

    nodes: IntArray
    lanes: IntArray
    per_component: IntArray

    @property
    def words(self) -> int:
        """64-bit words that hold all lanes."""
        return -(-(int(self.lanes.max()) + 1) // WORD)


@dc.dataclass(frozen=True, slots=True)
class DistanceSums:
    """``far[v]`` = Σ d(a, v), ``near[v]`` = Σ 1/d(a, v), ``level_edges[e]`` = Σ over a level with edge e."""

    far: FloatArray
    near: FloatArray
    level_edges: FloatArray


def all_sources(adjacency: Csr, component: IntArray) -> Sources:
    """Return every node as a source; near nodes get near lanes, which keeps deep searches narrow."""
    order = np.asarray(reverse_cuthill_mckee(adjacency, symmetric_mode=True), np.int64)
    return _numbered(order, component)


def drawn_sources(component: IntArray, samples: int, seed: int) -> Sources:
    """Return ``samples`` nodes of every component, drawn without replacement; all of a smaller one."""
    order = np.random.default_rng(seed).permutation(component.size)
    every = _numbered(order, component)
    taken = every.lanes < samples
    counts = np.minimum(every.per_component, samples)
    return Sources(every.nodes[taken], every.lanes[taken], counts)


def search_cost(adjacency: Csr, component: IntArray) -> float:
    """Return a rough guess, in seconds of one core, of what searching from every node would take.

    Wide levels cost by their edges, deep graphs by their number of levels; the depth is that of one search
    a component.
    """
    sources = all_sources(adjacency, component)
    one = sources.lanes == 0
    depth = sum(1 for _ in bfs_levels(adjacency, sources.nodes[one], sources.lanes[one], 1))
    blocks = -(-sources.words // _WORDS)
    largest = int(sources.per_component.max())
    return float(depth * (blocks * _LEVEL_SECONDS + adjacency.nnz / 2 * largest * _EDGE_SECONDS))


def _numbered(order: IntArray, component: IntArray) -> Sources:
    """Return the nodes in ``order``, each with its index within its own component as its lane."""
    sizes = np.bincount(component)
    grouped = order[np.argsort(component[order], kind="stable")]
    starts = np.cumsum(sizes) - sizes
    lanes = np.arange(order.size) - np.repeat(starts, sizes)
    return Sources(grouped, lanes, sizes)


@dc.dataclass(frozen=True, slots=True)
class Functional:
    """Weights of a linear functional of the distances of one source, for several strata at once.

    Its value at source a is Σ_v far[v] d(a, v) + Σ_v near[v] / d(a, v) + Σ_e level[e] [a level with e] / d.
    Each is a sparse matrix with a row for each node (edge) and a column for each stratum.
    """

    far: Csr
    near: Csr
    level: Csr

    @classmethod
    def build(
        cls, stratum: IntArray, edge_stratum: IntArray, far: FloatArray, near: FloatArray, level: FloatArray
    ) -> "Functional":
        """Return the functional with each node's and edge's weight in the column of its stratum."""
        columns = int(stratum.max()) + 1

        def in_column(weight: FloatArray, column: IntArray) -> Csr:
            kept = np.flatnonzero(column >= 0)
            shape = (weight.size, columns)
            return sp.coo_matrix((weight[kept], (kept, column[kept])), shape=shape).tocsr()

        return cls(in_column(far, stratum), in_column(near, stratum), in_column(level, edge_stratum))


def distance_sums(
    adjacency: Csr,
    sources: Sources,
    *,
    functional: Functional | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[DistanceSums, FloatArray]:
    """Return the sums over ``sources``, and the functional summed over each group of ``GROUP`` lanes.

    Args:
        adjacency: symmetric CSR matrix without self-loops.
        sources: where to search from.
        functional: what to sum group by group; without one the second result has no rows.
        progress: called with (blocks done, blocks in all).

    Returns:
        The sums, and an array ``(strata, groups)``.
    """
    nodes, (u, v) = adjacency.shape[0], upper_edges(adjacency)
    upper = _Upper(np.searchsorted(u, np.arange(nodes + 1)), u, v)
    sums = DistanceSums(np.zeros(nodes), np.zeros(nodes), np.zeros(u.size))
    strata = 0 if functional is None else functional.far.shape[1]
    groups = np.zeros((strata, sources.words * WORD // GROUP))
    blocks = -(-sources.words // _WORDS)
    for block in range(blocks):
        low, high = block * _WORDS, min((block + 1) * _WORDS, sources.words)
        here = (sources.lanes >= low * WORD) & (sources.lanes < high * WORD)
        lanes = sources.lanes[here] - low * WORD
        for level in bfs_levels(adjacency, sources.nodes[here], lanes, high - low):
            columns = slice(low * WORD // GROUP, high * WORD // GROUP)
            _add_level(level, upper, sums, functional, groups[:, columns])
        if progress is not None:
            progress(block + 1, blocks)
    return sums, groups


@dc.dataclass(frozen=True, slots=True)
class _Upper:
    """Each undirected edge once, as (u, v) with u < v; ``indptr`` finds those that start at a node."""

    indptr: IntArray
    u: IntArray
    v: IntArray


def _add_level(
    level: Level, upper: _Upper, sums: DistanceSums, functional: Functional | None, groups: FloatArray
) -> None:
    """Add one level of one block to ``sums`` and, if there is a functional, to ``groups``."""
    bits, depth = level.bits, level.depth
    # groups need a count for each byte; else whole words are faster
    unit = np.uint64 if functional is None else np.uint8
    for rows in _chunks(level.rows):
        counts = np.bitwise_count(bits[rows].view(unit))
        reached = counts.sum(axis=1, dtype=np.int64)
        sums.far[rows] += reached * depth
        sums.near[rows] += reached / depth
        if functional is not None:
            groups += functional.far[rows].T @ counts * float(depth)
            groups += functional.near[rows].T @ counts / depth

    live = np.zeros(bits.shape[0], bool)
    live[level.rows] = True
    edges, _ = row_entries(upper.indptr, level.rows)
    for chunk in _chunks(edges[live[upper.v[edges]]]):
        shared = np.bitwise_count((bits[upper.u[chunk]] & bits[upper.v[chunk]]).view(unit))
        sums.level_edges[chunk] += shared.sum(axis=1, dtype=np.int64) / depth
        if functional is not None:
            groups += functional.level[chunk].T @ shared / depth


def _chunks(index: IntArray) -> Iterator[IntArray]:
    """Yield ``index`` in pieces whose gathered rows fit the processor's caches."""
    for start in range(0, index.size, _CHUNK):
        yield index[start : start + _CHUNK]
