"""What the graph networks share: their input and, if flat, convolutions one after the other."""

import itertools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from gyroformer.errors import UsageError
from gyroformer.graphs.hops import Norm
from gyroformer.models.base import GraphModel
from gyroformer.nn.features import NodeInput
from gyroformer.nn.sparse import propagation
from gyroformer.nn.tangent import activation_named
from gyroformer.ops.positions import StereographicPositions

if TYPE_CHECKING:
    from torch_geometric.data import Data


class LayeredModel(GraphModel):
    """A model with ``layers`` that take the features as they are, or learned vectors of width ``dim``.

    ``dropout=None`` stands for ``usual_dropout`` with classes and for 0 without: noise that keeps a classifier
    from learning its few labels by heart only blurs places.
    """

    #: the dropout of the model's paper, for classification
    usual_dropout = 0.5

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.config = config
        if config["layers"] < 1:
            raise UsageError(f"layers must be at least 1, got {config['layers']}")
        given = config["dropout"]
        usual = self.usual_dropout if config["classes"] else 0.0
        self.dropout = checked_share(usual if given is None else given, "dropout")
        self.input = NodeInput(config["in_features"], config["dim"], num_nodes=config["num_nodes"])

    @property
    def dtype(self) -> torch.dtype:
        """The format of the parameters."""
        return next(self.parameters()).dtype

    def input_vectors(self, data: "Data", x: Tensor | None) -> Tensor:
        """Return the first layer's input ``(N, in_features)``, or the table ``(N, dim)``, after dropout."""
        h = self.input(int(data.num_nodes or 0), data.x if x is None else x)
        return F.dropout(h, self.dropout, self.training)


class FlatModel(LayeredModel):
    """A model whose nodes are vectors: class scores if it has classes, else places in a flat space.

    Subclasses write ``vectors``.
    """

    @property
    def width(self) -> int:
        """Width of the result: the classes, or ``dim``."""
        return self.classes or self.config["dim"]

    @property
    def curvatures(self) -> Tensor:
        """Empty, ``(0, 0)``: the space is flat and stays so."""
        return next(self.parameters()).new_zeros(0, 0)

    def vectors(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return the last layer's vectors ``(N, width)``."""
        raise NotImplementedError

    def positions(self, data: "Data", x: Tensor | None = None) -> StereographicPositions:
        """Return the last layer's vectors as places in a flat space."""
        return StereographicPositions.flat(self.vectors(data, x))

    def scores(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return class scores ``(N, classes)``, the last layer's vectors."""
        if self.classes is None:
            raise UsageError("the model was built without classes: it gives positions, not scores")
        return self.vectors(data, x)


class ConvolutionStack(FlatModel):
    r"""Layers :math:`h \leftarrow \sigma(\mathrm{conv}(\mathrm{dropout}(h)))`, the last without :math:`\sigma`.

    Subclasses write ``convolution``, which makes one layer, and ``graph``, what a layer takes beside h.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        self.activation: Callable[[Tensor], Tensor] = activation_named(config["activation"])
        inner = [config["dim"]] * (config["layers"] - 1)
        widths = [self.input.width, *inner, self.width]
        self.layers = nn.ModuleList(
            self.convolution(before, after, last=place == len(inner))
            for place, (before, after) in enumerate(itertools.pairwise(widths))
        )

    def convolution(self, before: int, after: int, *, last: bool) -> nn.Module:
        """Return a layer from width ``before`` to width ``after``."""
        raise NotImplementedError

    def graph(self, data: "Data") -> tuple[Tensor, ...]:
        """Return what every layer takes beside the vectors, in the model's format."""
        raise NotImplementedError

    def prepare(self, data: "Data") -> "Data":
        """Compute what the layers take of the graph, once: it stays in ``data``."""
        self.graph(data)
        return data

    def vectors(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return the last layer's vectors ``(N, width)``."""
        graph = self.graph(data)
        h = self.input_vectors(data, x)
        for place, layer in enumerate(self.layers):
            if place:
                h = F.dropout(self.activation(h), self.dropout, self.training)
            h = layer(h, *graph)
        return h


#: matrix -> the same matrix in sparse rows; an entry goes when its matrix goes
_rows: Any = WeakTensorKeyDictionary()


def sparse_rows(data: "Data", *, norm: Norm, loops: bool, dtype: torch.dtype) -> Tensor:
    """Return :func:`~gyroformer.nn.sparse.propagation` in sparse rows, the format torch_geometric multiplies by."""
    matrix = propagation(data, norm=norm, loops=loops, dtype=dtype)
    if matrix not in _rows:
        with warnings.catch_warnings():
            # torch says once for each process that sparse rows are in beta; of them only the product is used
            warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
            _rows[matrix] = matrix.to_sparse_csr()
    rows: Tensor = _rows[matrix]
    return rows


def checked_share(value: float, name: str) -> float:
    """Return ``value`` if it is a share below 1, else raise."""
    if not 0 <= value < 1:
        raise UsageError(f"{name} must be at least 0 and less than 1, got {value}")
    return value
