r"""GraphSAGE with means over whole neighbourhoods (Hamilton, Ying and Leskovec 2017).

.. math:: h_i \leftarrow \sigma\Bigl(W_1 h_i + W_2\,\tfrac{1}{|N(i)|}\sum_{j \in N(i)} h_j + b\Bigr)

The last layer has no :math:`\sigma`; a node without neighbours has the mean 0.

Departs from its paper, as the common implementations do: neighbourhoods are not sampled (the graphs fit) and
vectors are not divided by their lengths.
"""

from typing import TYPE_CHECKING

from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

from gyroformer.models.base import arguments
from gyroformer.models.stack import ConvolutionStack, sparse_rows

if TYPE_CHECKING:
    from torch_geometric.data import Data


class SAGE(ConvolutionStack):
    """GraphSAGE with mean aggregation (see the module for the equation).

    Args:
        in_features: width of the node features; 0 for none.
        dim: width of the inner layers, and of the result without classes.
        layers: number of convolutions.
        classes: number of classes; None for vectors of width ``dim``.
        num_nodes: learned vectors for this many nodes, for a graph without features.
        dropout: share of values dropped before each layer; None for 0.5 with classes, 0 without.
        activation: one of relu, elu, tanh, sigmoid, gelu.
    """

    name = "sage"

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
        """Return a convolution whose mean is a sum by the row-normalised matrix."""
        return SAGEConv(before, after, aggr="sum")

    def graph(self, data: "Data") -> tuple[Tensor, ...]:
        """Return the adjacency matrix, each row divided by its sum."""
        return (sparse_rows(data, norm="row", loops=False, dtype=self.dtype),)
