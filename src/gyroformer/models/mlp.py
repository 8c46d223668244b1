r"""The multi-layer perceptron: the nodes without their graph.

.. math:: h \leftarrow \sigma(\mathrm{dropout}(h)\,W + b), \qquad \text{the last layer without } \sigma

Published code departs: in the HGCN family dropout stands between the linear map and the activation. For ReLU the
two are the same up to the input, which this model drops as well.
"""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from gyroformer.models.base import arguments
from gyroformer.models.stack import ConvolutionStack

if TYPE_CHECKING:
    from torch_geometric.data import Data


class MLP(ConvolutionStack):
    """A multi-layer perceptron on the node features (see the module for the equation).

    Args:
        in_features: width of the node features; 0 for none.
        dim: width of the inner layers, and of the result without classes.
        layers: number of layers.
        classes: number of classes; None for vectors of width ``dim``.
        num_nodes: learned vectors for this many nodes, for a graph without features.
        dropout: share of values dropped before each layer; None for 0.5 with classes, 0 without.
        activation: one of relu, elu, tanh, sigmoid, gelu.
    """

    name = "mlp"

    def __init__(
        self,
        in_features: int,
        *,
        dim: int = 16,
        layers: int = 2,
        classes: int | None = None,
        num_nodes: int | None = None,
        dropout: float | None = None,
        activation: str = "relu",
    ) -> None:
        super().__init__(arguments(locals()))

    def convolution(self, before: int, after: int, *, last: bool) -> nn.Module:
        """Return a linear map."""
        return nn.Linear(before, after)

    def graph(self, data: "Data") -> tuple[Tensor, ...]:
        """Return nothing: the edges do not matter."""
        return ()
