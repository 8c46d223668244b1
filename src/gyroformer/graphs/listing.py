"""What every reader returns: the edges as listed, before anything is dropped."""

import dataclasses as dc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from gyroformer.errors import DataError, in_file
from gyroformer.graphs.build import checked_ends, graph_from_edges

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(slots=True)
class Listing:
    """Listed edges between numbered nodes, and what is known of the nodes.

    Attributes:
        source: index of each edge's first node.
        target: index of each edge's second node.
        ids: the nodes' names, by index.
        weight: one number for each edge, or None.
        x: node features, one row a node, or None; an array or a scipy sparse matrix.
        y: node labels, or None.
        label_names: the names of the classes that ``y`` numbers, if they had names.
        symmetric: whether each edge stands for both directions (a symmetric matrix lists one half).
        masks: the nodes ``train``, ``val`` and ``test`` of the split that comes with the graph, or None.
        header: the names of the columns that ends and weights were read from, where they had names.
        unused: the names of the other columns.
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    ids: Sequence[int | str] | NDArray[np.int64]
    weight: np.ndarray | None = None
    x: Any = None
    y: np.ndarray | None = None
    label_names: list[str] | None = None
    symmetric: bool = False
    masks: dict[str, NDArray[np.bool_]] | None = None
    header: tuple[str, ...] | None = None
    unused: tuple[str, ...] = ()

    def checked(self, path: Path) -> Self:
        """Return itself; if an edge, the features or the labels do not fit the nodes, say so of ``path``."""
        nodes = len(self.ids)
        with in_file(path):
            checked_ends(self.source, self.target, nodes)
            for name, part in (("features", self.x), ("labels", self.y)):
                if part is not None and part.shape[:1] != (nodes,):
                    raise DataError(f"{name} of shape {part.shape} for {nodes} nodes")
        return self

    def without_header(self) -> Self:
        """Return itself without the names of columns, which nobody chose."""
        self.header, self.unused = None, ()
        return self

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
        if self.header is not None:
            data.summary = dc.replace(data.summary, header=self.header, unused=self.unused)
        if self.label_names is not None:
            data.label_names = self.label_names
        for part, mask in (self.masks or {}).items():
            data[f"{part}_mask"] = torch.from_numpy(mask)
        return data
