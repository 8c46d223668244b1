r"""Free points in a product of spaces with learned curvatures (Gu, Sala, Gunel and Ré, 2019): no network at all."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gyroformer.models.stack import Network
from gyroformer.nn.curvature import HeadCurvature
from gyroformer.nn.features import NodeFeatures
from gyroformer.nn.logits import StereographicLogits
from gyroformer.ops.positions import StereographicPositions
from gyroformer.options import takes
from gyroformer.options.models import PointsOptions

if TYPE_CHECKING:
    from torch_geometric.data import Data


class Points(Network):
    r"""A point for each node, :math:`x_i = \exp_0(w_i)`, in a product of spaces whose curvatures are learned too.

    What any network in the same space is to be compared with: it is the network with everything taken away but the
    space. With features the points are linear in them, :math:`x_i = \exp_0(W f_i)`; with classes the scores are the
    product's logits (:class:`~gyroformer.nn.StereographicLogits`). Edges are seen by the task only.

    Ours, where the paper departs: its factors have signs that are chosen beforehand; here each curvature starts at 0
    and finds its sign. Its points are moved by Riemannian gradients; here their tangent vectors are, by Adam.
    """

    name = "points"
    options: PointsOptions

    @takes(PointsOptions)
    def __init__(self, options: PointsOptions) -> None:
        super().__init__(options)
        self.space = HeadCurvature(options.heads, initial=options.curvature, learn=options.learn_curvature)
        # points start near the origin: from afar a curvature would first grow, to bring them together
        self.features = NodeFeatures(
            options.in_features,
            options.dim,
            num_nodes=options.num_nodes,
            bias=False,
            dropout=self.dropout,
        )
        self.logits = StereographicLogits.of_model(options.dim, options.heads, options.classes)

    @property
    def reads_weights(self) -> bool:
        """No: it does not look at edges."""
        return False

    @property
    def curvatures(self) -> Tensor:
        """The curvatures, ``(1, heads)``."""
        return self.space().mT

    def tangent(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return the nodes as tangent vectors ``(N, heads, d)`` at the origin."""
        u = self.features(int(data.num_nodes or 0), data.x if x is None else x)
        return u.unflatten(-1, (self.options.heads, -1))

    @torch.no_grad()
    def start_at(self, vectors: Tensor) -> None:
        """Put the nodes of a new model at tangent vectors ``(N, dim)`` at the origin."""
        if self.features.table is None:
            super().start_at(vectors)
        else:
            self.features.table.weight.copy_(vectors)

    def positions(self, data: "Data", x: Tensor | None = None) -> StereographicPositions:
        """Return where the nodes are."""
        return StereographicPositions.from_tangent(self.tangent(data, x), self.space())

    def class_scores(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return class scores ``(N, classes)``."""
        assert self.logits is not None
        return self.logits.tangent(self.dropped(self.tangent(data, x)), self.space())
