"""The nodes that each node leaves out of the sums over pairs, as flat arrays: its neighbours, or its ancestors."""

import dataclasses as dc
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.graphs.adjacency import simple_adjacency


@dc.dataclass(frozen=True, eq=False, slots=True)
class Neighbours:
    """A simple graph: node u's neighbours are ``indices[indptr[u]:indptr[u + 1]]``.

    Args:
        indptr: int64 ``(N + 1,)``.
        indices: int64 ``(E,)``, ascending for each node, without u itself.
        back: the same two arrays of the reversed graph, for a directed one; None for an undirected one, which lists v
            under u as it lists u under v.
    """

    indptr: Tensor
    indices: Tensor
    back: tuple[Tensor, Tensor] | None = None

    def __post_init__(self) -> None:
        for name in ("indptr", "indices"):
            tensor = getattr(self, name)
            if tensor.dtype != torch.int64 or tensor.dim() != 1:
                raise UsageError(
                    f"neighbours: {name} must be a vector of int64, got {tensor.dtype} {tuple(tensor.shape)}"
                )
        counts = self.indptr.diff()
        total = self.indices.numel()
        if self.indptr.numel() < 2 or self.indptr[0] != 0 or self.indptr[-1] != total or (counts < 0).any():
            raise UsageError(f"neighbours: indptr must rise from 0 to the number of indices, {total}")
        nodes, source = self.num_nodes, self.source
        if total and (self.indices.min() < 0 or self.indices.max() >= nodes):
            raise UsageError(f"neighbours: indices must name nodes from 0 to {nodes - 1}")
        if (source == self.indices).any():
            raise UsageError("neighbours: a node is listed as its own neighbour")
        entry = source * nodes + self.indices
        if (entry.diff() <= 0).any():
            raise UsageError("neighbours: indices must ascend for each node, each neighbour once")
        turned = (self.indices * nodes + source).sort().values
        if self.back is not None:
            if not torch.equal(turned, _entries(*self.back)):
                raise UsageError("neighbours: back must list the same edges from their other ends")
        elif not torch.equal(entry, turned):
            raise UsageError(
                "neighbours: the graph must be undirected (Neighbours.of() makes it so) or come with its reverse"
            )

    @classmethod
    def of(cls, edge_index: Tensor | NDArray[Any], num_nodes: int) -> "Neighbours":
        """Return the neighbours in the simple undirected graph behind ``edge_index`` ``(2, E)``.

        Directions, repetitions and self-loops are dropped. The result is on the device of ``edge_index``.
        """
        adjacency = simple_adjacency(edge_index, num_nodes)
        found = cls(
            torch.from_numpy(adjacency.indptr).to(torch.int64),
            torch.from_numpy(adjacency.indices).to(torch.int64),
        )
        return found.to(edge_index.device) if isinstance(edge_index, Tensor) else found

    @classmethod
    def directed(cls, edge_index: Tensor | NDArray[Any], num_nodes: int) -> "Neighbours":
        """Return for each node the nodes that its edges in ``edge_index`` ``(2, E)`` lead to.

        Repetitions and self-loops are dropped. The result is on the device of ``edge_index``.
        """
        pairs = torch.as_tensor(edge_index)
        source, target = pairs[:, pairs[0] != pairs[1]]
        forward, backward = (
            _lists(first * num_nodes + second, num_nodes)
            for first, second in ((source, target), (target, source))
        )
        return cls(*forward, back=backward)

    @property
    def num_nodes(self) -> int:
        """Number of nodes N."""
        return self.indptr.numel() - 1

    @property
    def degree(self) -> Tensor:
        """Number of neighbours of each node, int64 ``(N,)``."""
        return self.indptr.diff()

    @property
    def lists(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """``indptr`` and ``indices``, then those of the reversed graph."""
        return (self.indptr, self.indices, *(self.back or (self.indptr, self.indices)))

    @property
    def source(self) -> Tensor:
        """The node under which each entry of ``indices`` stands, int64 ``(E,)``: with it all directed edges."""
        nodes = torch.arange(self.num_nodes, device=self.indptr.device)
        return nodes.repeat_interleave(self.degree)

    def to(self, device: torch.device | str) -> "Neighbours":
        """Return the same graph on another device."""
        moved = object.__new__(Neighbours)  # a checked graph need not be checked again
        object.__setattr__(moved, "indptr", self.indptr.to(device))
        object.__setattr__(moved, "indices", self.indices.to(device))
        back = None if self.back is None else (self.back[0].to(device), self.back[1].to(device))
        object.__setattr__(moved, "back", back)
        return moved

    def adjacent(self, rows: Tensor) -> Tensor:
        """Return which nodes are adjacent to each of ``rows`` ``(R,)``, bool ``(R, N)``."""
        start, count = self.indptr[rows], self.degree[rows]
        line = torch.arange(rows.numel(), device=rows.device).repeat_interleave(count)
        # the indices of all the rows' entries: each row's start, then on by one
        first = count.cumsum(0) - count
        entry = torch.arange(line.numel(), device=rows.device) + (start - first).repeat_interleave(count)
        found = torch.zeros(rows.numel(), self.num_nodes, dtype=torch.bool, device=rows.device)
        found[line, self.indices[entry]] = True
        return found

    def contain(self, rows: Tensor, others: Tensor) -> Tensor:
        """Return which of ``others`` ``(R, C)`` are adjacent to their node of ``rows`` ``(R,)``, bool ``(R, C)``."""
        if not self.indices.numel():
            return torch.zeros_like(others, dtype=torch.bool)
        low, high = (self.indptr[rows + i][:, None].expand_as(others) for i in (0, 1))
        end = high
        for _ in range(int(self.degree.max()).bit_length()):  # halve what is left of each list
            middle = (low + high) // 2
            below = (low < high) & (self.indices[middle.clamp(max=self.indices.numel() - 1)] < others)
            low, high = torch.where(below, middle + 1, low), torch.where(below, high, middle)
        return (low < end) & (self.indices[low.clamp(max=self.indices.numel() - 1)] == others)


def _lists(entries: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Return indptr and indices of edges coded as u · N + v."""
    entries = entries.unique()
    indptr = torch.zeros(num_nodes + 1, dtype=torch.int64, device=entries.device)
    indptr[1:] = torch.bincount(entries // num_nodes, minlength=num_nodes).cumsum(0)
    return indptr, entries % num_nodes


def _entries(indptr: Tensor, indices: Tensor) -> Tensor:
    """Return the edges of two such arrays, coded as u · N + v."""
    nodes = indptr.numel() - 1
    return torch.arange(nodes, device=indptr.device).repeat_interleave(indptr.diff()) * nodes + indices
