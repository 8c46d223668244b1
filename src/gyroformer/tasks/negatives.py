"""The nodes that a node is told from in the losses of ``embed``: all others, a sample, or near ones and a sample.

Each kind has ``log_partition(positions, squared=..., bias=...)``: the logarithm of the sum over them, ``(N,)``.
"""

from typing import Protocol

import torch
from torch import Tensor, nn

from gyroformer.errors import UsageError
from gyroformer.ops.native import build
from gyroformer.ops.near_field import NearField
from gyroformer.ops.near_lists import no_lists
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.positions import Positions

Bias = tuple[Tensor, Tensor] | None

#: least and most steps between two renewals of the lists
SOON, LATE = 2, 16
#: share of new entries above which a renewal came late, and below which it came early
MUCH, LITTLE = 0.3, 0.1
#: lists that are compared for that
COMPARED = 1000
#: nodes up to which the sum over all pairs is quick enough to be taken once, at the end; the second without a compiler
EXACT_ONCE = 100_000, 10_000


class Negatives(Protocol):
    """What a node is told from."""

    def log_partition(self, positions: Positions, *, squared: bool = True, bias: Bias = None) -> Tensor:
        """Return log(1 + Σ exp(a + b − d²)) for each node, ``(N,)``."""
        ...


class AllNegatives:
    """All nodes that are not left out."""

    def __init__(self, neighbours: Neighbours) -> None:
        self.neighbours = neighbours

    def log_partition(self, positions: Positions, *, squared: bool = True, bias: Bias = None) -> Tensor:
        """Return the exact logarithms."""
        return positions.log_partition(self.neighbours, squared=squared, bias=bias)


class SampledNegatives:
    """A number of nodes, drawn anew in each step, that stand for all."""

    def __init__(self, neighbours: Neighbours, count: int) -> None:
        self.neighbours, self.count = neighbours, count

    def log_partition(self, positions: Positions, *, squared: bool = True, bias: Bias = None) -> Tensor:
        """Return an estimate from a new draw."""
        nodes = len(positions)
        # drawn on the CPU on every device, so that a seed means the same draw everywhere
        columns = torch.randperm(nodes)[: self.count].sort().values.to(positions.device)
        scale = nodes / columns.numel()
        return positions.log_partition(
            self.neighbours, columns=columns, scale=scale, squared=squared, bias=bias
        )


class NearNegatives(nn.Module):
    """Nodes near to each node, listed, and drawn ones for all others (:mod:`gyroformer.ops.near_field`).

    The lists are renewed through training: soon where a renewal finds much that is new, else later. They are buffers,
    as is the step that they are due at: a checkpoint holds them.

    Args:
        neighbours: what each node leaves out.
        near: nodes on a list.
        far: nodes drawn for each node in each step, to stand for all that are not listed.
    """

    lists: Tensor
    #: steps done, the step of the next renewal, and steps between two
    course: Tensor

    def __init__(self, neighbours: Neighbours, *, near: int, far: int) -> None:
        super().__init__()
        nodes, device = neighbours.num_nodes, neighbours.indptr.device
        self.neighbours, self.reach = neighbours, (far + 1) // 2
        self.register_buffer("lists", no_lists(nodes, min(near, nodes - 1), device))
        self.register_buffer("course", torch.tensor([0, 0, SOON]))

    @property
    def share(self) -> float:
        """The share of all pairs that a step looks at."""
        others = max(1, self.neighbours.num_nodes - 1)
        return min(1.0, (self.lists.shape[1] + 2 * self.reach) / others)

    @property
    def exact_is_quick(self) -> bool:
        """Whether the sum over all pairs can be taken once."""
        return self.neighbours.num_nodes <= EXACT_ONCE[build.library() is None]

    def log_partition(self, positions: Positions, *, squared: bool = True, bias: Bias = None) -> Tensor:
        """Return an estimate from a new draw, as a step of training: it may renew the lists."""
        if self.training:
            step, due, wait = self.course.tolist()
            if step >= due:
                wait = self._renew(positions, bias, wait)
                due = step + wait
            self.course.copy_(torch.tensor([step + 1, due, wait]))
        field = NearField.drawn(self.neighbours, self.lists, self.reach)
        return positions.near_log_partition(field, squared=squared, bias=bias)

    def _renew(self, positions: Positions, bias: Bias, wait: int) -> int:
        """List the nodes that are near now, and return the steps to wait until the next time."""
        found = positions.renewed_lists(self.lists, self.neighbours, None if bias is None else bias[1])
        some = slice(None, None, max(1, len(found) // COMPARED))
        known = (found[some, :, None] == self.lists[some, None]).any(-1)
        new = 1 - float(known.float().mean())
        self.lists.copy_(found)
        return max(SOON, wait // 2) if new > MUCH else min(LATE, 2 * wait) if new < LITTLE else wait


def make_negatives(
    choice: int | str | None, neighbours: Neighbours, *, near: int, far: int
) -> AllNegatives | SampledNegatives | NearNegatives:
    """Return the negatives of a task: ``"near"``, a number of sampled ones, or None for all."""
    nodes = neighbours.num_nodes
    if choice == "near":
        return NearNegatives(neighbours, near=near, far=far)
    if choice is None or choice == nodes:
        return AllNegatives(neighbours)
    if not isinstance(choice, int) or not 0 < choice <= nodes:
        raise UsageError(f"negatives must be from 1 to the number of nodes, {nodes}; got {choice}")
    return SampledNegatives(neighbours, choice)
