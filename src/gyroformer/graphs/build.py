"""One clean graph from listed edges, with an account of what was dropped on the way."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from gyroformer.errors import DataError
from gyroformer.graphs.adjacency import IntArray
from gyroformer.graphs.check import checked_features, checked_labels, checked_weights

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from torch_geometric.data import Data


MAX_NODES = 2_000_000_000
#: columns that are not used which a summary names
NAMED = 3


@dataclass(frozen=True, slots=True)
class GraphSummary:
    """What was listed and what became of it.

    Every listed edge is counted once: ``listed_edges`` is ``edges + self_loops + duplicates``, and for
    an undirected graph ``+ reversed_duplicates``.

    Attributes:
        nodes: number of nodes.
        listed_edges: edges as the source lists them.
        edges: distinct pairs without self loops (unordered; ordered if the graph is directed).
        self_loops: listed edges from a node to itself; dropped.
        duplicates: listed edges whose ordered pair was listed before; dropped.
        reversed_duplicates: pairs listed in both directions: one edge if undirected, two if directed.
        isolated: nodes without an edge to another node.
        components: connected components, an isolated node being one (weakly connected if directed).
        weight_conflicts: dropped duplicates whose weight is not that of the edge kept.
        directed: whether the direction of edges was kept.
        weights: the smallest and the largest weight; None for a graph without weights.
        header: the names of the columns that the edges were read from, where they had names.
        unused: the names of the other columns.
    """

    nodes: int
    listed_edges: int
    edges: int
    self_loops: int
    duplicates: int
    reversed_duplicates: int
    isolated: int
    components: int
    weight_conflicts: int = 0
    directed: bool = False
    weights: tuple[float, float] | None = None
    header: tuple[str, ...] | None = None
    unused: tuple[str, ...] = ()

    def line(self) -> str:
        """Return the one summary line: how it was read, what there is, then what was dropped or is unusual."""
        kind = "directed" if self.directed else "undirected"
        both = "in both directions" if self.directed else "reversed"
        notes = [
            (self.self_loops, f"{_count(self.self_loops, 'self loop')} dropped"),
            (self.duplicates, f"{_count(self.duplicates, 'duplicate')} dropped"),
            (self.reversed_duplicates, f"{_count(self.reversed_duplicates, 'pair')} listed {both}"),
            (self.weight_conflicts, f"{_count(self.weight_conflicts, 'duplicate')} with another weight"),
            (self.isolated, f"{_count(self.isolated, 'isolated node')}"),
        ]
        edges = f"{_count(self.edges, f'{kind} edge')} of {self.listed_edges:,} listed"
        weights = "none" if self.weights is None else f"{self.weights[0]:.6g} to {self.weights[1]:.6g}"
        head = f"{_count(self.nodes, 'node')}, {edges}, weights {weights}"
        parts = [head, *(text for count, text in notes if count), _count(self.components, "component")]
        if self.header is not None:
            others = f" (not used: {_few(self.unused)})" if self.unused else ""
            parts.insert(0, f"header: {', '.join(map(_short, self.header))}{others}")
        return "; ".join(parts)


def graph_from_edges(
    source: np.ndarray,
    target: np.ndarray,
    *,
    num_nodes: int,
    ids: Sequence[Hashable] | np.ndarray | None = None,
    weight: np.ndarray | None = None,
    x: object = None,
    y: object = None,
    directed: bool = False,
) -> "Data":
    """Return the graph of the listed edges: no self loops, no duplicates, edges sorted by (source, target).

    A pair that is listed several times keeps the weight of its first listing. Adding the weights up instead
    would double those of a file that lists each edge in both directions, as many do, so that one graph would
    have two meanings; the summary counts the duplicates whose weight differs from the one kept.

    Args:
        source: index of each edge's first node, integers of shape ``(E,)`` in ``[0, num_nodes)``.
        target: index of each edge's second node, same shape.
        num_nodes: number of nodes, at least 1.
        ids: the nodes' own names in order; ``0 … num_nodes - 1`` by default.
        weight: one finite number for each listed edge, shape ``(E,)``.
        x: node features ``(num_nodes, F)``: array, tensor or scipy sparse matrix.
        y: node labels ``(num_nodes,)``, integers from 0.
        directed: keep the direction as listed; by default both directions of every edge are stored.

    Returns:
        A graph with ``edge_index`` (int64, ``(2, M)``), ``num_nodes``, ``ids`` (int or str), ``summary``
        (:class:`GraphSummary`) and, where given, ``edge_weight`` and ``x`` (float32) and ``y`` (int64).

    Raises:
        DataError: if there is no node, an end is out of range, or sizes or values are wrong.
    """
    from gyroformer.graphs.pyg import Data

    source, target = checked_ends(source, target, num_nodes)
    names = _checked_ids(ids, num_nodes)
    values = None if weight is None else checked_weights(weight, source.size)
    keys, kept, counts = _coalesce(source, target, values, num_nodes, directed)
    matrix = _adjacency(keys, num_nodes, directed)
    isolated, components = _connectivity(matrix, directed)
    rows = np.repeat(np.arange(num_nodes), np.diff(matrix.indptr))

    data = Data(edge_index=torch.from_numpy(np.stack([rows, matrix.indices])), num_nodes=num_nodes)
    if kept is not None:
        data.edge_weight = torch.from_numpy(kept[matrix.data - 1])
    if x is not None:
        data.x = checked_features(x, num_nodes)
    if y is not None:
        data.y = checked_labels(y, num_nodes)
    data.ids = names
    data.summary = GraphSummary(
        nodes=num_nodes,
        listed_edges=source.size,
        isolated=isolated,
        components=components,
        directed=directed,
        weights=None if kept is None or not kept.size else (float(kept.min()), float(kept.max())),
        **counts,  # type: ignore[arg-type]
    )
    return data


def _short(name: str) -> str:
    """Return the name of a column as it is, or its beginning in quotation marks if it is long or not printable."""
    return name if name.isprintable() and len(name) <= 40 else repr(name[:40])


def _few(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(map(_short, names[:NAMED])) + more


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def checked_ends(source: np.ndarray, target: np.ndarray, num_nodes: int) -> tuple[IntArray, IntArray]:
    """Return the ends of listed edges as int64; a DataError names the first that is no node."""
    if num_nodes > MAX_NODES:
        raise DataError(
            f"{num_nodes} nodes, but at most {MAX_NODES} are supported: a pair of nodes has to fit 62 bits"
        )
    if num_nodes < 1:
        raise DataError("the graph has no node: give at least one node or edge")
    if source.ndim != 1 or source.shape != target.shape:
        raise DataError(
            f"edges need two 1-D arrays of equal length, got shapes {source.shape} and {target.shape}"
        )
    for ends in (source, target):
        if ends.size and not np.issubdtype(ends.dtype, np.integer):
            raise DataError(f"edge endpoints must be integers, got {ends.dtype}: number the nodes from 0")
        if ends.size and (int(ends.min()) < 0 or int(ends.max()) >= num_nodes):
            index = int(np.flatnonzero((ends < 0) | (ends >= num_nodes))[0])
            raise DataError(
                f"edge {index} ends at node {int(ends[index])}, but nodes are numbered 0 to {num_nodes - 1}: "
                "correct the edge or the number of nodes"
            )
    return source.astype(np.int64, copy=False), target.astype(np.int64, copy=False)


def _checked_ids(ids: Sequence[Hashable] | np.ndarray | None, num_nodes: int) -> list[Hashable]:
    """Return the names as plain integers or text.

    A list, because ``Data.subgraph`` and the transforms built on it then select the names with the nodes;
    with an array they raise. Other kinds (a NetworkX grid has tuples) are named by their text, because
    ``Data.clone`` would turn a tuple into a list.
    """
    if ids is None:
        return list(range(num_nodes))
    if len(ids) != num_nodes:
        raise DataError(f"{num_nodes} nodes need {num_nodes} ids, got {len(ids)}")
    listed: list[Hashable] = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    if set(map(type, listed)) - {int, str}:
        listed = [str(name) if not isinstance(name, np.integer) else int(name) for name in listed]
    repeated = num_nodes - len(set(listed))
    if repeated:
        raise DataError(f"node ids must be distinct, but {repeated} of {num_nodes} are repeated")
    return listed


def _coalesce(
    source: IntArray, target: IntArray, weight: NDArray[np.float32] | None, n: int, directed: bool
) -> tuple[IntArray, NDArray[np.float32] | None, dict[str, int]]:
    """Return the distinct pairs as sorted keys ``u n + v``, their first weights, and the counts.

    One sort does it: of ``2 (lower n + higher) + (1 if listed backwards)``.
    """
    apart = source != target
    loops = source.size - int(np.count_nonzero(apart))
    if loops:
        source, target = source[apart], target[apart]
        weight = None if weight is None else weight[apart]
    ordered = (np.minimum(source, target) * n + np.maximum(source, target)) * 2 + (source > target)
    pairs = _distinct(ordered)
    unordered = pairs[_is_new(pairs >> 1)] >> 1
    counts = {
        "edges": pairs.size if directed else unordered.size,
        "self_loops": loops,
        "duplicates": source.size - pairs.size,
        "reversed_duplicates": pairs.size - unordered.size,
        "weight_conflicts": 0,
    }
    keys = np.sort(_turned(pairs >> 1, pairs & 1, n)) if directed else unordered
    if weight is None:
        return keys, None, counts
    listed = source * n + target if directed else ordered >> 1
    order = np.argsort(listed, kind="stable")  # so that the first of equal keys is the one listed first
    new = _is_new(listed[order])
    kept = weight[order][new]
    counts["weight_conflicts"] = int(np.count_nonzero(kept[np.cumsum(new) - 1] != weight[order]))
    return keys, kept, counts


def _distinct(keys: IntArray) -> IntArray:
    """Return the sorted distinct keys; numpy's ``unique`` hashes, which is many times slower here."""
    keys = np.sort(keys)
    return keys[_is_new(keys)]


