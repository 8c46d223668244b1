r"""The pairs of nodes that no edge joins, by their number, without a list of them.

The pair u < v has the number :math:`p = v(v-1)/2 + u` among all :math:`N(N-1)/2`; where the direction counts, the pair
from u to v has the number :math:`p = u(N-1) + v - [v > u]` among all :math:`N(N-1)`. If :math:`e_0 < e_1 < \ldots` are
the numbers of the edges, then :math:`e_i - i` non-edges come before :math:`e_i`; so the non-edge of rank j is pair
number j plus the number of i with :math:`e_i - i \le j`. A uniform draw of ranks is a uniform draw of non-edges, with
nothing to reject, in a graph of any density.
"""

import dataclasses as dc
from typing import Self

import numpy as np
import torch
from torch import Tensor

from gyroformer.graphs.adjacency import checked_edges, simple_adjacency, upper_edges


@dc.dataclass(frozen=True, slots=True)
class PairNumbers:
    """The numbers of pairs of distinct nodes.

    Attributes:
        nodes: number of nodes N.
        directed: whether the pair from u to v is another than that from v to u.
    """

    nodes: int
    directed: bool = False

    @property
    def count(self) -> int:
        """How many pairs there are."""
        ordered = self.nodes * (self.nodes - 1)
        return ordered if self.directed else ordered // 2

    def of(self, pairs: Tensor) -> Tensor:
        """Return the numbers ``(M,)`` of pairs ``(2, M)``; undirected, whichever end comes first."""
        if not self.directed:
            return pair_numbers(pairs)
        source, target = pairs
        return source * (self.nodes - 1) + target - (target > source).long()

    def pairs(self, numbers: Tensor) -> Tensor:
        """Return the pairs ``(2, M)`` that have these numbers; undirected with ``u < v``."""
        if not self.directed:
            return pairs_of(numbers)
        source, target = numbers // (self.nodes - 1), numbers % (self.nodes - 1)
        return torch.stack((source, target + (target >= source).long()))


class NonEdges:
    """The pairs of distinct nodes that are not joined: ``u < v``, or from u to v in a directed graph.

    Args:
        edges: ``(2, E)``, each edge once, in any order; no self-loop.
        num_nodes: number of nodes.
        directed: whether edges join in their direction only.
    """

    def __init__(self, edges: Tensor, num_nodes: int, *, directed: bool = False) -> None:
        self._numbers = PairNumbers(num_nodes, directed)
        numbers = self._numbers.of(edges).unique()
        self._before = numbers - torch.arange(numbers.numel(), device=numbers.device)
        self.count = self._numbers.count - numbers.numel()

    @classmethod
    def of(cls, edge_index: Tensor, num_nodes: int) -> Self:
        """Return the non-edges of the simple undirected graph behind ``edge_index``, on its device."""
        return cls(undirected_edges(edge_index, num_nodes).to(edge_index.device), num_nodes)

    def __len__(self) -> int:
        return self.count

    def at(self, ranks: Tensor) -> Tensor:
        """Return the non-edges ``(2, M)`` whose ranks, from 0 to ``count - 1``, are given."""
        return self._numbers.pairs(ranks + torch.searchsorted(self._before, ranks, right=True))

    def draw(self, count: int) -> Tensor:
        """Return ``count`` non-edges ``(2, count)`` drawn with replacement by torch's global generator."""
        # drawn on the CPU on every device, so that a seed means the same draw everywhere
        return self.at(torch.randint(self.count, (count,)).to(self._before.device))


def undirected_edges(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Return each edge of the simple undirected graph once, ``(2, E)`` with ``u < v``, sorted, on the CPU."""
    return torch.from_numpy(np.stack(upper_edges(simple_adjacency(edge_index, num_nodes))))


def directed_edges(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Return each edge of the simple directed graph once, ``(2, E)``, sorted, on the CPU."""
    edges = torch.from_numpy(checked_edges(edge_index, num_nodes))
    proper = edges[:, edges[0] != edges[1]]
    numbers = (proper[0] * num_nodes + proper[1]).unique()
    return torch.stack((numbers // num_nodes, numbers % num_nodes))


def pair_numbers(pairs: Tensor) -> Tensor:
    r"""Return the numbers :math:`v(v-1)/2 + u` of pairs ``(2, M)``, whichever end comes first."""
    low, high = pairs.amin(0), pairs.amax(0)
    return high * (high - 1) // 2 + low


def pairs_of(numbers: Tensor) -> Tensor:
    """Return the pairs ``(2, M)``, ``u < v``, that have these numbers."""
    high = ((1 + (1 + 8 * numbers.double()).sqrt()) / 2).long()
    # the root is rounded: beyond 2**52 it can miss by one either way
    high = torch.where(high * (high - 1) // 2 > numbers, high - 1, high)
    high = torch.where(high * (high + 1) // 2 <= numbers, high + 1, high)
    return torch.stack((numbers - high * (high - 1) // 2, high))
