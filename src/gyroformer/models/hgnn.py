r"""HGNN (Liu, Nickel and Kiela, 2019): hyperbolic graph neural network with centroid scores."""

from collections.abc import Callable

from torch import Tensor, nn

from gyroformer.models.stack import CurvedLayer, TangentStack, layer_activation
from gyroformer.nn.curvature import NegativeCurvature
from gyroformer.nn.logits import CentroidScores
from gyroformer.nn.sparse import propagate
from gyroformer.nn.tangent import ACTIVATIONS, ball_activation
from gyroformer.options import takes
from gyroformer.options.models import HGNNOptions


class HGNNLayer(CurvedLayer):
    r"""One layer, :math:`\sigma(\exp_0(\sum_j \hat A_{ij} W \log_0 h_j))`, σ on the ball's coordinates."""

    def __init__(self, options: HGNNOptions, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.linear = nn.Linear(options.dim, options.dim, bias=False)
        nn.init.xavier_uniform_(self.linear.weight)
        self.space = NegativeCurvature(1, initial=options.curvature, learn=options.learn_curvature)
        self.activation = activation

    def forward(self, u: Tensor, matrix: Tensor) -> Tensor:
        """Return the tangent vectors ``(N, dim)`` of the next points."""
        return ball_activation(propagate(matrix, self.linear(u)), self.space(), self.activation)


class HGNN(TangentStack):
    r"""Graph neural network in the Poincaré ball, scored by distances to learned centroids.

    .. math:: h_i^{(\ell)} = \sigma\Bigl(\exp_0\bigl(\sum_j \hat A_{ij} W^{(\ell)}\log_0 h_j^{(\ell-1)}\bigr)\Bigr),
              \qquad \mathrm{scores}_i = V\,\bigl(d(h_i, c_1), \dots, d(h_i, c_C)\bigr) + v

    with the symmetric :math:`\hat A` of a GCN and σ on the ball's coordinates, where an activation that makes no
    coordinate longer stays in the ball. The first layer's :math:`\log_0 h` is a linear map of the features and σ.
    As :math:`k \to 0` it becomes :math:`\sigma(\hat A H W)`, and the scores use twice the Euclidean distances.

    Published code departs: its logarithm at the origin of the ball divides by artanh instead of multiplying, so
    it is not the inverse of the exponential; 1e-5 is added to vectors throughout; the weights of all layers are
    one and the width is 600 with 700 centroids. Re-implementations drop the centroids.

    Ours: the map of the features has no bias, and weights start with Xavier's (there one and Kaiming's); dropout is
    before a layer, not after its sum; without classes the last layer has no σ, which would confine the points to one
    orthant.
    """

    name = "hgnn"

    @takes(HGNNOptions)
    def __init__(self, options: HGNNOptions) -> None:
        super().__init__(options)
        self.activation = ACTIVATIONS[options.activation]
        self.layers = nn.ModuleList(
            HGNNLayer(options, layer_activation(options, index)) for index in range(options.layers)
        )
        self.centroids = (
            CentroidScores(options.dim, options.centroids, options.classes) if options.classes else None
        )

    def enter(self, u: Tensor) -> Tensor:
        """Return the first layer's tangent vectors from the features' linear map."""
        return self.dropped(self.activation(u))

    def readout(self, u: Tensor, matrix: Tensor) -> Tensor:
        """Return the scores by distances to the centroids."""
        assert self.centroids is not None
        return self.centroids(u, self.output_curvature)
