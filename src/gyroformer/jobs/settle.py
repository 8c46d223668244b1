"""Nodes that move until the loss of a task is low, while all others stay where they are.

So do new nodes in a space where direction counts, and known nodes around new ones where the user lets them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gyroformer.graphs.adjacency import Csr, simple_adjacency
from gyroformer.jobs.plan import relative_weights
from gyroformer.ops.descent import Descent
from gyroformer.ops.nearest import nearest_nodes
from gyroformer.ops.positions import StereographicPositions
from gyroformer.tasks.embed import Reconstruction

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: how far from a new node known ones may move, in steps along edges
HOPS = 2
#: steps of known nodes that give way, and the size of the first (they shrink to 0)
STEPS, RATE = 32, 0.07
#: non-neighbours in their loss: listed ones, and drawn ones for all others
NEAR, FAR = 32, 16
#: share of the nodes that may move above which all nodes count, without a search for the near ones
MOST = 0.25


def settle(
    loss: Callable[[StereographicPositions], Tensor],
    positions: StereographicPositions,
    moving: Tensor,
    *,
    steps: int,
    rate: float,
) -> StereographicPositions:
    """Return the positions with the nodes ``moving`` ``(M,)`` where the loss is low.

    Draws of the loss are the same each time, and those of the caller are not disturbed.
    """
    way = Descent(positions.sine[moving], positions.cosine[moving], positions.k)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        for step in range(steps):
            sine, cosine = (x.detach().requires_grad_() for x in (way.sine, way.cosine))
            value = loss(_with(positions, moving, sine, cosine))
            by_sine, by_cosine = torch.autograd.grad(value, (sine, cosine))
            way.step(by_sine, by_cosine, rate * (1 - step / steps))
    return _with(positions, moving, way.sine, way.cosine)


def around(graph: "Data", new: Tensor, hops: int = HOPS) -> Tensor:
    """Return the nodes within some steps of the nodes ``new``, these among them, ascending."""
    nodes = int(graph.num_nodes or 0)
    return _within(simple_adjacency(graph.edge_index, nodes), new, hops)


def adjusted(positions: StereographicPositions, graph: "Data", new: Tensor) -> StereographicPositions:
    """Return the positions with the new nodes and those around them moved by the loss of reconstruction.

    Only a part of a large graph is looked at: what can move, its neighbours, and what is near in space.
    """
    nodes = len(positions)
    matrix = simple_adjacency(graph.edge_index, nodes)
    moving = _within(matrix, new, HOPS)
    if moving.numel() > MOST * nodes:
        seen = torch.arange(nodes)
    else:
        near, _ = nearest_nodes(positions, moving, min(NEAR, nodes - 1))
        seen = torch.cat((_within(matrix, new, HOPS + 1), near.flatten())).unique()
    part = _induced(graph, seen)
    task = Reconstruction(part, negatives="near", near=NEAR, far=FAR)
    local = StereographicPositions(positions.sine[seen], positions.cosine[seen], positions.k)
    inner = torch.searchsorted(seen, moving)
    found = settle(task.loss_at, local, inner, steps=STEPS, rate=RATE)
    return _with(positions, seen, found.sine, found.cosine)


def _with(
    positions: StereographicPositions, nodes: Tensor, sine: Tensor, cosine: Tensor
) -> StereographicPositions:
    return StereographicPositions(
        positions.sine.index_copy(0, nodes, sine),
        positions.cosine.index_copy(0, nodes, cosine),
        positions.k,
    )


def _within(matrix: Csr, nodes: Tensor, hops: int) -> Tensor:
    reached = np.zeros(matrix.shape[0], dtype=bool)
    reached[nodes.numpy()] = True
    for _ in range(hops):
        reached |= (matrix @ reached.astype(np.float32)) > 0
    return torch.from_numpy(np.flatnonzero(reached))


def _induced(graph: "Data", nodes: Tensor) -> "Data":
    """Return the part of a graph between ``nodes`` ``(S,)``, with relative weights."""
    from gyroformer.graphs.pyg import Data

    place = torch.full((int(graph.num_nodes or 0),), -1)
    place[nodes] = torch.arange(nodes.numel())
    ends = place[graph.edge_index]
    kept = (ends >= 0).all(0)
    part = Data(edge_index=ends[:, kept], num_nodes=nodes.numel())
    if "edge_weight" in graph:
        part.edge_weight = relative_weights(graph)[kept]
    return part
