r"""The graph attention network (Veličković et al. 2018).

.. math:: h_i \leftarrow \sigma\Bigl(\sum_{j \in N(i) \cup \{i\}} \alpha_{ij} W h_j + b\Bigr), \qquad
          \alpha_{ij} = \mathrm{softmax}_j\,\mathrm{LeakyReLU}_{0.2}(a^\top[W h_i \| W h_j])

for each head; the heads are joined, in the last layer averaged, which has no :math:`\sigma`. Dropout acts on the
layers' inputs and on the coefficients.

Published code departs: the HGCN repository's layer takes exp(-LeakyReLU) without subtracting the maximum, which can
overflow, and applies an ELU to the class scores.
"""

from typing import TYPE_CHECKING

from torch import Tensor, nn
from torch_geometric.nn import GATConv

from gyroformer.models.base import arguments
from gyroformer.models.stack import ConvolutionStack
from gyroformer.nn.curvature import head_width
from gyroformer.nn.sparse import neighbour_edges

if TYPE_CHECKING:
    from torch_geometric.data import Data


class GAT(ConvolutionStack):
    """A graph attention network (see the module for the equation).

    Args:
        in_features: width of the node features; 0 for none.
        dim: width of the inner layers, all heads together, and of the result without classes.
        heads: number of heads.
        layers: number of convolutions.
        classes: number of classes; None for vectors of width ``dim``.
        num_nodes: learned vectors for this many nodes, for a graph without features.
        dropout: share of values and of coefficients dropped in each layer; None for 0.6 with classes, 0 without.
        activation: one of relu, elu, tanh, sigmoid, gelu.
    """

    name = "gat"
    usual_dropout = 0.6

    def __init__(
        self,
        in_features: int,
        *,
        dim: int = 16,
        heads: int = 4,
        layers: int = 2,
        classes: int | None = None,
        num_nodes: int | None = None,
        dropout: float | None = None,
        activation: str = "elu",
    ) -> None:
        super().__init__(arguments(locals()))

    def convolution(self, before: int, after: int, *, last: bool) -> nn.Module:
        """Return a convolution whose heads are joined, or averaged in the last layer."""
        heads = self.config["heads"]
        width = after if last else head_width(after, heads)
        return GATConv(
            before,
            width,
            heads,
            concat=not last,
            dropout=self.dropout,
            negative_slope=0.2,
            add_self_loops=False,
        )

    def graph(self, data: "Data") -> tuple[Tensor, ...]:
        """Return the edges, both directions and self-loops."""
        return (neighbour_edges(data, loops=True),)
