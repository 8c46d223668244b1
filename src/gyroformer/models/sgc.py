r"""The simplified graph convolution (Wu et al. 2019).

.. math:: h = \hat A^K X W + b, \qquad \hat A = \tilde D^{-1/2}(A + I)\tilde D^{-1/2}

K is the number of ``layers``; there is no non-linearity. Since :math:`\hat A^K(XW) = (\hat A^K X)W`, the narrow side
is propagated: K products of :math:`\hat A` with as many columns as the result has, and no dense N x features matrix
to keep beside the graph.

Published code departs: the GIL repository stacks several such layers with activations and dropout between them.
"""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from gyroformer.models.stack import FlatModel
from gyroformer.nn.sparse import propagation
from gyroformer.options import takes
from gyroformer.options.models import SGCOptions

if TYPE_CHECKING:
    from torch_geometric.data import Data


class SGC(FlatModel):
    """A simplified graph convolution (see the module for the equation)."""

    name = "sgc"

    @takes(SGCOptions)
    def __init__(self, options: SGCOptions) -> None:
        super().__init__(options)
        self.linear = nn.Linear(self.input.width, self.width, bias=False)
        self.bias = nn.Parameter(self.linear.weight.new_zeros(self.width))

    def prepare(self, data: "Data") -> "Data":
        """Normalise the adjacency matrix once; it is kept as long as ``data.edge_index`` is."""
        propagation(data, norm="sym", loops=True, dtype=self.dtype)
        return data

    def vectors(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return the vectors ``(N, width)``."""
        matrix = propagation(data, norm="sym", loops=True, dtype=self.dtype)
        h = self.linear(self.input_vectors(data, x))
        for _ in range(self.options.layers):
            h = matrix @ h
        return h + self.bias
