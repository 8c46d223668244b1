r"""Hyperbolic attention network (Gulcehre et al., 2019) on the nodes of a graph."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gyroformer.errors import UsageError
from gyroformer.geometry.parts import length
from gyroformer.models.hat import edge_distances
from gyroformer.models.stack import CurvedLayer, TangentStack, layer_activation
from gyroformer.nn.curvature import NegativeCurvature
from gyroformer.nn.sparse import edge_softmax, edge_sum
from gyroformer.ops.distance_attention import distance_attention, score
from gyroformer.ops.lifted import lift, sine_cosine, unlift
from gyroformer.options import takes
from gyroformer.options.models import HypAttentionOptions

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: nodes up to which attention may go to all: a step of one layer of 4 heads then takes half a minute of one core
ALL_NODES = 32_768
#: length, in the stereographic chart's tangent space at the origin, of a unit vector of the hyperboloid's
UNIT = 0.5


def from_polar(x: Tensor) -> Tensor:
    r"""Return the tangent vectors :math:`r\,v/|v|` ``(..., d)`` of pseudo-polar coordinates (v, r) ``(..., d + 1)``.

    They lead from the origin of the hyperboloid to the points :math:`(\cosh r, \sinh r\,v/|v|)` (at curvature -1). A
    negative r goes the other way; v = 0 names no direction and leads nowhere.
    """
    v = x[..., :-1]
    size = length(v, -1)
    return v / torch.where(size > 0, size, 1.0) * x[..., -1:]


class HypAttentionLayer(CurvedLayer):
    """Attention by distance and Einstein midpoints; see :class:`HypAttention` for the equations."""

    def __init__(self, options: HypAttentionOptions, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        heads = self.heads = options.heads
        self.width = options.dim // heads
        self.polar = nn.Linear(options.dim, 3 * heads * (self.width + 1))
        self.space = NegativeCurvature(heads, initial=options.curvature, learn=options.learn_curvature)
        # the softplus of this is 1
        self.sharpness = nn.Parameter(torch.full((heads,), math.log(math.expm1(1.0))))
        self.threshold = nn.Parameter(torch.zeros(heads)) if options.weights == "sigmoid" else None
        self.activation = activation

    def points(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values as the chart's tangent vectors, ``(N, heads, d)`` each."""
        parts = self.polar(u).unflatten(-1, (3, self.heads, self.width + 1))
        query, key, value = (UNIT * from_polar(parts)).unbind(1)
        return query, key, value

    def forward(self, u: Tensor, matrix: Tensor) -> Tensor:
        """Return the tangent vectors ``(N, dim)`` of the midpoints.

        ``matrix`` is sparse, for attention to the neighbours, or the graph of each node, ``(N,)``, to all nodes.
        """
        query, key, value = self.points(u)
        lifted = lift(*sine_cosine(value, self.space()))
        if matrix.is_sparse:
            ambient = self.from_neighbours(query, key, lifted, matrix)
        else:
            ambient = self.from_all(query, key, lifted, matrix)
        result = (unlift(ambient, self.space()) / UNIT).flatten(-2)
        return self.activation(result)

    def from_neighbours(self, query: Tensor, key: Tensor, lifted: Tensor, matrix: Tensor) -> Tensor:
        """Return the weighted sums of the neighbours' lifted values ``(N, heads, d + 1)``."""
        target, source = matrix.indices()
        nodes = query.size(0)
        distance = edge_distances(torch.cat((query, key)), target, source + nodes, self.space())
        weight = edge_softmax(score(distance, F.softplus(self.sharpness), self.threshold), target, nodes)
        return edge_sum(weight.unsqueeze(-1) * lifted[source], target, nodes)

    def from_all(self, query: Tensor, key: Tensor, lifted: Tensor, segment: Tensor) -> Tensor:
        """Return the same over all nodes of a node's graph."""
        k = self.space()
        asked, asks = sine_cosine(key, k), sine_cosine(query, k)
        sharpness = F.softplus(self.sharpness)
        return distance_attention(asks, asked, lifted, k.flatten(), sharpness, self.threshold, segment)


class HypAttention(TangentStack):
    r"""Attention between points of the hyperboloid, its values averaged by Einstein midpoints.

    Each head reads a node's vector as three points in pseudo-polar coordinates (a direction n and a radius r from
    one linear map): a query q, a key k and a value v,

    .. math:: x = (\cosh r,\ \sinh r\,n), \qquad \alpha_{ij} \propto f(-\beta\,d(q_i, k_j) - c), \qquad
              m_i = \frac{\sum_j \alpha_{ij}\gamma_j v_j}{\sum_j \alpha_{ij}\gamma_j}, \qquad
              \gamma_j = \frac1{\sqrt{1 - |v_j|^2}},

    with values and midpoints in the Klein ball. f is exp, which makes α a softmax and c fall out (it is not kept),
    or a sigmoid; :math:`\beta > 0` and c are learned for each head. The next layer reads :math:`\sigma(\log_0 m_i)`
    of all heads; the scores are linear in it. Midpoints are summed as :math:`(\gamma, \gamma v)`, the hyperboloid's
    coordinates, which do not saturate at the edge of the ball as v does.

    The sum over j runs over all nodes of a graph, as in the paper's Transformer (``scope="all"``, quadratic, for at
    most 32,768 nodes; no matrix of all pairs is kept), or over a node's neighbours and itself (``scope="neighbours"``,
    ours: linear in the edges). The paper's is of curvature -1 without choice.

    Published code departs: there is none by the authors that we know of. Not specified, here: β is the softplus
    of a parameter and starts at 1; a linear map takes the features to ``dim`` numbers, and another these to polar
    coordinates; a negative radius goes the other way; there is no residual and no feed-forward
    part, since a layer takes the place of a graph convolution; σ is an ELU, for a ReLU may leave a head nothing to
    read a direction from, and scores much worse; without classes the last layer has no σ.
    """

    name = "hyp-attention"
    options: HypAttentionOptions
    scale = UNIT

    @takes(HypAttentionOptions)
    def __init__(self, options: HypAttentionOptions) -> None:
        super().__init__(options)
        layers, classes = options.layers, options.classes
        self.layers = nn.ModuleList(
            HypAttentionLayer(options, layer_activation(options, index)) for index in range(layers)
        )
        self.decoder = nn.Linear(options.dim, classes) if classes else None

    @property
    def reads_weights(self) -> bool:
        """No: attention alone says how much a neighbour counts."""
        return False

    def matrix(self, data: "Data") -> Tensor:
        """Return what says who attends to whom: the sparse adjacency, or the graph of each node."""
        if self.options.scope == "neighbours":
            return super().matrix(data)
        nodes = int(data.num_nodes or 0)
        if nodes > ALL_NODES:
            raise UsageError(
                f"scope='all' compares all pairs of at most {ALL_NODES} nodes, the graph has {nodes}: "
                "use scope='neighbours'"
            )
        batch = data.batch if "batch" in data else None
        if batch is None:
            return torch.zeros(nodes, dtype=torch.int64, device=next(self.parameters()).device)
        return batch
