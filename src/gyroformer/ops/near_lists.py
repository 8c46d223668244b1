"""Lists of near nodes that follow points as they move: a renewal looks at a few hundred likely nodes, not at all.

A node that is near is likely to be near to what is near already. So the candidates of u are, beside its own list: nodes
that have u on theirs, nodes on the lists of nodes on its list, on the lists of its neighbours, neighbours of its
neighbours, neighbours of nodes on its list, and any nodes at all, so that no corner of the space stays unknown.
Neighbours are those along an edge and those against it: in a hierarchy, steps up and down, which lead to siblings. On a
graph of hardly more nodes than that, every node is a candidate, and the lists are exact.

The C++ form is in :mod:`gyroformer.ops.native.fused_near`, with draws of its own; the one here is torch, for any space.
"""

import dataclasses as dc
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from gyroformer.ops.neighbours import Neighbours

#: pairs at a time in torch
BLOCK_PAIRS = 1 << 18
#: behind every node
NO_NODE = 1 << 60
#: candidates that are drawn, in multiples of a list's length, and any nodes
LISTED_BY, NEAR_OF_NEAR, NEAR_OF_NEIGHBOURS, TWO_STEPS, NEIGHBOURS_OF_NEAR, ANY = 0.5, 2.0, 1.0, 1.0, 0.5, 16


class Draws(NamedTuple):
    """How many candidates of each kind a node has beside its list."""

    listed_by: int
    near_of_near: int
    near_of_neighbours: int
    two_steps: int
    neighbours_of_near: int
    any: int

    @classmethod
    def usual(cls, count: int, nodes: int) -> "Draws | None":
        """Return those for lists of ``count`` nodes; None where a look at all nodes costs no more."""
        shares = (LISTED_BY, NEAR_OF_NEAR, NEAR_OF_NEIGHBOURS, TWO_STEPS, NEIGHBOURS_OF_NEAR)
        found = cls._make([*(max(1, round(share * count)) for share in shares), ANY])
        return None if nodes <= count + sum(found) else found


def no_lists(nodes: int, count: int, device: torch.device | str = "cpu") -> Tensor:
    """Return an empty list for each node, int32 ``(N, count)``."""
    return torch.full((nodes, count), -1, dtype=torch.int32, device=device)


@torch.no_grad()
def renewed_lists(
    distances: Callable[[Tensor, Tensor], Tensor],
    lists: Tensor,
    neighbours: Neighbours,
    pull: Tensor | None,
    draws: Draws | None,
) -> Tensor:
    """Return of each node's candidates those with the least d² − pull, ascending by node, int32 ``(N, K)``.

    Neighbours are not listed; -1 stands where there are too few nodes. Draws from torch's generator.

    Args:
        distances: squared distances ``(M,)`` of pairs of nodes.
        lists: of nodes near each node before, int32 ``(N, K)``, -1 for none.
        neighbours: the graph.
        pull: a bias of nodes that makes them count as nearer, ``(N,)``.
        draws: how many candidates of each kind; None for all nodes.
    """
    if not lists.numel():
        return lists
    nodes = torch.arange(lists.shape[0], device=lists.device)
    found = [
        _nearest(distances, rows, some.sort(1).values, neighbours, lists.shape[1], pull)
        for rows, some in _candidates(nodes, lists, neighbours, draws)
    ]
    return torch.cat(found)


