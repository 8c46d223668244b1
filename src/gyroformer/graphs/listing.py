"""What every reader returns: the edges as listed, before anything is dropped."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gyroformer.graphs.build import graph_from_edges

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(slots=True)
class Listing:
    """Listed edges between numbered nodes.

    Attributes:
        source: number of each edge's first node.
        target: number of each edge's second node.
        ids: the nodes' names; their places are the numbers.
        weight: one number for each edge, or None.
        x: node features, or None.
        y: node labels, or None.
        label_names: the names of the classes that ``y`` numbers, if they had names.
        symmetric: whether each edge stands for both directions (a symmetric matrix lists one half).
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    ids: Sequence[int | str]
    weight: np.ndarray | None = None
    x: object = None
    y: object = None
    label_names: list[str] | None = None
    symmetric: bool = False

    def graph(self, *, directed: bool) -> "Data":
        """Return the clean graph."""
        source, target, weight = self.source, self.target, self.weight
        if directed and self.symmetric:
            apart = source != target
            source, target = np.concatenate([source, target[apart]]), np.concatenate([target, source[apart]])
            weight = None if weight is None else np.concatenate([weight, weight[apart]])
        data = graph_from_edges(
            source,
            target,
            num_nodes=len(self.ids),
            ids=self.ids,
            weight=weight,
            x=self.x,
            y=self.y,
            directed=directed,
        )
        if self.label_names is not None:
            data.label_names = self.label_names
        return data
