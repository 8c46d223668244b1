"""Distances of pairs of nodes in half-angle coordinates."""

import dataclasses as dc

import torch
from torch import Tensor

from gyroformer.geometry.trig import arsin_ratio
from gyroformer.graphs.adjacency import simple_adjacency


@dc.dataclass(frozen=True, slots=True)
class Neighbours:
    """The neighbours of each node of a simple undirected graph, row by row."""

    indptr: Tensor
    indices: Tensor

    @classmethod
    def of(cls, edge_index: Tensor, num_nodes: int) -> "Neighbours":
        """Return the neighbours in the graph behind ``edge_index``."""
        matrix = simple_adjacency(edge_index, num_nodes)
        return cls(torch.from_numpy(matrix.indptr).long(), torch.from_numpy(matrix.indices).long())

    @property
    def degree(self) -> Tensor:
        """Number of neighbours of each node."""
        return self.indptr.diff()


def _squared(sine_i, cosine_i, sine_j, cosine_j, k):
    t = cosine_j * sine_i - cosine_i * sine_j
    q = (t * t).sum(-1)
    ratio = arsin_ratio((k.reshape(-1) * q).clamp(max=1.0))
    return (4 * q * ratio * ratio).sum(-1)


def pair_squared_dist(sine, cosine, k, source, target):
    return _squared(sine[source], cosine[source], sine[target], cosine[target], k)


def squared_dist_rows(sine, cosine, k, rows, columns=None):
    if columns is not None:
        sine_c, cosine_c = sine[columns], cosine[columns]
    else:
        sine_c, cosine_c = sine, cosine
    return _squared(sine[rows].unsqueeze(1), cosine[rows].unsqueeze(1), sine_c, cosine_c, k)


def log_partition(sine, cosine, k, neighbours, *, columns=None, scale=1.0, squared=True, form="auto"):
    n = sine.size(0)
    d2 = squared_dist_rows(sine, cosine, k, torch.arange(n), columns)
    e = torch.exp(-(d2 if squared else (d2 + 1e-12).sqrt()))
    mask = torch.ones(n, n)
    u = torch.repeat_interleave(torch.arange(n), neighbours.degree)
    mask[u, neighbours.indices] = 0
    mask.fill_diagonal_(0)
    if columns is not None:
        mask = mask[:, columns]
    return torch.log1p(scale * (e * mask).sum(1))
