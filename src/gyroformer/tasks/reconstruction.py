r"""Graph reconstruction: neighbours close, all others far.

.. math:: L = -\sum_{(u,v) \in E} \log \frac{e^{-d(u,v)^2}}{\sum_{w \notin N(u)} e^{-d(u,w)^2}}

over both directions of each edge. The sum runs over all nodes that are not neighbours of u, u itself among them:
without that term the loss has no lower bound. In other words

.. math:: L = \sum_{(u,v) \in E} d(u,v)^2 + \sum_u \deg(u) \log S_u .
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gyroformer.errors import DataError, UsageError
from gyroformer.models.base import GraphModel
from gyroformer.ops.neighbours import Neighbours
from gyroformer.tasks.average_precision import mean_average_precision

if TYPE_CHECKING:
    from torch_geometric.data import Data


class Reconstruction:
    """The task of placing a graph's nodes so that its edges can be read from the distances.

    Args:
        data: the graph.
        squared: whether the exponent holds the squared distance; the plain one trains worse.
        negatives: number of nodes drawn anew in each step to stand for all others, instead of all pairs.
        map_nodes: number of nodes over which the mean average precision is taken, drawn once; all by default.
        seed: of that draw.
    """

    name = "embed"

    def __init__(
        self,
        data: "Data",
        *,
        squared: bool = True,
        negatives: int | None = None,
        map_nodes: int | None = None,
        seed: int = 0,
    ) -> None:
        nodes = int(data.num_nodes or 0)
        self.data, self.squared, self.negatives = data, squared, negatives
        self.neighbours = Neighbours.of(data.edge_index, nodes)
        self.degree = self.neighbours.degree
        if not bool(self.degree.any()):
            raise DataError("the graph has no edge: there is nothing to reconstruct")
        if negatives is not None and not 0 < negatives <= nodes:
            raise UsageError(f"negatives must be from 1 to the number of nodes, {nodes}; got {negatives}")
        source = torch.repeat_interleave(torch.arange(nodes), self.degree)
        once = source < self.neighbours.indices
        self.source, self.target = source[once], self.neighbours.indices[once]
        self.map_nodes = _drawn(nodes, map_nodes, seed)

    def loss(self, model: GraphModel) -> Tensor:
        """Return the loss, summed over both directions of all edges."""
        positions = model.positions(self.data)
        distances = positions.pair_squared_dist(self.source, self.target)
        if not self.squared:
            # the square root has no derivative at 0, where two nodes coincide: it counts as 0
            apart = distances > 0
            distances = torch.where(apart, torch.where(apart, distances, 1.0).sqrt(), 0.0)
        columns = self._columns(len(positions))
        scale = 1.0 if columns is None else len(positions) / columns.numel()
        partition = positions.log_partition(
            self.neighbours, columns=columns, scale=scale, squared=self.squared
        )
        return 2 * distances.sum() + (self.degree * partition).sum()

    def evaluate(self, model: GraphModel) -> dict[str, float]:
        """Return the mean average precision in percent, on the graph itself."""
        positions = model.positions(self.data)
        found = mean_average_precision(positions.squared_dist_rows, self.neighbours, nodes=self.map_nodes)
        return {"map": 100 * found}

    def rank(self, metrics: Mapping[str, float]) -> tuple[float, ...]:
        """Return nothing: the last state counts, for there is no validation to choose by."""
        return ()

    def _columns(self, nodes: int) -> Tensor | None:
        if self.negatives is None or self.negatives == nodes:
            return None
        return torch.randperm(nodes)[: self.negatives].sort().values


def _drawn(nodes: int, count: int | None, seed: int) -> Tensor | None:
    if count is None or count >= nodes:
        return None
    generator = torch.Generator().manual_seed(seed)
    return torch.randperm(nodes, generator=generator)[:count].sort().values
