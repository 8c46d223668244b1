r"""Graph geometry interaction learning, GIL (Zhu et al. 2020): a hyperbolic and a flat stream that talk.

A layer has one attention convolution for each stream. With :math:`u = \log_0 x` and :math:`y = W \otimes x \oplus b`
in the ball (curvature :math:`\kappa < 0`),

.. math:: x_i \leftarrow \exp_0\sigma\Bigl(\sum_{j \in N(i) \cup \{i\}} \alpha_{ij} \log_0 y_j\Bigr), \qquad
          \alpha_{ij} = \mathrm{softmax}_j\,\mathrm{LeakyReLU}(f_{ij}\,a^\top[\log_0 y_i \| \log_0 y_j]),

for each head, where the distance factor is :math:`f_{ij} = \mathrm{softmax}_j(d(y_i, y_j))`; the flat stream h is an
ordinary graph attention. Then each stream takes from the other, by its distance and a learned weight that starts at 0:

.. math:: x \leftarrow x \oplus (\beta\,d(x, \exp_0 h)) \otimes \exp_0 h, \qquad
          h \leftarrow h + \beta'\,|\log_0 x - h|^2 \log_0 x .

Classes: one more convolution in each stream; hyperplanes in the ball give the scores :math:`s_x`, graph attention
gives :math:`s_h`, and **each node's own** weights mix the **probabilities**:

.. math:: p = w_x \mathrm{softmax}(s_x) + w_h \mathrm{softmax}(s_h), \qquad
          (w_x, w_h) \propto (\mathrm{sigmoid}(a_x^\top \log_0 x), \mathrm{sigmoid}(a_h^\top s_h)) .

The scores returned are :math:`\log p`, so that a cross-entropy of them is the one of p.

Published code departs: it mixes scores instead of probabilities, and takes the weights of the last node for all nodes,
so that its results depend on the numbering; its curvature is 1 whatever was asked for. The factor that grows with the
distance is the published one; ``distance="fall"`` uses :math:`\mathrm{softmax}_j(-d)`, with which near neighbours
weigh more. Not kept: dropout of weights and of the exchange (features and coefficients are dropped, as in GAT), and
the second bias after the aggregation. Ours: both exchanges use the streams as they were before them (there the flat one
reads the ball that has just been changed); the scores of the ball are the hyperplanes' signed distances times their
vectors' lengths (there the length is one learned number for each class); without classes nodes are compared by the
distance of the product (there two probabilities of an edge are mixed by learned weights), and the last layer has no
:math:`\sigma`.
"""

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gyroformer.geometry.trig import safe_sqrt
from gyroformer.models.stack import LayeredModel
from gyroformer.nn.curvature import NegativeCurvature
from gyroformer.nn.logits import StereographicLogits
from gyroformer.nn.sparse import edge_softmax, edge_sum, neighbour_edges
from gyroformer.nn.tangent import ACTIVATIONS
from gyroformer.ops.lifted import sine_cosine, translate
from gyroformer.ops.positions import StereographicPositions
from gyroformer.options import takes
from gyroformer.options.models import GILOptions

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: how the distance of a neighbour acts on its score: sign of d in the softmax, or no factor
DISTANCES = {"grow": 1.0, "fall": -1.0, "none": 0.0}
#: of the leaky rectifier of attention scores, as in GAT
SLOPE = 0.2


class HyperbolicAttention(nn.Module):
    """Attention over neighbours in the ball, aggregated at the origin (see the module for the equation).

    Args:
        before: width of the input.
        after: width of the result, all heads together.
        heads: number of heads.
        distance: one of ``DISTANCES``.
        dropout: fraction of the coefficients dropped.
    """

    def __init__(self, before: int, after: int, heads: int, *, distance: str, dropout: float) -> None:
        super().__init__()
        width = after // heads
        self.heads, self.sign, self.dropout = heads, DISTANCES[distance], dropout
        self.linear = nn.Linear(before, after, bias=False)
        self.bias = nn.Parameter(torch.zeros(after))
        self.source = nn.Parameter(torch.empty(heads, width))
        self.target = nn.Parameter(torch.empty(heads, width))
        for vector in (self.source, self.target):
            nn.init.xavier_uniform_(vector)

    def forward(self, u: Tensor, edges: Tensor, k: Tensor) -> Tensor:
        """Return tangent vectors ``(N, after)`` for ``(N, before)``, before the activation; ``k (1, 1)``."""
        moved, sine, cosine = translate(
            sine_cosine(self.linear(u), k), *sine_cosine(self.bias.unsqueeze(0), k), k
        )
        source, target = edges
        value = moved.unflatten(-1, (self.heads, -1))
        score = (value * self.source).sum(-1)[source] + (value * self.target).sum(-1)[target]
        if self.sign:
            points = StereographicPositions(sine.unsqueeze(1), cosine.unsqueeze(1), k)
            away = safe_sqrt(points.pair_squared_dist(source, target))
            score = score * edge_softmax(self.sign * away, target, u.size(0)).unsqueeze(-1)
        weight = edge_softmax(F.leaky_relu(score, SLOPE), target, u.size(0))
        weight = F.dropout(weight, self.dropout, self.training)
        return edge_sum(weight.unsqueeze(-1) * value[source], target, u.size(0)).flatten(-2)


