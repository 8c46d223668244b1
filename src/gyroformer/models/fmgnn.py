r"""The fused manifold graph neural network, FMGNN (Deng et al. 2023): flat, hyperbolic and spherical branches.

Three graph convolutions run side by side, one in each space (curvatures :math:`0, \kappa_1 < 0, \kappa_2 > 0`),
and exchange tangent vectors after each layer. With the points :math:`x_m = \exp_0(u_m W_m + b_m)` of branch m,

.. math:: v_{m,i} = \log_0\,\mathrm{mean}_\kappa\{x_{m,j} : j \in N(i) \cup \{i\}\}, \qquad
          u_m \leftarrow \sum_n \omega_{mn}\,\sigma(v_n), \qquad \omega_m = \mathrm{softmax}(M_m),

the last layer without :math:`\sigma`. Class scores are linear in the distances of a node to landmarks
:math:`c_{m,1}, \dots, c_{m,L}` of each space:

.. math:: s_i = V\,(d(x_{m,i}, c_{m,l}))_{m,l} + v .

No published code was found; this follows the paper's outline. Not specified there as far as known, here: the mean
is that of the ambient sphere or hyperboloid (the gyromidpoint; the ordinary mean at k = 0), the same for all branches;
the weights of the exchange are learned and start with 2/3 for the own branch and 1/6 for each other. Departs from the
paper: it selects its landmarks as a coreset; here they are learned points, so that scores depend neither on the
numbering of the nodes nor on which graphs lie in one batch; without classes nodes are compared by the distance of the
product of the three spaces. Curvatures keep their signs.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gyroformer.geometry.trig import safe_sqrt
from gyroformer.models.stack import LayeredModel
from gyroformer.nn.curvature import SignedCurvature
from gyroformer.nn.sparse import propagate, propagation
from gyroformer.nn.tangent import ACTIVATIONS
from gyroformer.ops.lifted import lift, sine_cosine, unlift
from gyroformer.ops.positions import StereographicPositions
from gyroformer.options import takes
from gyroformer.options.models import FMGNNOptions

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: flat, hyperbolic, spherical
BRANCHES = 3


class FusedLayer(nn.Module):
    """A convolution in each of the three spaces, without activation and exchange (see the module).

    Args:
        before: width of the input, the same for all branches.
        after: width of the result of each branch.
        curvature: of the hyperbolic and the spherical branch, at the start.
        learn_curvature: whether training changes them.
    """

    def __init__(
        self, before: int, after: int, *, curvature: float | Sequence[float], learn_curvature: bool
    ) -> None:
        super().__init__()
        self.spaces = SignedCurvature(BRANCHES - 1, initial=curvature, learn=learn_curvature)
        self.weight = nn.Parameter(torch.empty(BRANCHES, before, after))
        self.bias = nn.Parameter(torch.zeros(BRANCHES, after))
        for weight in self.weight:
            nn.init.xavier_uniform_(weight)

    def curvature(self) -> Tensor:
        """Return the three curvatures, ``(3, 1)``."""
        curved = self.spaces()
        return torch.cat((torch.zeros_like(curved[:1]), curved))

    def forward(self, u: Tensor, matrix: Tensor) -> Tensor:
        """Return tangent vectors ``(N, 3, after)`` for ``(N, 3, before)``, or for ``(N, before)`` the same to all."""
        k = self.curvature()
        if u.dim() == 2:  # one map to all branches, which takes sparse rows too
            own = F.linear(u, self.weight.mT.flatten(0, 1)).unflatten(-1, (BRANCHES, -1))
        else:
            own = torch.einsum("nmd,mde->nme", u, self.weight)
        own = own + self.bias
        return unlift(propagate(matrix, lift(*sine_cosine(own, k))), k)


class Landmarks(nn.Module):
    """Distances of points to learned points, in each of the three spaces.

    Args:
        count: number of landmarks in each space.
        dim: width of each space.
    """

    def __init__(self, count: int, dim: int) -> None:
        super().__init__()
        # about one unit from the origin, in all directions
        self.tangent = nn.Parameter(torch.randn(count, BRANCHES, dim) * dim**-0.5)

    def forward(self, u: Tensor, k: Tensor) -> Tensor:
        """Return the distances ``(N, 3 * count)`` of tangent vectors ``(N, 3, dim)``; ``k (3, 1)``."""
        rows = torch.arange(len(u), len(u) + len(self.tangent), device=u.device)
        together = torch.cat((u, self.tangent))
        found = []
        for branch in range(BRANCHES):
            one = slice(branch, branch + 1)
            positions = StereographicPositions.from_tangent(together[:, one], k[one])
            found.append(safe_sqrt(positions.squared_dist_rows(rows)[:, : len(u)]).mT)
        return torch.cat(found, -1)


class FMGNN(LayeredModel):
    """The fused manifold graph neural network (see the module for the equations)."""

    name = "fmgnn"

    @takes(FMGNNOptions)
    def __init__(self, options: FMGNNOptions) -> None:
        super().__init__(options)
        dim, layers, landmarks = options.dim, options.layers, options.landmarks
        self.activation = ACTIVATIONS[options.activation]
        self.layers = nn.ModuleList(
            FusedLayer(width, dim, curvature=options.curvature, learn_curvature=options.learn_curvature)
            for width in [self.input.width, *[dim] * (layers - 1)]
        )
        # softmax of (log 4, 0, 0) is (2/3, 1/6, 1/6)
        start = math.log(4) * torch.eye(BRANCHES)
        self.exchange = nn.Parameter(start.expand(layers, -1, -1).clone())
        if options.classes:
            self.landmarks = Landmarks(landmarks, dim)
            self.linear = nn.Linear(BRANCHES * landmarks, options.classes)

    @property
    def curvatures(self) -> Tensor:
        """The curvatures of the branches, ``(layers, 3)``."""
        return torch.stack([layer.curvature().squeeze(-1) for layer in self.layers])  # type: ignore[operator]

    def prepare(self, data: "Data") -> "Data":
        """Normalise the adjacency matrix once."""
        propagation(data, norm="row", loops=True, dtype=self.dtype)
        return data

    def tangent(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return the nodes as tangent vectors at the origins of the three spaces, ``(N, 3, dim)``."""
        matrix = propagation(data, norm="row", loops=True, dtype=self.dtype)
        u = self.input_vectors(data, x)
        for index, layer in enumerate(self.layers):
            if index:
                u = self.dropped(self.activation(u))
                u = torch.einsum("mb,nbd->nmd", self.exchange[index - 1].softmax(-1), u)
            u = layer(u, matrix)
        return torch.einsum("mb,nbd->nmd", self.exchange[-1].softmax(-1), u)

    def positions(self, data: "Data", x: Tensor | None = None) -> StereographicPositions:
        """Return where the nodes are in the product of the three spaces."""
        return StereographicPositions.from_tangent(self.tangent(data, x), self._last_curvature())

    def class_scores(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return class scores ``(N, classes)``, linear in the distances to the landmarks."""
        return self.linear(self.landmarks(self.tangent(data, x), self._last_curvature()))

    def _last_curvature(self) -> Tensor:
        return self.layers[-1].curvature()  # type: ignore[operator]
