r"""The sum over non-neighbours from near lists and a random rest: the loss of a large graph at near-linear cost.

.. math:: S_u = 1 + \sum_{v \in L_u} e^{a_u + b_v - d(u, v)^2}
              + \frac{N - 1}{|F_u|} \sum_{v \in F_u,\ v \notin L_u,\ v \not\sim u} e^{a_u + b_v - d(u, v)^2}

:math:`L_u` lists nodes near u, none of them a neighbour; :math:`F_u` is drawn anew for each sum, every other node with
the same probability :math:`|F_u|/(N - 1)`. So the last term is an unbiased estimate of what the lists leave out, and
the more of the sum is near, the smaller its variance. Lists that hold all non-neighbours make the sum exact.

The draw is a random ring: a permutation of the nodes, in which :math:`F_u` are the ``reach`` nodes on either side of u.
Each node then comes in as many sums as every other, each pair of a ring serves both of its ends, and the points of a
pair lie side by side in memory.

The C++ form of the sum is in :mod:`gyroformer.ops.native.fused_near`; the one here is torch, by blocks of rows, for any
space.
"""

import dataclasses as dc
from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from gyroformer.errors import UsageError
from gyroformer.geometry.trig import safe_sqrt
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.pair_blocks import HIGH
from gyroformer.processes.tensors import gathered, share

#: pairs at a time in torch
BLOCK_PAIRS = 1 << 18

Bias = tuple[Tensor, Tensor] | None
#: from sources ``(M,)`` and targets ``(M,)`` to squared distances ``(M,)``
PairDistances = Callable[[Tensor, Tensor], Tensor]


@dc.dataclass(frozen=True, eq=False, slots=True)
class NearField:
    """What is summed.

    Args:
        neighbours: the graph: what a node leaves out.
        near: nodes near each node, int32 ``(N, K)``, -1 for none; not the node itself, no neighbour, none twice.
        ring: a permutation of the nodes, int64 ``(N,)``.
        reach: nodes on either side of a node in the ring that stand for all that are not near; 0 for none.
    """

    neighbours: Neighbours
    near: Tensor
    ring: Tensor
    reach: int

    def __post_init__(self) -> None:
        nodes = self.neighbours.num_nodes
        if self.near.dtype != torch.int32 or self.near.dim() != 2 or self.near.shape[0] != nodes:
            raise UsageError(
                f"near must be an int32 matrix of {nodes} rows, got {self.near.dtype} {tuple(self.near.shape)}"
            )
        if self.ring.dtype != torch.int64 or self.ring.shape != (nodes,):
            raise UsageError(
                f"ring must be a permutation of {nodes} nodes in int64, got {self.ring.dtype} "
                f"{tuple(self.ring.shape)}"
            )
        if not 0 <= self.reach <= most_reach(nodes):
            raise UsageError(
                f"reach must be from 0 to {most_reach(nodes)} in a ring of {nodes}, got {self.reach}"
            )

    @classmethod
    def drawn(cls, neighbours: Neighbours, near: Tensor, reach: int) -> "NearField":
        """Return the field of a new ring, drawn from torch's generator of the CPU whatever the device."""
        nodes = neighbours.num_nodes
        return cls(neighbours, near, torch.randperm(nodes).to(near.device), min(reach, most_reach(nodes)))

    @property
    def scale(self) -> float:
        """What a far term counts."""
        return (self.neighbours.num_nodes - 1) / (2 * self.reach) if self.reach else 0.0


def most_reach(nodes: int) -> int:
    """Return how far a sum may reach in a ring: no node comes from both sides."""
    return (nodes - 1) // 2


def near_log_partition(
    distances: PairDistances, field: NearField, *, squared: bool = True, bias: Bias = None
) -> Tensor:
    """Return log S ``(N,)`` in torch, by blocks of rows whose backward pass computes them again.

    Args:
        distances: squared distances of pairs of nodes.
        field: what is summed.
        squared: False for plain distances in the exponent.
        bias: a and b, ``(N,)`` each; none by default.
    """
    nodes, device = field.neighbours.num_nodes, field.near.device
    place = torch.empty_like(field.ring)
    place[field.ring] = torch.arange(nodes, device=device)
    step = torch.arange(1, field.reach + 1, device=device)
    steps = torch.cat((-step, step))

    def sums(rows: Tensor) -> Tensor:
        near = field.near[rows].long()
        far = field.ring[(place[rows, None] + steps) % nodes]
        twice = (far[:, :, None] == near[:, None]).any(-1) | field.neighbours.contain(rows, far)
        weight = torch.cat(((near >= 0).float(), (~twice) * field.scale), 1)
        others = torch.cat((near.clamp(min=0), far), 1)
        square = distances(rows.repeat_interleave(others.shape[1]), others.flatten()).view_as(others)
        exponent = -square if squared else -safe_sqrt(square)
        if bias is not None:
            exponent = (exponent + bias[0][rows, None] + bias[1][others]).clamp(max=HIGH)
        return (weight.to(square.dtype) * exponent.exp()).sum(1)

    width = field.near.shape[1] + 2 * field.reach
    # of several processes each takes some rows
    blocks = torch.arange(nodes, device=device)[share(nodes)].split(max(1, BLOCK_PAIRS // max(1, width)))
    found = torch.cat([checkpoint(sums, rows, use_reentrant=False) for rows in blocks])
    return torch.log1p(gathered(found, nodes))
