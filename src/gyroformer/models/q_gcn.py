r"""Q-GCN (Xiong et al., 2022): graph convolution on a pseudo-hyperboloid with several time coordinates."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from gyroformer.errors import UsageError
from gyroformer.geometry import hyperboloid
from gyroformer.geometry import pseudo_hyperboloid as quadric
from gyroformer.models.base import arguments
from gyroformer.models.tangent_stack import CurvedLayer, TangentStack
from gyroformer.nn.curvature import NegativeCurvature
from gyroformer.nn.sparse import propagate
from gyroformer.nn.tangent import activation_named
from gyroformer.ops.positions import Positions, StereographicPositions
from gyroformer.ops.pseudo_positions import PseudoHyperboloidPositions

if TYPE_CHECKING:
    from torch_geometric.data import Data


class QGCNLayer(CurvedLayer):
    """Linear map, bias, sum over the neighbours, activation; see :class:`QGCN` for the equations.

    Args:
        linear: the linear map of tangent vectors.
        width: width of a tangent vector.
        time: number of time coordinates.
        activation: name of the activation; None for none.
        skip: whether the result is the mean of the sum over the neighbours and what was summed.
        curvature: initial curvature, negative.
        learn_curvature: whether training changes it.
    """

    def __init__(
        self,
        linear: nn.Module,
        width: int,
        *,
        time: int,
        activation: str | None,
        skip: bool,
        curvature: float,
        learn_curvature: bool,
    ) -> None:
        super().__init__()
        self.linear = linear
        self.bias = nn.Parameter(torch.zeros(width))
        self.space = NegativeCurvature(1, initial=curvature, learn=learn_curvature)
        self.activation = activation_named(activation) if activation else None
        self.time, self.skip = time, skip

    def forward(self, u: Tensor, matrix: Tensor) -> Tensor:
        """Return the convolved tangent vectors ``(N, dim - 1)``; ``matrix`` is the normalised adjacency."""
        beta = 1 / self.space()
        here = quadric.expmap0(self.linear(u), beta=beta, time=self.time)
        moved = quadric.translate(here, self.bias, beta=beta, time=self.time)
        own = quadric.logmap0(moved, beta=beta, time=self.time)
        result = propagate(matrix, own)
        if self.activation is not None:
            result = self.activation(result)
        return 0.5 * (own + result) if self.skip else result


class QGCN(TangentStack):
    r"""Graph convolution on the pseudo-hyperboloid of t time and s space coordinates, t + s = ``dim``.

    .. math:: \mathcal Q_\beta^{s,t} = \{x : -|x_t|^2 + |x_s|^2 = \beta\}, \quad \beta < 0, \qquad
              h_i = T_b(\exp_0(W \log_0 x_i)), \qquad
              x'_i = \exp_0\Bigl(\sigma\Bigl(\sum_j \hat A_{ij}\log_0 h_j\Bigr)\Bigr)

    with the symmetric :math:`\hat A` of a GCN. The maps at the pole 0 are those of the diffeomorphic product of a
    sphere and a flat space, :math:`S^{t-1} \times \mathbb R^s` (:mod:`gyroformer.geometry.pseudo_hyperboloid`):
    the geodesics of the indefinite metric do not reach every point. :math:`T_b` transports the tangent vector b
    from the pole to the point and follows it. Distances are those of the indefinite metric, through the antipode
    where no geodesic goes. The scores are linear in :math:`\log_0` of the last points. A layer hands on its
    tangent vectors as they are: one that goes more than half around the sphere is not exchanged for the shorter
    one to the same point, which would be a jump.

    Each layer learns one number, kept negative by a softplus: :math:`\kappa = 1/\beta = -\log(1 + e^\theta)` with
    θ the parameter ``curvature``; κ is the sectional curvature of the metric, and what ``curvatures`` reports. (The
    sphere of the time coordinates, whose metric is negative, looks like one of curvature :math:`-\kappa`.)

    With ``time_dim=1`` the space is the hyperbolic space of curvature κ in ``dim - 1`` dimensions. As its sphere is
    a point, the maps at the pole are the identity on the space coordinates: points and distances are hyperbolic,
    class scores those of a flat network. With ``time_dim=dim`` there is no space part, and the space is a sphere.
    The default is 1: between the two the distance is no metric (it is 0 all along the light cone, so that nodes far
    apart can pass for one), reconstruction starts much worse, and a step takes ten times as long.

    Published code departs: W log_0 is scaled to length 1 for each node; space parts, inner products and squared
    distances are cut off; features get a column of ones; for reconstruction only the first layer is trained, and
    it returns the mean with its own input (``skip=True``); distances repeat all points N times. Ours: without
    classes the last layer has no σ, which would confine the points to one orthant.

    Args:
        in_features: width of the node features; 0 for none.
        dim: number of coordinates, t + s; tangent vectors have one less.
        layers: number of layers; the scores' linear map comes on top (the paper's frame counts it: 2 there is 1 here).
        classes: number of classes; None to return points.
        num_nodes: learned vectors for this many nodes, for a graph without features.
        dropout: share of values dropped before each linear map; None for 0.5 with classes, else 0.
        activation: one of relu, elu, tanh, sigmoid, gelu.
        time_dim: t, from 1 to ``dim``.
        skip: whether each layer returns the mean of the sum over neighbours and the node's own vector.
        curvature: initial curvature κ = 1/β of each layer, negative.
        learn_curvature: whether training changes them.
    """

    name = "q-gcn"

    def __init__(
        self,
        in_features: int,
        *,
        dim: int = 16,
        layers: int = 1,
        classes: int | None = None,
        num_nodes: int | None = None,
        dropout: float | None = None,
        activation: str = "relu",
        time_dim: int = 1,
        skip: bool = False,
        curvature: float = -1.0,
        learn_curvature: bool = True,
    ) -> None:
        if dim < 2:
            raise UsageError(
                f"dim must be at least 2, got {dim}: a point has a coordinate more than its space"
            )
        if not 1 <= time_dim <= dim:
            raise UsageError(f"time_dim must be from 1 to dim, {dim}; got {time_dim}")
        super().__init__(arguments(locals()))
        activation_named(activation)
        #: number of time coordinates
        self.time = time_dim
        width = self.width
        self.layers = nn.ModuleList(
            QGCNLayer(
                nn.Linear(width, width, bias=False) if place else nn.Identity(),
                width,
                time=self.time,
                activation=activation if classes or place + 1 < layers else None,
                skip=skip,
                curvature=curvature,
                learn_curvature=learn_curvature,
            )
            for place in range(layers)
        )
        self.decoder = nn.Linear(width, classes) if classes else None

    @property
    def width(self) -> int:
        """Width of a tangent vector at the pole."""
        return int(self.config["dim"]) - 1

    def positions(self, data: "Data", x: Tensor | None = None) -> Positions:
        """Return where the nodes are; with one time coordinate in the stereographic model, at equal distances."""
        places = PseudoHyperboloidPositions.from_tangent(
            self.tangent(data, x), self.output_curvature, self.time
        )
        if self.time > 1:
            return places
        sine, cosine = hyperboloid.to_half_angle(places.x, k=places.k)
        return StereographicPositions(sine.unsqueeze(1), cosine.unsqueeze(1), places.k)
