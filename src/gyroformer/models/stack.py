"""What the graph networks share: layers one after the other, flat or curved."""

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from gyroformer.models.base import GraphModel
from gyroformer.nn.curvature import HeadCurvature
from gyroformer.nn.dropout import dropout
from gyroformer.nn.features import NodeFeatures, NodeInput, unit_std
from gyroformer.nn.sparse import as_sparse_rows, propagation
from gyroformer.nn.tangent import ACTIVATIONS
from gyroformer.ops.positions import Positions, StereographicPositions
from gyroformer.options.features import Norm
from gyroformer.options.models import ActiveOptions, NetworkOptions, NodeModelOptions

if TYPE_CHECKING:
    from torch_geometric.data import Data


class Network(GraphModel):
    """A model on nodes: dropout before each of its layers."""

    def __init__(self, options: NodeModelOptions) -> None:
        super().__init__(options)
        self.dropout = options.used_dropout

    def dropped(self, u: Tensor) -> Tensor:
        """Return ``u`` after dropout."""
        return dropout(u, self.dropout, self.training)


def layer_activation(options: ActiveOptions, index: int) -> Callable[[Tensor], Tensor]:
    """Return the activation of the layer ``index``: none after the last of a model without classes.

    A rectifier there would confine the points to one orthant, and any bounded activation to a ball.
    """
    last = options.classes is None and index + 1 == options.layers
    return nn.Identity() if last else ACTIVATIONS[options.activation]


class LayeredModel(Network):
    """A network whose first layer takes the features as they are, or learned vectors of width ``dim``.

    That layer begins with a linear map: features that are nearly all zero come as sparse rows.
    """

    def __init__(self, options: NetworkOptions) -> None:
        super().__init__(options)
        self.input = NodeInput(options.in_features, options.dim, num_nodes=options.num_nodes)

    def input_vectors(self, data: "Data", x: Tensor | None) -> Tensor:
        """Return the first layer's input ``(N, in_features)``, or the table ``(N, dim)``, after dropout."""
        x = data.x if x is None else x
        return self.dropped(self.input(int(data.num_nodes or 0), x))