def _is_new(keys: IntArray) -> NDArray[np.bool_]:
    """Return where sorted keys differ from the one before."""
    new = np.ones(keys.size, dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    return new


def _turned(keys: IntArray, backwards: IntArray, n: int) -> IntArray:
    lower, higher = np.divmod(keys, n)
    return np.where(backwards == 1, higher * n + lower, keys)


def _adjacency(keys: IntArray, n: int, directed: bool) -> "csr_array":
    """Return the matrix whose entries are 1 + the edge's index among ``keys``; symmetric if undirected."""
    from scipy.sparse import csr_array

    rows, columns = np.divmod(keys, n)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])  # sorted keys are CSR already
    numbers = np.arange(1, keys.size + 1)
    matrix = csr_array((numbers, columns, starts), shape=(n, n))
    if directed:
        return matrix
    both = matrix + matrix.T.tocsr()  # linear in the edges; the halves do not overlap
    both.sort_indices()
    return both


def _connectivity(matrix: "csr_array", directed: bool) -> tuple[int, int]:
    """Return the numbers of nodes without an edge and of (weakly) connected components."""
    from scipy.sparse.csgraph import connected_components

    n = matrix.shape[0]
    touched = np.diff(matrix.indptr) > 0
    if directed:
        touched |= np.bincount(matrix.indices, minlength=n) > 0
    # On a symmetric matrix strong components are the same, and need no transpose.
    components, _ = connected_components(matrix, directed=True, connection="weak" if directed else "strong")
    return n - int(np.count_nonzero(touched)), int(components)
