r"""The graph convolutional network (Kipf and Welling 2017).

.. math:: h \leftarrow \sigma(\hat A h W + b), \qquad \hat A = \tilde D^{-1/2}(A + I)\tilde D^{-1/2}

The last layer has no :math:`\sigma`. Two layers of width 16, with dropout 0.5 before each, are the classic
setting for the citation graphs.

Published code departs: the HGCN, Q-GCN and GIL repositories feed the row-normalised
:math:`\tilde D^{-1}(A + I)` to their GCN for classification and links.
"""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from gyroformer.models.stack import ConvolutionStack, sparse_rows
from gyroformer.options import takes
from gyroformer.options.models import GCNOptions

if TYPE_CHECKING:
    from torch_geometric.data import Data


class GCN(ConvolutionStack):
    """A graph convolutional network (see the module for the equation)."""

    name = "gcn"

    @takes(GCNOptions)
    def __init__(self, options: GCNOptions) -> None:
        super().__init__(options)

    def convolution(self, before: int, after: int, *, last: bool) -> nn.Module:
        """Return a convolution that takes the matrix as it is."""
        from torch_geometric.nn import GCNConv

        return GCNConv(before, after, normalize=False, add_self_loops=False)

    def graph(self, data: "Data") -> tuple[Tensor, ...]:
        """Return the normalised adjacency matrix with self-loops."""
        return (sparse_rows(data, norm="sym", loops=True, dtype=self.dtype),)