class Exchange(nn.Module):
    """What each stream takes from the other (see the module for the equation)."""

    def __init__(self) -> None:
        super().__init__()
        self.to_ball = nn.Parameter(torch.zeros(()))
        self.to_flat = nn.Parameter(torch.zeros(()))

    def forward(self, u: Tensor, h: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Return the streams after the exchange; ``u`` are tangent vectors, both ``(N, dim)``."""
        both = StereographicPositions.from_tangent(torch.cat((u, h)).unsqueeze(1), k)
        nodes = torch.arange(len(u), device=u.device)
        away = safe_sqrt(both.pair_squared_dist(nodes, nodes + len(u))).unsqueeze(-1)
        taken = sine_cosine(self.to_ball * away * h, k)
        here = both.sine[: len(u), 0], both.cosine[: len(u), 0]
        moved, _, _ = translate(here, *taken, k)
        apart = (u - h).square().sum(-1, keepdim=True)
        return moved, h + self.to_flat * apart * u


class GIL(LayeredModel):
    """Graph geometry interaction learning (see the module for the equations)."""

    name = "gil"
    options: GILOptions

    @takes(GILOptions)
    def __init__(self, options: GILOptions) -> None:
        super().__init__(options)
        from torch_geometric.nn import GATConv

        dim, heads, classes = options.dim, options.heads, options.classes
        self.activation = ACTIVATIONS[options.activation]
        self.ball_space = NegativeCurvature(1, initial=options.curvature, learn=options.learn_curvature)

        def ball(before: int, heads: int) -> HyperbolicAttention:
            return HyperbolicAttention(before, dim, heads, distance=options.distance, dropout=self.dropout)

        def flat(before: int, after: int, heads: int) -> nn.Module:
            return GATConv(before, after // heads, heads, dropout=self.dropout, add_self_loops=False)

        widths = [self.input.width, *[dim] * (options.layers - 1)]
        self.ball = nn.ModuleList(ball(width, heads) for width in widths)
        self.flat = nn.ModuleList(flat(width, dim, heads) for width in widths)
        self.exchange = nn.ModuleList(Exchange() for _ in widths)
        if classes:
            self.ball_decoder, self.flat_decoder = ball(dim, 1), flat(dim, classes, 1)
            self.logits = StereographicLogits(dim, 1, classes, curvature=None)
            self.ball_weight = nn.Linear(dim, 1, bias=False)
            self.flat_weight = nn.Linear(classes, 1, bias=False)

    @property
    def reads_weights(self) -> bool:
        """No: attention alone says how much a neighbour counts."""
        return False

    @property
    def curvatures(self) -> Tensor:
        """The curvatures of the ball and of the flat space, ``(layers, 2)``."""
        return self._curvature().mT.expand(self.options.layers, -1)

    def prepare(self, data: "Data") -> "Data":
        """Sort out the neighbourhoods once."""
        neighbour_edges(data, loops=True)
        return data

    def streams(self, data: "Data", x: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the hyperbolic stream as tangent vectors and the flat stream, both ``(N, dim)``."""
        edges, k = neighbour_edges(data, loops=True), self.ball_space()
        u = h = self.input_vectors(data, x)
        for index in range(len(self.ball)):
            if index:
                u, h = self.dropped(u), self.dropped(h)
            u, h = self.ball[index](u, edges, k), self.flat[index](h, edges)
            if self.classes or index + 1 < len(self.ball):
                u, h = self.activation(u), self.activation(h)
            u, h = self.exchange[index](u, h, k)
        return u, h

    def positions(self, data: "Data", x: Tensor | None = None) -> StereographicPositions:
        """Return where the nodes are in the product of the ball and the flat space."""
        u, h = self.streams(data, x)
        # a stereographic space at k = 0 measures twice the Euclidean distance
        return StereographicPositions.from_tangent(torch.stack((u, 0.5 * h), 1), self._curvature())

    def class_scores(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return the logarithms ``(N, classes)`` of the mixed probabilities."""
        (u, h), edges, k = self.streams(data, x), neighbour_edges(data, loops=True), self.ball_space()
        u = self.activation(self.ball_decoder(self.dropped(u), edges, k))
        ball, flat = self.logits.tangent(u.unsqueeze(1), k), self.flat_decoder(self.dropped(h), edges)
        weight = F.logsigmoid(torch.cat((self.ball_weight(u), self.flat_weight(flat)), -1))
        mixing = weight - weight.logsumexp(-1, keepdim=True)
        mixed = torch.stack((ball.log_softmax(-1), flat.log_softmax(-1)), -1) + mixing.unsqueeze(1)
        return mixed.logsumexp(-1)

    def _curvature(self) -> Tensor:
        """Return the curvatures of the product, ``(2, 1)``."""
        k = self.ball_space()
        return torch.cat((k, torch.zeros_like(k)))
