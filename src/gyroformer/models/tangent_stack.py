"""What the curved graph networks share: layers that hand on tangent vectors at the origin of their spaces."""

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gyroformer.errors import UsageError
from gyroformer.graphs.hops import Norm
from gyroformer.models.base import GraphModel
from gyroformer.models.stack import checked_share
from gyroformer.nn.curvature import HeadCurvature
from gyroformer.nn.features import NodeFeatures, unit_std
from gyroformer.nn.sparse import propagation
from gyroformer.ops.positions import Positions, StereographicPositions

if TYPE_CHECKING:
    from torch_geometric.data import Data


class CurvedLayer(nn.Module):
    """A layer that owns its curvatures.

    ``forward(u, matrix)`` takes and returns tangent vectors ``(N, dim)`` at the origin, all heads joined;
    ``matrix`` is the normalised adjacency matrix with self-loops, a sparse tensor whose entries are the edges.
    """

    space: HeadCurvature


class TangentStack(GraphModel):
    r"""Features to tangent vectors at the origin, then ``layers`` one after the other.

    A layer hands on :math:`\log_0` of its points, not the points: an exponential and the next layer's logarithm
    cancel, and near the ball's edge their float32 values would not. Subclasses fill ``layers`` with
    :class:`CurvedLayer`, and set ``decoder`` or write ``readout``. ``dropout=None`` stands for 0.5 with classes and
    0 without: what keeps a classifier from learning its few labels by heart only blurs places.
    """

    layers: nn.ModuleList
    #: the linear decoder, for a model with classes that does not override ``readout``
    decoder: nn.Linear | None
    #: normalisation of the adjacency matrix, ``"sym"`` or ``"row"``
    norm: Norm = "sym"
    #: length of a tangent vector of the model as one of the stereographic chart
    scale = 1.0

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.config = config
        if config["layers"] < 1:
            raise UsageError(f"layers must be at least 1, got {config['layers']}")
        given = config["dropout"]
        usual = 0.5 if config["classes"] else 0.0
        self.dropout = checked_share(usual if given is None else given, "dropout")
        # learned points start about 1/√|k| from the origin, where curvature can be felt in both directions
        self.features = NodeFeatures(
            config["in_features"],
            self.width,
            num_nodes=config["num_nodes"],
            bias=False,
            std=unit_std(self.width),
        )
        if self.features.linear is not None:
            nn.init.xavier_uniform_(self.features.linear.weight)

    @property
    def width(self) -> int:
        """Width of a tangent vector at the origin."""
        dim: int = self.config["dim"]
        return dim

    @property
    def heads(self) -> int:
        """Number of factors of the space."""
        return self.config.get("heads", 1)

    @property
    def curvatures(self) -> Tensor:
        """All curvatures, ``(layers, heads)``."""
        return torch.stack([space_of(layer).squeeze(-1) for layer in self.layers])

    @property
    def output_curvature(self) -> Tensor:
        """The curvatures of the space that the nodes end in, ``(heads, 1)``."""
        return space_of(self.layers[-1])

    def prepare(self, data: "Data") -> "Data":
        """Compute the normalised adjacency matrix once; it is kept as long as ``data.edge_index`` is."""
        self.matrix(data)
        return data

    def matrix(self, data: "Data") -> Tensor:
        """Return the normalised adjacency matrix of ``data`` with self-loops, sparse, in the model's format."""
        return propagation(data, norm=self.norm, dtype=next(self.parameters()).dtype)

    def tangent(self, data: "Data", x: Tensor | None = None, matrix: Tensor | None = None) -> Tensor:
        """Return the nodes as tangent vectors ``(N, dim)`` at the origin of the last layer's space."""
        matrix = self.matrix(data) if matrix is None else matrix
        x = data.x if x is None else x
        u = self.enter(self.features(int(data.num_nodes or 0), None if x is None else self.dropped(x)))
        for place, layer in enumerate(self.layers):
            u = layer(self.dropped(u) if place else u, matrix)
        return u

    def enter(self, u: Tensor) -> Tensor:
        """Return the first layer's input from the features' linear map; the map itself unless overridden."""
        return u

    def dropped(self, u: Tensor) -> Tensor:
        """Return ``u`` after dropout."""
        return F.dropout(u, self.dropout, self.training)

    def positions(self, data: "Data", x: Tensor | None = None) -> Positions:
        """Return where the nodes are in the last layer's space."""
        u = self.tangent(data, x).unflatten(-1, (self.heads, -1))
        return StereographicPositions.from_tangent(self.scale * u, self.output_curvature)

    def scores(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return class scores ``(N, classes)``."""
        if self.classes is None:
            raise UsageError("the model was built without classes: it gives positions, not scores")
        matrix = self.matrix(data)
        return self.readout(self.tangent(data, x, matrix), matrix)

    def readout(self, u: Tensor, matrix: Tensor) -> Tensor:
        """Return class scores from the last layer's tangent vectors; by ``decoder`` unless overridden."""
        assert self.decoder is not None
        return self.decoder(self.dropped(u))


def space_of(layer: nn.Module) -> Tensor:
    """Return the curvatures of a layer, ``(heads, 1)``."""
    assert isinstance(layer, CurvedLayer)
    return layer.space()
