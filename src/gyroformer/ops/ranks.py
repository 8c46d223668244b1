"""Where the neighbours of a node come among all others, by rows of distances."""

import torch
from torch import Tensor

from gyroformer.ops.native import fused
from gyroformer.ops.native.calls import call, check_nodes
from gyroformer.ops.neighbours import Neighbours


def others_before(distances: Tensor, rows: Tensor, neighbours: Neighbours) -> Tensor:
    """Return how many nodes that are no neighbours come before each neighbour of a node, int64 ``(R, D)``.

    Entry i belongs to the i-th nearest neighbour; a node just as far comes before it. D is the largest degree of the
    nodes; entries beyond a node's own mean nothing.

    Args:
        distances: ``(R, N)``, of ``rows`` to all nodes, without NaN.
        rows: nodes ``(R,)``, each with at least one neighbour.
        neighbours: the graph.
    """
    check_nodes(rows, neighbours.num_nodes)
    most = int(neighbours.degree[rows].max())
    if not fused.usable(distances):
        return _torch_form(distances, rows, neighbours, most)
    before = rows.new_empty(rows.numel(), most)
    tensors = [t.contiguous() for t in (distances, rows, neighbours.indptr, neighbours.indices)]
    call("gyroformer_ranks", [*tensors, before], [*distances.shape, most], [])
    return before


def _torch_form(distances: Tensor, rows: Tensor, neighbours: Neighbours, most: int) -> Tensor:
    order = torch.arange(most, device=rows.device)
    real = order < neighbours.degree[rows][:, None]
    entry = (neighbours.indptr[rows][:, None] + order).where(real, 0)
    near = distances.gather(1, neighbours.indices[entry]).where(real, torch.inf).sort(dim=1).values
    other = ~neighbours.adjacent(rows)
    other[torch.arange(rows.numel(), device=rows.device), rows] = False
    # the first neighbour that is no nearer: from that one on, the node comes before
    first = torch.searchsorted(near, distances.contiguous())
    before = torch.zeros(rows.numel(), most + 1, dtype=torch.int64, device=rows.device)
    return before.scatter_add_(1, first, other.long()).cumsum(1)[:, :most]
