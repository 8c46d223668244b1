r"""The pairs of nodes that no edge joins, by their number, without a list of them.

The pair u < v has the number :math:`p = v(v-1)/2 + u` among all :math:`N(N-1)/2`. If :math:`e_0 < e_1 < \ldots` are
the numbers of the edges, then :math:`e_i - i` non-edges come before :math:`e_i`; so the non-edge of rank j is pair
number j plus the number of i with :math:`e_i - i \le j`. A uniform draw of ranks is a uniform draw of non-edges, with
nothing to reject, in a graph of any density.
"""

from typing import Self

import numpy as np
import torch
from torch import Tensor

from gyroformer.graphs.adjacency import simple_adjacency, upper_edges


class NonEdges:
    """The pairs ``u < v`` of distinct nodes that are not joined.

    Args:
        edges: ``(2, E)``, each undirected edge once, in any order; no self-loop.
        num_nodes: number of nodes.
    """

    def __init__(self, edges: Tensor, num_nodes: int) -> None:
        numbers = pair_numbers(edges).unique()
        self._before = numbers - torch.arange(numbers.numel(), device=numbers.device)
        self.count = num_nodes * (num_nodes - 1) // 2 - numbers.numel()

    @classmethod
    def of(cls, edge_index: Tensor, num_nodes: int) -> Self:
        """Return the non-edges of the simple undirected graph behind ``edge_index``, on its device."""
        return cls(undirected_edges(edge_index, num_nodes).to(edge_index.device), num_nodes)

    def __len__(self) -> int:
        return self.count

    def at(self, ranks: Tensor) -> Tensor:
        """Return the non-edges ``(2, M)`` whose ranks, from 0 to ``count - 1``, are given."""
        return pairs_of(ranks + torch.searchsorted(self._before, ranks, right=True))

    def draw(self, count: int) -> Tensor:
        """Return ``count`` non-edges ``(2, count)`` drawn with replacement by torch's global generator."""
        # drawn on the CPU on every device, so that a seed means the same draw everywhere
        return self.at(torch.randint(self.count, (count,)).to(self._before.device))


def undirected_edges(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Return each edge of the simple undirected graph once, ``(2, E)`` with ``u < v``, sorted, on the CPU."""
    return torch.from_numpy(np.stack(upper_edges(simple_adjacency(edge_index, num_nodes))))


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
