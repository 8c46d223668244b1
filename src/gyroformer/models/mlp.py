r"""The multi-layer perceptron: the nodes without their graph.

.. math:: h \leftarrow \sigma(\mathrm{dropout}(h)\,W + b), \qquad \text{the last layer without } \sigma

Published code departs: in the HGCN family dropout stands between the linear map and the activation. For ReLU the
two are the same up to the input, which this model drops as well.
"""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from gyroformer.models.stack import ConvolutionStack
from gyroformer.options import takes
from gyroformer.options.models import MLPOptions

if TYPE_CHECKING:
    from torch_geometric.data import Data


class MLP(ConvolutionStack):
    """A multi-layer perceptron on the node features (see the module for the equation)."""

    name = "mlp"

    @takes(MLPOptions)
    def __init__(self, options: MLPOptions) -> None:
        super().__init__(options)

    @property
    def reads_weights(self) -> bool:
        """No: it does not look at edges."""
        return False

    def convolution(self, before: int, after: int, *, last: bool) -> nn.Module:
        """Return a linear map."""
        return nn.Linear(before, after)

    def graph(self, data: "Data") -> tuple[Tensor, ...]:
        """Return nothing: the edges do not matter."""
        return ()
