"""What every graph model is: nodes to points of a space and, with classes, to scores.

The tasks, the training loop and the commands know models through this class only.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.models.pretrained import Pretrained
from gyroformer.ops.positions import Positions
from gyroformer.options import as_plain
from gyroformer.options.models import GraphModelOptions

if TYPE_CHECKING:
    from torch_geometric.data import Data


class GraphModel(Pretrained):
    """A model on graphs, built as ``Model(in_features, dim=16, classes=7, …)`` from declared options.

    A graph without features has ``in_features=0`` and ``num_nodes`` learned vectors. Subclasses write ``positions``,
    ``class_scores`` and ``curvatures``.
    """

    def __init__(self, options: GraphModelOptions) -> None:
        super().__init__()
        self.options = options

    @property
    def config(self) -> dict[str, Any]:
        """All options as plain values, as ``config.json`` has them."""
        return as_plain(self.options)

    @property
    def classes(self) -> int | None:
        """Number of classes, or None for a model that gives points."""
        return self.options.classes

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the parameters."""
        return next(self.parameters()).dtype

    @property
    def curvatures(self) -> Tensor:
        """The curvatures ``(layers, heads)``, negative for hyperbolic; empty for a model that has none."""
        raise NotImplementedError

    @property
    def reads_weights(self) -> bool:
        """Whether ``data.edge_weight`` has an effect on what it computes."""
        return True

    @property
    def reads_direction(self) -> bool:
        """Whether the direction of edges has an effect on what it computes."""
        return False

    def prepare(self, data: "Data") -> "Data":
        """Compute once what every pass on ``data`` needs, and return the graph with it; ``data`` stays as it is."""
        return data

    def start_at(self, vectors: Tensor) -> None:
        """Put the nodes of a new model at tangent vectors ``(N, dim)`` at the origin of its space."""
        raise UsageError(
            f"the model {self.name} cannot start its nodes at given places: use fpst, tokengt or points, on a graph "
            "without features"
        )

    def positions(self, data: "Data", x: Tensor | None = None) -> Positions:
        """Return where the nodes are; ``x`` replaces the graph's features."""
        raise NotImplementedError

    def class_scores(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return class scores ``(N, classes)`` of a model that has classes; ``x`` replaces the graph's features."""
        raise NotImplementedError

    def scores(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return class scores ``(N, classes)``; ``x`` replaces the graph's features."""
        if self.classes is None:
            raise UsageError("the model was built without classes: it gives positions, not scores")
        return self.class_scores(data, x)

    def points(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return the nodes as points of the space that ``positions`` is in, ``(N, heads, d)``."""
        return self.positions(data, x).points()

    def forward(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return class scores if the model has classes, else the nodes' points; ``x`` replaces the features."""
        return self.points(data, x) if self.classes is None else self.scores(data, x)
