r"""Q-GCN (Xiong et al., 2022): graph convolution on a pseudo-hyperboloid with several time coordinates."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from gyroformer.geometry import hyperboloid
from gyroformer.geometry import pseudo_hyperboloid as quadric
from gyroformer.models.stack import CurvedLayer, TangentStack, layer_activation
from gyroformer.nn.curvature import NegativeCurvature
from gyroformer.nn.sparse import propagate
from gyroformer.ops.positions import Positions, StereographicPositions
from gyroformer.ops.pseudo_positions import PseudoHyperboloidPositions
from gyroformer.options import takes
from gyroformer.options.models import QGCNOptions

if TYPE_CHECKING:
    from torch_geometric.data import Data


class QGCNLayer(CurvedLayer):
    """Linear map, bias, sum over the neighbours, activation; see :class:`QGCN` for the equations."""

    def __init__(
        self, linear: nn.Module, options: QGCNOptions, activation: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.linear = linear
        self.bias = nn.Parameter(torch.zeros(options.dim - 1))
        self.space = NegativeCurvature(1, initial=options.curvature, learn=options.learn_curvature)
        self.activation = activation
        self.time = options.time_dim
        self.skip = options.classes is None if options.skip is None else options.skip

    def forward(self, u: Tensor, matrix: Tensor) -> Tensor:
        """Return the convolved tangent vectors ``(N, dim - 1)``; ``matrix`` is the normalised adjacency."""
        k = self.space()
        beta = 1 / k
        here = quadric.expmap0(self.linear(u), beta=beta, time=self.time)
        if self.time == 1:
            moved = hyperboloid.translate(here, self.bias, k=k)
        else:
            moved = quadric.translate(here, self.bias, beta=beta, time=self.time)
        own = quadric.logmap0(moved, beta=beta, time=self.time)
        result = self.activation(propagate(matrix, own))
        return 0.5 * (own + result) if self.skip else result


class QGCN(TangentStack):
    r"""Graph convolution on the pseudo-hyperboloid of t time and s space coordinates, t + s = ``dim``.

    .. math:: \mathcal Q_\beta^{s,t} = \{x : -|x_t|^2 + |x_s|^2 = \beta\}, \quad \beta < 0, \qquad
              h_i = T_b(\exp_0(W \log_0 x_i)), \qquad
              x'_i = \exp_0\Bigl(\sigma\Bigl(\sum_j \hat A_{ij}\log_0 h_j\Bigr)\Bigr)

    with the symmetric :math:`\hat A` of a GCN, or with classes, as in the published code, the mean over the neighbours
    and the node itself. The maps at the pole 0 are those of the diffeomorphic product of a
    sphere and a flat space, :math:`S^{t-1} \times \mathbb R^s` (:mod:`gyroformer.geometry.pseudo_hyperboloid`):
    the geodesics of the indefinite metric do not reach every point. :math:`T_b` transports the tangent vector b
    from the pole to the point and follows it: in the hyperbolic space of one time coordinate along geodesics, in other
    spaces on sphere and flat space apart. Distances are those of the indefinite metric, through the antipode
    where no geodesic goes. The scores are linear in :math:`\log_0` of the last points. A layer hands on its
    tangent vectors as they are: one that goes more than half around the sphere is not exchanged for the shorter
    one to the same point, which would be a jump.

    Each layer learns one number, kept negative by a softplus: :math:`\kappa = 1/\beta = -\log(1 + e^\theta)` with
    θ the parameter ``curvature``; κ is the sectional curvature of the metric, and what ``curvatures`` reports. (The
    sphere of the time coordinates, whose metric is negative, looks like one of curvature :math:`-\kappa`.)

    With ``time_dim=1`` the space is the hyperbolic space of curvature κ in ``dim - 1`` dimensions. As its sphere is
    a point, the maps at the pole are the identity on the space coordinates, so that class scores feel the curvature
    by the biases alone. With ``time_dim=dim`` there is no space part, and the space is a sphere.
    The default is 1: between the two the distance is no metric (it is 0 all along the light cone, so that nodes far
    apart can pass for one), reconstruction starts much worse.

    Published code departs: W log_0 is scaled to length 1 for each node, and the space part is divided by
    :math:`\sqrt{-\beta}` in the maps at the pole; space parts, inner products and squared distances are cut off;
    features get a column of ones; for reconstruction only the first layer is trained, and it returns the mean with
    what its linear map has made (``skip=True``; its GCN and HGCN do so too, ours do not); distances repeat all points
    N times. Ours: with several time coordinates a bias does not follow the geodesics of the indefinite metric, which
    the published code leads through -x where there is none; with several layers each has its skip, where the published
    code has one around all; links have the symmetric :math:`\hat A`, as points have; without classes the last layer
    has no σ, which would confine the points to one orthant.
    """

    name = "q-gcn"
    extra_coordinates = 1

    @takes(QGCNOptions)
    def __init__(self, options: QGCNOptions) -> None:
        super().__init__(options)
        #: number of time coordinates
        self.time = options.time_dim
        self.norm = "row" if options.classes else "sym"
        width, layers, classes = self.width, options.layers, options.classes
        self.layers = nn.ModuleList(
            QGCNLayer(
                nn.Linear(width, width, bias=False) if index else nn.Identity(),
                options,
                layer_activation(options, index),
            )
            for index in range(layers)
        )
        self.decoder = nn.Linear(width, classes) if classes else None

    def positions(self, data: "Data", x: Tensor | None = None) -> Positions:
        """Return where the nodes are; with one time coordinate in the stereographic model, at equal distances."""
        positions = PseudoHyperboloidPositions.from_tangent(
            self.tangent(data, x), self.output_curvature, self.time
        )
        if self.time > 1:
            return positions
        sine, cosine = hyperboloid.to_half_angle(positions.x, k=positions.k)
        return StereographicPositions(sine.unsqueeze(1), cosine.unsqueeze(1), positions.k)
