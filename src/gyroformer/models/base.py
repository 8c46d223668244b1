"""What every graph model is: nodes to points of a space and, with classes, to scores.

The tasks, the training loop and the commands know models through this class only.
"""

from typing import TYPE_CHECKING, Any

from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.models.pretrained import Pretrained
from gyroformer.ops.positions import Positions

if TYPE_CHECKING:
    from torch_geometric.data import Data


class GraphModel(Pretrained):
    """A model on graphs, built as ``Model(in_features, *, dim, layers, classes, num_nodes, dropout, ...)``.

    A graph without features has ``in_features=0`` and ``num_nodes`` learned vectors. A model with ``classes``
    gives scores; without, it gives points. Subclasses set ``self.config = arguments(locals())`` first, and
    write ``positions``, ``scores`` and ``curvatures``.
    """

    @property
    def classes(self) -> int | None:
        """Number of classes, or None for a model that gives points."""
        return self.config["classes"]

    @property
    def curvatures(self) -> Tensor:
        """The curvatures ``(layers, heads)``, negative for hyperbolic; empty for a model that has none."""
        raise NotImplementedError

    def prepare(self, data: "Data") -> "Data":
        """Compute once for ``data`` what every pass needs, store it in ``data``, and return it."""
        return data

    def positions(self, data: "Data", x: Tensor | None = None) -> Positions:
        """Return where the nodes are; ``x`` replaces the graph's features."""
        raise NotImplementedError

    def scores(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return class scores ``(N, classes)``; ``x`` replaces the graph's features."""
        raise NotImplementedError

    def forward(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return class scores if the model has classes, else the nodes' coordinates ``(N, heads, d)``."""
        return self.positions(data, x).coordinates() if self.classes is None else self.scores(data, x)


def arguments(scope: dict[str, Any]) -> dict[str, Any]:
    """Return a constructor's arguments, from its ``locals()``, as plain values for ``config.json``."""
    config = {key: value for key, value in scope.items() if key not in ("self", "__class__")}
    if config["classes"] is not None and config["classes"] < 2:
        raise UsageError(f"classes must be at least 2 (or None for points), got {config['classes']}")
    return config
