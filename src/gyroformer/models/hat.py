r"""HAT (Zhang, Wang, Shi, Jiang and Ye, 2021): hyperbolic graph attention by distance."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from gyroformer.geometry.trig import safe_sqrt
from gyroformer.models.stack import CurvedLayer, TangentStack, layer_activation
from gyroformer.nn.curvature import MobiusBias, NegativeCurvature
from gyroformer.nn.sparse import edge_softmax, edge_sum
from gyroformer.ops.lifted import sine_cosine
from gyroformer.ops.pairs import pair_squared_dist
from gyroformer.options import takes
from gyroformer.options.models import HATOptions


def edge_distances(u: Tensor, target: Tensor, source: Tensor, k: Tensor) -> Tensor:
    """Return the distances ``(E, heads)`` along edges, of tangent vectors ``(N, heads, d)``; ``k (heads, 1)``."""
    sine, cosine = sine_cosine(u, k)
    squares = [
        pair_squared_dist(sine[:, h : h + 1], cosine[:, h : h + 1], k[h : h + 1], source, target)
        for h in range(k.size(0))
    ]
    return safe_sqrt(torch.stack(squares, -1))


class HATLayer(CurvedLayer):
    """Linear map, bias, attention by distance, activation; see :class:`HAT` for the equations."""

    def __init__(
        self, linear: nn.Module, options: HATOptions, activation: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        heads = options.heads
        self.linear = linear
        self.bias = MobiusBias(heads, options.dim // heads)
        self.space = NegativeCurvature(heads, initial=options.curvature, learn=options.learn_curvature)
        self.activation = activation

    def mapped(self, u: Tensor) -> Tensor:
        """Return the points h' between which attention goes, as tangent vectors ``(N, heads, d)``."""
        k = self.space()
        return self.bias(self.linear(u).unflatten(-1, (k.size(0), -1)), k)

    def weights(self, mapped: Tensor, target: Tensor, source: Tensor) -> Tensor:
        """Return the attention of each edge in each head, ``(E, heads)``: the nearer, the more."""
        distance = edge_distances(mapped, target, source, self.space())
        return edge_softmax(-distance, target, mapped.size(0))

    def forward(self, u: Tensor, matrix: Tensor) -> Tensor:
        """Return the tangent vectors ``(N, dim)`` of the next points; of ``matrix`` only the pattern counts."""
        target, source = matrix.indices()
        mapped = self.mapped(u)
        weight = self.weights(mapped, target, source).unsqueeze(-1)
        return self.activation(edge_sum(weight * mapped[source], target, u.size(0)).flatten(-2))


class HAT(TangentStack):
    r"""Graph attention on a product of hyperbolic spaces, its weights given by distance.

    .. math:: h'_i = \exp_0(W \log_0 h_i) \oplus \exp_0(b), \qquad
              \alpha_{ij} = \mathrm{softmax}_{j \in N(i)}\bigl(-d(h'_i, h'_j)\bigr), \qquad
              h_i \leftarrow \sigma^{\otimes}\Bigl(\exp_0\bigl(\sum_j \alpha_{ij}\log_0 h'_j\bigr)\Bigr)

    N(i) contains i. Each head is a factor of the product with distances and weights of its own; W maps the joined
    tangent vectors of all factors. The scores are linear in :math:`\log_0` of the last points.

    Published code departs: none by the authors is known to us. The re-implementation that is usually compared with
    has the score of a flat graph attention network, without any distance, and adds the bias twice.

    Ours: ``layers`` does not count the linear map to the scores; the weights of inner layers start as torch's linear
    layers do; without classes the last layer has no σ, which would confine the points to one orthant.
    """

    name = "hat"

    @takes(HATOptions)
    def __init__(self, options: HATOptions) -> None:
        super().__init__(options)
        dim = options.dim
        self.layers = nn.ModuleList(
            HATLayer(
                nn.Linear(dim, dim, bias=False) if index else nn.Identity(),
                options,
                layer_activation(options, index),
            )
            for index in range(options.layers)
        )
        self.decoder = nn.Linear(dim, options.classes) if options.classes else None

    @property
    def reads_weights(self) -> bool:
        """No: attention alone says how much a neighbour counts."""
        return False
