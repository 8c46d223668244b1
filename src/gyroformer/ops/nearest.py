"""The nearest nodes of a node, and the nearest pairs of all, from blocks of distances.

A block of rows of the distance matrix exists at a time, never the whole.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from gyroformer.graphs.adjacency import Csr
from gyroformer.ops.nearest_index import NearestIndex, worthwhile
from gyroformer.ops.positions import Positions, StereographicPositions

#: distances in a block: with the widths that models have, some hundred MB of intermediate values
BLOCK = 1 << 20


def nearest_nodes(positions: Positions, rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the ``count`` nodes nearest to each node of ``rows``, itself not among them.

    Nodes at equal distance come in their own order. In few dimensions an index answers many queries, to the same
    result (:mod:`gyroformer.ops.nearest_index`).

    Returns:
        Node numbers and squared distances, both ``(R, count)``; ``count`` is at most the number of other nodes.
    """
    count, rows = min(count, len(positions) - 1), rows.to(positions.device)
    if count and has_index(positions, rows.numel()):
        assert isinstance(positions, StereographicPositions)
        index = NearestIndex(positions.sine, positions.cosine, positions.k)
        columns, values, unsure = index.query(rows, count)
        if bool(unsure.any()):
            columns[unsure], values[unsure] = compared_with_all(positions, rows[unsure], count)
        return columns, values
    return compared_with_all(positions, rows, count)


def has_index(positions: Positions, queries: int) -> bool:
    """Return whether an index answers so many queries for nearest nodes faster than a comparison with all."""
    return (
        isinstance(positions, StereographicPositions)
        and positions.device.type == "cpu"
        and worthwhile(positions.sine, positions.k, queries)
    )


def compared_with_all(positions: Positions, rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return what :func:`nearest_nodes` does, by all distances of each row."""
    found = []
    for block in row_blocks(rows, len(positions)):
        squared = positions.squared_dist_rows(block)
        squared[torch.arange(block.numel(), device=block.device), block] = torch.inf
        found.append(smallest(squared, count))
    if not found:
        return rows.new_empty(0, count), torch.empty(0, count, device=rows.device)
    values, columns = (torch.cat(part) for part in zip(*found, strict=True))
    return columns, values


def nearest_pairs(
    positions: Positions,
    joined: Csr,
    count: int,
    *,
    cost: Callable[[Tensor], Tensor] | None = None,
    node: int | None = None,
    directed: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the ``count`` nearest pairs ``u < v`` of nodes that are not joined, or those of one node.

    Pairs at equal distance come in the order of u and then v.

    Args:
        positions: where the nodes are.
        joined: adjacency matrix of the pairs to leave out, symmetric unless they are directed.
        count: how many; fewer come back if there are no more.
        cost: what is to be smallest instead of squared distances: ``(R, N)`` for rows ``(R,)``.
        node: only pairs of this node, which then comes first in each.
        directed: whether a pair from u to v is another than one from v to u.

    Returns:
        Pairs ``(2, M)`` and their squared distances, or costs, ``(M,)``.
    """
    everyone = torch.arange(len(positions), device=positions.device)
    nodes = everyone.numel()
    rows = everyone if node is None else everyone[node : node + 1]
    indptr, indices = (
        torch.from_numpy(part).to(everyone.device, torch.int64) for part in (joined.indptr, joined.indices)
    )
    best = torch.empty(0, device=positions.device)
    found = everyone[:0]
    for block in row_blocks(rows, nodes):
        squared = positions.squared_dist_rows(block) if cost is None else cost(block)
        once = node is None and not directed
        own = everyone <= block.unsqueeze(1) if once else everyone == block.unsqueeze(1)
        squared[own] = torch.inf
        degree = indptr[block + 1] - indptr[block]
        row = torch.repeat_interleave(block - block[0], degree)
        squared[row, indices[indptr[block[0]] : indptr[block[-1] + 1]]] = torch.inf
        values, at = smallest(squared.reshape(1, -1), min(count, squared.numel()))
        # earlier pairs stand first: a stable choice keeps the order among equals
        best = torch.cat((best.to(values), values[0]))
        found = torch.cat((found, at[0] + int(block[0]) * nodes))
        values, at = smallest(best.unsqueeze(0), min(count, best.numel()))
        best, found = values[0], found[at[0]]
    real = torch.isfinite(best)
    return torch.stack((found // nodes, found % nodes))[:, real], best[real]


def row_blocks(rows: Tensor, columns: int) -> Iterator[Tensor]:
    """Yield ``rows`` in parts that make blocks of at most ``BLOCK`` entries, or one row."""
    yield from rows.split(max(1, BLOCK // max(columns, 1))) if rows.numel() else ()


def smallest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the ``count`` smallest of each row, ascending, and their columns; the first of equals first."""
    found, columns = values.topk(count, largest=False, sorted=True)
    if not count:
        return found, columns
    # topk takes any of equals: where that makes a difference, all that could be meant are sorted
    unclear = (values <= found[:, -1:]).sum(1) > count
    unclear |= (found.diff(dim=1) == 0).any(1)
    if bool(unclear.any()):
        columns[unclear] = _first_of_equals(values[unclear], found[unclear, -1:], count)
        found[unclear] = values[unclear].gather(1, columns[unclear])
    return found, columns


def _first_of_equals(values: Tensor, largest: Tensor, count: int) -> Tensor:
    """Return the columns of the ``count`` smallest of each row, none of which is above ``largest``, in order."""
    rows, columns = (~(values > largest)).nonzero(as_tuple=True)  # NaN, which is last, is not above anything
    order = values[rows, columns].argsort(stable=True)
    order = order[rows[order].argsort(stable=True)]
    counts = rows.bincount(minlength=len(values))
    begins = counts.cumsum(0) - counts
    return columns[order[begins.unsqueeze(1) + torch.arange(count, device=values.device)]]
