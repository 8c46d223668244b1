r"""GraphSAGE with means over whole neighbourhoods (Hamilton, Ying and Leskovec 2017).

.. math:: h_i \leftarrow \sigma\Bigl(W_1 h_i + W_2\,\tfrac{1}{|N(i)|}\sum_{j \in N(i)} h_j + b\Bigr)

The last layer has no :math:`\sigma`; a node without neighbours has the mean 0.

Departs from its paper, as the common implementations do: neighbourhoods are not sampled (the graphs fit) and
vectors are not divided by their lengths.
"""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from gyroformer.models.stack import ConvolutionStack, sparse_rows
from gyroformer.options import takes
from gyroformer.options.models import SAGEOptions

if TYPE_CHECKING:
    from torch_geometric.data import Data


class SAGE(ConvolutionStack):
    """GraphSAGE with mean aggregation (see the module for the equation)."""

    name = "sage"

    @takes(SAGEOptions)
    def __init__(self, options: SAGEOptions) -> None:
        super().__init__(options)

    def convolution(self, before: int, after: int, *, last: bool) -> nn.Module:
        """Return a convolution whose mean is a sum by the row-normalised matrix."""
        from torch_geometric.nn import SAGEConv

        return SAGEConv(before, after, aggr="sum")

    def graph(self, data: "Data") -> tuple[Tensor, ...]:
        """Return the adjacency matrix, each row divided by its sum."""
        return (sparse_rows(data, norm="row", loops=False, dtype=self.dtype),)
