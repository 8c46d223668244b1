r"""HGNN (Liu, Nickel and Kiela, 2019): hyperbolic graph neural network with centroid scores."""

from collections.abc import Callable

from torch import Tensor, nn

from gyroformer.models.base import arguments
from gyroformer.models.tangent_stack import CurvedLayer, TangentStack
from gyroformer.nn.ball import ball_activation, shrinking_activation
from gyroformer.nn.centroids import CentroidScores
from gyroformer.nn.curvature import NegativeCurvature
from gyroformer.nn.sparse import propagate


class HGNNLayer(CurvedLayer):
    r"""One layer, :math:`\sigma(\exp_0(\sum_j \hat A_{ij} W \log_0 h_j))`, σ on the ball's coordinates.

    Args:
        dim: width.
        curvature: initial curvature, negative.
        learn_curvature: whether training changes it.
        activation: σ.
    """

    def __init__(
        self, dim: int, curvature: float, learn_curvature: bool, activation: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(dim, dim, bias=False)
        nn.init.xavier_uniform_(self.linear.weight)
        self.space = NegativeCurvature(1, initial=curvature, learn=learn_curvature)
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

    Args:
        in_features: width of the node features; 0 for none.
        dim: width.
        layers: number of layers; the features' linear map and the centroids come on top.
        classes: number of classes; None to return points.
        num_nodes: learned vectors for this many nodes, for a graph without features.
        dropout: share of values dropped before each linear map; None for 0.5 with classes, else 0.
        activation: one of elu, gelu, relu, tanh; sigmoid would lead out of the ball.
        centroids: number of centroids.
        curvature: initial curvature of each layer, negative.
        learn_curvature: whether training changes them (the paper's are fixed); they stay negative.
    """

    name = "hgnn"

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
        centroids: int = 64,
        curvature: float = -1.0,
        learn_curvature: bool = False,
    ) -> None:
        super().__init__(arguments(locals()))
        self.activation = shrinking_activation(activation)
        self.layers = nn.ModuleList(
            HGNNLayer(dim, curvature, learn_curvature, self.activation) for _ in range(layers)
        )
        self.centroids = CentroidScores(dim, centroids, classes) if classes else None

    def enter(self, u: Tensor) -> Tensor:
        """Return the first layer's tangent vectors from the features' linear map."""
        return self.dropped(self.activation(u))

    def readout(self, u: Tensor, matrix: Tensor) -> Tensor:
        """Return the scores by distances to the centroids."""
        assert self.centroids is not None
        return self.centroids(u, self.output_curvature)
