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

from gyroformer.models.stack import ConvolutionStack
from gyroformer.nn.sparse import neighbour_edges
from gyroformer.options import takes
from gyroformer.options.layers import head_width
from gyroformer.options.models import GATOptions

if TYPE_CHECKING:
    from torch_geometric.data import Data


class GAT(ConvolutionStack):
    """A graph attention network (see the module for the equation)."""

    name = "gat"
    options: GATOptions

    @takes(GATOptions)
    def __init__(self, options: GATOptions) -> None:
        super().__init__(options)

    @property
    def reads_weights(self) -> bool:
        """No: attention alone says how much a neighbour counts."""
        return False

    def convolution(self, before: int, after: int, *, last: bool) -> nn.Module:
        """Return a convolution whose heads are joined, or averaged in the last layer."""
        from torch_geometric.nn import GATConv

        heads = self.options.heads
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
