r"""HAT (Zhang, Wang, Shi, Jiang and Ye, 2021): hyperbolic graph attention by distance."""

from collections.abc import Callable

from torch import Tensor, nn

from gyroformer.geometry.trig import arsin_ratio, safe_sqrt
from gyroformer.models.base import arguments
from gyroformer.models.tangent_stack import CurvedLayer, TangentStack
from gyroformer.nn.curvature import NegativeCurvature, head_width
from gyroformer.nn.sparse import edge_softmax, edge_sum
from gyroformer.nn.tangent import activation_named
from gyroformer.nn.translation import MobiusBias
from gyroformer.ops.lifted import sine_cosine


def edge_distances(u: Tensor, target: Tensor, source: Tensor, k: Tensor) -> Tensor:
    """Return the distances ``(E, heads)`` along edges, of tangent vectors ``(N, heads, d)``; ``k (heads, 1)``."""
    sine, cosine = sine_cosine(u, k)
    between = cosine[source] * sine[target] - cosine[target] * sine[source]
    square = (between * between).sum(-1)
    return 2 * safe_sqrt(square) * arsin_ratio(k.squeeze(-1) * square)


class HATLayer(CurvedLayer):
    """Linear map, bias, attention by distance, activation; see :class:`HAT` for the equations.

    Args:
        linear: the linear map of the joined tangent vectors.
        heads: number of heads.
        width: width of a head.
        curvature: initial curvature, negative.
        learn_curvature: whether training changes it.
        activation: σ, applied in the tangent space at the origin.
    """

    def __init__(
        self,
        linear: nn.Module,
        heads: int,
        width: int,
        *,
        curvature: float,
        learn_curvature: bool,
        activation: Callable[[Tensor], Tensor],
    ) -> None:
        super().__init__()
        self.linear = linear
        self.bias = MobiusBias(heads, width)
        self.space = NegativeCurvature(heads, initial=curvature, learn=learn_curvature)
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

    Args:
        in_features: width of the node features; 0 for none.
        dim: width, all heads together.
        heads: number of heads.
        layers: number of layers; the scores' linear map comes on top.
        classes: number of classes; None to return points.
        num_nodes: learned vectors for this many nodes, for a graph without features.
        dropout: share of values dropped before each linear map; None for 0.5 with classes, else 0.
        activation: one of relu, elu, tanh, sigmoid, gelu.
        curvature: initial curvature of each head, negative.
        learn_curvature: whether training changes them (the paper's are fixed); they stay negative.
    """

    name = "hat"

    def __init__(
        self,
        in_features: int,
        *,
        dim: int = 16,
        heads: int = 4,
        layers: int = 2,
        classes: int | None = None,
        num_nodes: int | None = None,
        dropout: float | None = None,
        activation: str = "elu",
        curvature: float = -1.0,
        learn_curvature: bool = False,
    ) -> None:
        super().__init__(arguments(locals()))
        width = head_width(dim, heads)
        self.layers = nn.ModuleList(
            HATLayer(
                nn.Linear(dim, dim, bias=False) if place else nn.Identity(),
                heads,
                width,
                curvature=curvature,
                learn_curvature=learn_curvature,
                activation=activation_named(activation),
            )
            for place in range(layers)
        )
        self.decoder = nn.Linear(dim, classes) if classes else None
