r"""The simplified graph convolution (Wu et al. 2019).

.. math:: h = \hat A^K X W + b, \qquad \hat A = \tilde D^{-1/2}(A + I)\tilde D^{-1/2}

K is the number of ``layers``; there is no non-linearity. Since :math:`\hat A^K(XW) = (\hat A^K X)W`, the narrow side
is propagated: K products of :math:`\hat A` with as many columns as the result has, and no dense N x features matrix
to keep beside the graph.

Published code departs: the GIL repository stacks several such layers with activations and dropout between them.
"""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from gyroformer.models.base import arguments
from gyroformer.models.stack import FlatModel
from gyroformer.nn.sparse import propagation

if TYPE_CHECKING:
    from torch_geometric.data import Data


class SGC(FlatModel):
    """A simplified graph convolution (see the module for the equation).

    Args:
        in_features: width of the node features; 0 for none.
        dim: width of the result without classes, and of the learned vectors.
        layers: number of propagation steps, K.
        classes: number of classes; None for vectors of width ``dim``.
        num_nodes: learned vectors for this many nodes, for a graph without features.
        dropout: share of the features dropped; None for 0.
    """

    name = "sgc"
    usual_dropout = 0.0

    def __init__(
        self,
        in_features: int,
        *,
        dim: int = 16,
        layers: int = 2,
        classes: int | None = None,
        num_nodes: int | None = None,
        dropout: float | None = None,
    ) -> None:
        super().__init__(arguments(locals()))
        self.linear = nn.Linear(self.input.width, self.width, bias=False)
        self.bias = nn.Parameter(self.linear.weight.new_zeros(self.width))

    def prepare(self, data: "Data") -> "Data":
        """Normalise the adjacency matrix once: it stays in ``data``."""
        propagation(data, norm="sym", loops=True, dtype=self.dtype)
        return data

    def vectors(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return the vectors ``(N, width)``."""
        matrix = propagation(data, norm="sym", loops=True, dtype=self.dtype)
        h = self.linear(self.input_vectors(data, x))
        for _ in range(self.config["layers"]):
            h = matrix @ h
        return h + self.bias