def _candidates(
    nodes: Tensor, lists: Tensor, neighbours: Neighbours, draws: Draws | None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield nodes ``(R,)`` with their candidates ``(R, C)``, block by block."""
    if draws is None:
        for rows in nodes.split(max(1, BLOCK_PAIRS // nodes.numel())):
            yield rows, nodes.expand(rows.numel(), -1)
        return
    draw = _Draw(lists.long(), neighbours)
    by = draw.listed_by(draws.listed_by)
    for rows in nodes.split(max(1, BLOCK_PAIRS // (lists.shape[1] + sum(draws)))):
        parts = (
            lists[rows].long(),
            by[rows],
            draw.near(draw.near(rows[:, None].expand(-1, draws.near_of_near))),
            draw.near(draw.neighbour(rows[:, None].expand(-1, draws.near_of_neighbours))),
            draw.neighbour(draw.neighbour(rows[:, None].expand(-1, draws.two_steps))),
            draw.neighbour(draw.near(rows[:, None].expand(-1, draws.neighbours_of_near))),
            torch.randint(nodes.numel(), (rows.numel(), draws.any)).to(rows.device),
        )
        yield rows, torch.cat(parts, 1)


@dc.dataclass(frozen=True, slots=True)
class _Draw:
    """Draws on the CPU on every device, so that a seed means the same draw everywhere."""

    lists: Tensor
    neighbours: Neighbours

    def near(self, nodes: Tensor) -> Tensor:
        """Return a node from the list of each node; the node itself for an empty place."""
        place = torch.randint(self.lists.shape[1], nodes.shape).to(nodes.device)
        found = self.lists[nodes, place]
        return torch.where(found < 0, nodes, found)

    def neighbour(self, nodes: Tensor) -> Tensor:
        """Return a neighbour of each node, along an edge or against it; the node itself if it has none."""
        if not self.neighbours.indices.numel():
            return nodes
        counts = [indptr[nodes + 1] - indptr[nodes] for indptr, _ in self._ways]
        share = torch.rand(nodes.shape, dtype=torch.float64).to(nodes.device)
        place, found = (share * sum(counts)).long(), nodes
        for (indptr, indices), count in zip(self._ways, counts, strict=True):
            at = (indptr[nodes] + place).clamp(0, indices.numel() - 1)
            found = torch.where((place >= 0) & (place < count), indices[at], found)
            place = place - count
        return found

    @property
    def _ways(self) -> list[tuple[Tensor, Tensor]]:
        """The edges from their first ends and, of a directed graph, from their second."""
        back = self.neighbours.back
        return [(self.neighbours.indptr, self.neighbours.indices), *([] if back is None else [back])]

    def listed_by(self, count: int) -> Tensor:
        """Return for each node some nodes that list it, ``(N, count)``, -1 for none."""
        nodes, length = self.lists.shape
        place = torch.randint(count, (nodes * length,)).to(self.lists.device)
        source = torch.arange(nodes, device=self.lists.device).repeat_interleave(length)
        target = self.lists.flatten()
        there = target >= 0
        found = torch.full((nodes * count,), -1, device=self.lists.device)
        # of several that fall to one place the last node stays, in whatever order they come
        found.scatter_reduce_(0, (target * count + place)[there], source[there], "amax")
        return found.view(nodes, count)


def _nearest(
    distances: Callable[[Tensor, Tensor], Tensor],
    rows: Tensor,
    some: Tensor,
    neighbours: Neighbours,
    count: int,
    pull: Tensor | None,
) -> Tensor:
    """Return the nearest of candidates ``(R, C)`` that ascend in each row."""
    wrong = (some < 0) | (some == rows[:, None]) | neighbours.contain(rows, some)
    wrong[:, 1:] |= some.diff(dim=1) == 0
    some = some.clamp(min=0)
    away = distances(rows.repeat_interleave(some.shape[1]), some.flatten()).view_as(some)
    away = (away if pull is None else away - pull[some]).masked_fill(wrong, torch.inf)
    # a stable order takes the first of equals, as the C++ form does
    order = away.argsort(dim=1, stable=True)[:, :count]
    best = some.gather(1, order).masked_fill(away.gather(1, order) == torch.inf, NO_NODE).sort(1).values
    best = torch.where(best == NO_NODE, -1, best).to(torch.int32)
    short = count - best.shape[1]
    return best if short <= 0 else torch.cat((best, best.new_full((len(best), short), -1)), 1)
