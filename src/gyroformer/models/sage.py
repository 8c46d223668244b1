r"""GraphSAGE with means over whole neighbourhoods (Hamilton, Ying and Leskovec 2017).

.. math:: h_i \leftarrow \sigma\Bigl(W_1 h_i + W_2\,\tfrac{1}{|N(i)|}\sum_{j \in N(i)} h_j + b\Bigr)

The last layer has no :math:`\sigma`; a node without neighbours has the mean 0. The mean is taken of :math:`W_2 h_j`,
which is the same and narrower than the features.

Departs from its paper, as the common implementations do: neighbourhoods are not sampled (the graphs fit) and
vectors are not divided by their lengths.
"""

from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import Tensor, nn

from gyroformer.models.stack import ConvolutionStack, sparse_rows
from gyroformer.options import takes
from gyroformer.options.models import SAGEOptions

if TYPE_CHECKING:
    from torch_geometric.data import Data


class MeanConvolution(nn.Module):
    """A map of a node itself and one of the mean of its neighbours, added; named as torch_geometric's ``SAGEConv``.

    Args:
        before: width of the input.
        after: width of the result.
    """

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.lin_l = nn.Linear(before, after)
        self.lin_r = nn.Linear(before, after, bias=False)

    def forward(self, h: Tensor, matrix: Tensor) -> Tensor:
        """Return ``(N, after)`` for ``(N, before)``; ``matrix`` is the mean over neighbours."""
        return matrix @ F.linear(h, self.lin_l.weight) + self.lin_l.bias + self.lin_r(h)


class SAGE(ConvolutionStack):
    """GraphSAGE with mean aggregation (see the module for the equation)."""

    name = "sage"

    @takes(SAGEOptions)
    def __init__(self, options: SAGEOptions) -> None:
        super().__init__(options)

    def convolution(self, before: int, after: int, *, last: bool) -> nn.Module:
        """Return a convolution whose mean is a sum by the row-normalised matrix."""
        return MeanConvolution(before, after)

    def graph(self, data: "Data") -> tuple[Tensor, ...]:
        """Return the adjacency matrix, each row divided by its sum."""
        return (sparse_rows(data, norm="row", loops=False, dtype=self.dtype),)
