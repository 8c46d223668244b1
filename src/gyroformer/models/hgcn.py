r"""HGCN (Chami, Ying, Ré and Leskovec, 2019): graph convolution in hyperbolic space."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from gyroformer.models.stack import CurvedLayer, TangentStack, layer_activation
from gyroformer.nn.curvature import MobiusBias, NegativeCurvature
from gyroformer.nn.sparse import edge_softmax, edge_sum, propagate
from gyroformer.ops.lifted import sine_cosine, translate_hyperbolic
from gyroformer.options import takes
from gyroformer.options.models import HGCNOptions

#: the length, in the stereographic chart's tangent space at the origin, of a unit vector of each model's: the
#: ball's metric is 2 there, the hyperboloid's is 1
SCALES = {"hyperboloid": 0.5, "poincare": 1.0}
#: slope of the attention's score below zero; any bend will do, see :class:`NeighbourAttention`
SLOPE = 0.2


class NeighbourAttention(nn.Module):
    r"""Weights :math:`\mathrm{softmax}_{j \in N(i)}\ \rho(\langle a, u_i\rangle + \langle b, u_j\rangle + c)`.

    ρ is a leaky ReLU: with a linear score the part of i would be the same for all its neighbours and fall out of
    the softmax.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.score = nn.Linear(dim, 2)

    def forward(self, u: Tensor, target: Tensor, source: Tensor) -> Tensor:
        """Return the weight ``(E,)`` of each edge from tangent vectors ``(N, dim)``."""
        centre, neighbour = self.score(u).unbind(-1)
        score = F.leaky_relu(centre[target] + neighbour[source], SLOPE)
        return edge_softmax(score, target, u.size(0))


def centre_mean(u: Tensor, weight: Tensor, target: Tensor, source: Tensor, k: Tensor) -> Tensor:
    r"""Return each node's mean of its neighbours, taken in the tangent space at the node itself.

    .. math:: \exp_{x_i}\Bigl(\sum_j w_{ij}\log_{x_i}(x_j)\Bigr)
              = x_i \oplus \exp_0\Bigl(\sum_j w_{ij}\log_0\bigl((-x_i) \oplus x_j\bigr)\Bigr)

    for points given and returned as tangent vectors ``(N, d)`` at the origin; ``weight``, ``target`` and
    ``source`` are those of the edges, ``(E,)``.
    """
    sine, cosine = sine_cosine(u, k)
    seen = translate_hyperbolic((-sine[target], cosine[target]), sine[source], cosine[source], k)
    mean = edge_sum(weight.unsqueeze(-1) * seen, target, u.size(0))
    return translate_hyperbolic((sine, cosine), *sine_cosine(mean, k), k)


class HGCNLayer(CurvedLayer):
    """Linear map, bias, mean of the neighbours, activation; see :class:`HGCN` for the arguments."""

    def __init__(
        self, linear: nn.Module, options: HGCNOptions, activation: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.linear = linear
        self.bias = MobiusBias(1, options.dim)
        self.attention = NeighbourAttention(options.dim) if options.attention else None
        self.space = NegativeCurvature(1, initial=options.curvature, learn=options.learn_curvature)
        self.activation = activation
        self.scale = SCALES[options.manifold]
        self.aggregation = options.aggregation

    def forward(self, u: Tensor, matrix: Tensor) -> Tensor:
        """Return the convolved tangent vectors ``(N, dim)``; ``matrix`` is the mean over neighbours."""
        k = self.space()
        u = self.bias(self.linear(u).unsqueeze(-2), k, self.scale).squeeze(-2)
        return self.activation(self.aggregate(u, matrix, k))

    def aggregate(self, u: Tensor, matrix: Tensor, k: Tensor) -> Tensor:
        """Return the means over the neighbours."""
        if self.aggregation == "origin" and self.attention is None:
            return propagate(matrix, u)
        target, source = matrix.indices()
        weight = matrix.values() if self.attention is None else self.attention(u, target, source)
        if self.aggregation == "origin":
            return edge_sum(weight.unsqueeze(-1) * u[source], target, u.size(0))
        return centre_mean(self.scale * u, weight, target, source, k) / self.scale


class HGCN(TangentStack):
    r"""Graph convolution in a hyperbolic space of learned curvature for each layer.

    .. math:: h_i = \exp_0(W \log_0 x_i) \oplus \exp_0(b), \qquad
              y_i = \exp_o\Bigl(\sum_{j \in N(i)} w_{ij}\log_o h_j\Bigr), \qquad
              x'_i = \exp_0^{k'}\bigl(\sigma(\log_0^{k} y_i)\bigr)

    with o the origin or the node :math:`h_i` itself (``aggregation``), N(i) with i, and :math:`w_{ij}` equal for
    all neighbours or a softmax of :math:`[\log_0 h_i, \log_0 h_j]` (``attention``). The features are tangent
    vectors at the origin of the first space. The scores are linear in :math:`\log_0` of the last points.

    The two manifolds are isometric; they differ in what a unit of the tangent space at the origin is, a distance
    of 1 on the hyperboloid, of 2 in the ball. So ``"hyperboloid"`` is the ball with half the tangent vectors, and
    neither needs the hyperboloid's coordinates, whose squares cancel.

    As :math:`k \to 0` it becomes :math:`\sigma(\bar A(XW + b))` with the mean over neighbours :math:`\bar A`.
    With ``aggregation="origin"`` only the bias and the final distances see the curvature: everything else is
    linear in one tangent space, or is an activation there.

    The paper writes one curvature more than there are layers; here the last layer stays in its own space, so that
    each layer has one.

    Published code departs: attention is a sigmoid on a dense matrix, without a softmax, and off; the mean at the
    centre loops over the nodes; the curvature is an unconstrained parameter, which a step can carry past zero;
    dropout is on the weights; squared distances stop at 50.

    Its ``--num-layers 2`` counts the decoder in classification, and is ``layers=1`` here, the default.

    Ours: on the hyperboloid ``dim`` does not count the time coordinate, as it does there; the weights of inner layers
    start as torch's linear layers do, smaller than there; without classes the last layer has no σ, which would confine
    the points to one orthant, and no mean with what the linear map has made, as the code of Q-GCN has it for HGCN.
    """

    name = "hgcn"
    options: HGCNOptions
    norm = "row"

    @takes(HGCNOptions)
    def __init__(self, options: HGCNOptions) -> None:
        super().__init__(options)
        self.scale = SCALES[options.manifold]
        dim = options.dim
        self.layers = nn.ModuleList(
            HGCNLayer(
                nn.Linear(dim, dim, bias=False) if index else nn.Identity(),
                options,
                layer_activation(options, index),
            )
            for index in range(options.layers)
        )
        self.decoder = nn.Linear(dim, options.classes) if options.classes else None

    @property
    def reads_weights(self) -> bool:
        """Unless attention alone says how much a neighbour counts."""
        return not self.options.attention
