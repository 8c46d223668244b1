r"""The graph convolutional network (Kipf and Welling 2017).

.. math:: h \leftarrow \sigma(\hat A h W + b), \qquad \hat A = \tilde D^{-1/2}(A + I)\tilde D^{-1/2}

The last layer has no :math:`\sigma`. Two layers of width 16, with dropout 0.5 before each, are the classic
setting for the citation graphs.

Published code departs: the HGCN, Q-GCN and GIL repositories feed the row-normalised
:math:`\tilde D^{-1}(A + I)` to their GCN for classification and links.
"""

from typing import TYPE_CHECKING

from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from gyroformer.models.base import arguments
from gyroformer.models.stack import ConvolutionStack, sparse_rows

if TYPE_CHECKING:
    from torch_geometric.data import Data


class GCN(ConvolutionStack):
    """A graph convolutional network (see the module for the equation).

    Args:
        in_features: width of the node features; 0 for none.
        dim: width of the inner layers, and of the result without classes.
        layers: number of convolutions.
        classes: number of classes; None for vectors of width ``dim``.
        num_nodes: learned vectors for this many nodes, for a graph without features.
        dropout: share of values dropped before each layer; None for 0.5 with classes, 0 without.
        activation: one of relu, elu, tanh, sigmoid, gelu.
    """

    name = "gcn"

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
        """Return a convolution that takes the matrix as it is."""
        return GCNConv(before, after, normalize=False, add_self_loops=False)

    def graph(self, data: "Data") -> tuple[Tensor, ...]:
        """Return the normalised adjacency matrix with self-loops."""
        return (sparse_rows(data, norm="sym", loops=True, dtype=self.dtype),)