class FlatModel(LayeredModel):
    """A model whose nodes are vectors: class scores if it has classes, else points of a flat space.

    Subclasses write ``vectors``.
    """

    options: NetworkOptions

    @property
    def width(self) -> int:
        """Width of the result: the classes, or ``dim``."""
        return self.classes or self.options.dim

    @property
    def curvatures(self) -> Tensor:
        """Empty, ``(0, 0)``: the space is flat and stays so."""
        return next(self.parameters()).new_zeros(0, 0)

    def vectors(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return the last layer's vectors ``(N, width)``."""
        raise NotImplementedError

    def positions(self, data: "Data", x: Tensor | None = None) -> StereographicPositions:
        """Return the last layer's vectors as points of a flat space."""
        return StereographicPositions.flat(self.vectors(data, x))

    def class_scores(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return class scores ``(N, classes)``, the last layer's vectors."""
        return self.vectors(data, x)


class ConvolutionStack(FlatModel):
    r"""Layers :math:`h \leftarrow \sigma(\mathrm{conv}(\mathrm{dropout}(h)))`, the last without :math:`\sigma`.

    Subclasses write ``convolution``, which makes one layer, and ``graph``, what a layer takes beside h.
    """

    def __init__(self, options: ActiveOptions) -> None:
        super().__init__(options)
        self.activation: Callable[[Tensor], Tensor] = ACTIVATIONS[options.activation]
        inner = [options.dim] * (options.layers - 1)
        widths = [self.input.width, *inner, self.width]
        self.layers = nn.ModuleList(
            self.convolution(before, after, last=index == len(inner))
            for index, (before, after) in enumerate(itertools.pairwise(widths))
        )

    def convolution(self, before: int, after: int, *, last: bool) -> nn.Module:
        """Return a layer from width ``before`` to width ``after``."""
        raise NotImplementedError

    def graph(self, data: "Data") -> tuple[Tensor, ...]:
        """Return what every layer takes beside the vectors, in the model's dtype."""
        raise NotImplementedError

    def prepare(self, data: "Data") -> "Data":
        """Compute what the layers take of the graph, once: it is kept as long as ``data.edge_index`` is."""
        self.graph(data)
        return data

    def vectors(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return the last layer's vectors ``(N, width)``."""
        graph = self.graph(data)
        h = self.input_vectors(data, x)
        for index, layer in enumerate(self.layers):
            if index:
                h = self.dropped(self.activation(h))
            h = layer(h, *graph)
        return h


class CurvedLayer(nn.Module):
    """A layer that owns its curvatures.

    ``forward(u, matrix)`` takes and returns tangent vectors ``(N, dim)`` at the origin, all heads joined;
    ``matrix`` is the normalised adjacency matrix with self-loops, a sparse tensor whose entries are the edges.
    """

    space: HeadCurvature


class TangentStack(Network):
    r"""Features to tangent vectors at the origin, then ``layers`` one after the other.

    A layer hands on :math:`\log_0` of its points, not the points: an exponential and the next layer's logarithm
    cancel, and near the ball's edge their float32 values would not. Subclasses fill ``layers`` with
    :class:`CurvedLayer`, and set ``decoder`` or write ``readout``.
    """

    options: NetworkOptions
    layers: nn.ModuleList
    #: the linear decoder, for a model with classes that does not override ``readout``
    decoder: nn.Linear | None
    #: normalisation of the adjacency matrix
    norm: Norm = "sym"
    #: length of a tangent vector of the model as one of the stereographic chart
    scale = 1.0
    #: coordinates of a point that a tangent vector does not have
    extra_coordinates = 0

    def __init__(self, options: NetworkOptions) -> None:
        super().__init__(options)
        #: width of a tangent vector at the origin
        self.width = options.dim - self.extra_coordinates
        #: number of factors of the space
        self.heads: int = getattr(options, "heads", 1)
        # learned points start about 1/√|k| from the origin, where curvature can be felt in both directions
        self.features = NodeFeatures(
            options.in_features,
            self.width,
            num_nodes=options.num_nodes,
            bias=False,
            dropout=self.dropout,
            std=unit_std(self.width),
        )
        if self.features.linear is not None:
            nn.init.xavier_uniform_(self.features.linear.weight)

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
        """Return the normalised adjacency matrix of ``data`` with self-loops, sparse, in the model's dtype."""
        return propagation(data, norm=self.norm, dtype=self.dtype)

    def tangent(self, data: "Data", x: Tensor | None = None, matrix: Tensor | None = None) -> Tensor:
        """Return the nodes as tangent vectors ``(N, dim)`` at the origin of the last layer's space."""
        matrix = self.matrix(data) if matrix is None else matrix
        x = data.x if x is None else x
        u = self.enter(self.features(int(data.num_nodes or 0), x))
        for index, layer in enumerate(self.layers):
            u = layer(self.dropped(u) if index else u, matrix)
        return u

    def enter(self, u: Tensor) -> Tensor:
        """Return the first layer's input from the features' linear map; the map itself unless overridden."""
        return u

    def positions(self, data: "Data", x: Tensor | None = None) -> Positions:
        """Return where the nodes are in the last layer's space."""
        u = self.tangent(data, x).unflatten(-1, (self.heads, -1))
        return StereographicPositions.from_tangent(self.scale * u, self.output_curvature)

    def class_scores(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return class scores ``(N, classes)``."""
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


#: matrix -> the same matrix in sparse rows; an entry goes when its matrix goes
_rows: Any = WeakTensorKeyDictionary()


def sparse_rows(data: "Data", *, norm: Norm, loops: bool, dtype: torch.dtype) -> Tensor:
    """Return :func:`~gyroformer.nn.sparse.propagation` in sparse rows, the layout torch_geometric multiplies by."""
    matrix = propagation(data, norm=norm, loops=loops, dtype=dtype)
    if matrix not in _rows:
        _rows[matrix] = as_sparse_rows(matrix)
    rows: Tensor = _rows[matrix]
    return rows
