"""FPS-T, the fully product-stereographic Transformer on graphs, and TokenGT, its flat twin.

Read it against the paper: tokens (section 4.4), blocks (4.1 to 4.3), logits (4.1). The two models differ in one
line, the encoder.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from gyroformer.geometry import expmap0
from gyroformer.models.base import GraphModel, arguments
from gyroformer.nn.flat import FlatTransformer
from gyroformer.nn.logits import StereographicLogits
from gyroformer.nn.transformer import InitialCurvature, StereographicTransformer
from gyroformer.ops.positions import StereographicPositions
from gyroformer.tokens import GraphTokenizer, TokenRow

if TYPE_CHECKING:
    from torch_geometric.data import Data


class GraphTransformer(GraphModel):
    """Tokens, an encoder, and class scores; subclasses choose the encoder.

    ``forward(data)`` takes a ``torch_geometric`` ``Data`` or ``Batch`` and returns points ``(N, heads, d)`` of the
    nodes, or with ``classes`` their scores ``(N, classes)``; with ``graph_token`` both are of the graphs.
    """

    encoder: StereographicTransformer | FlatTransformer

    def __init__(
        self,
        encoder: StereographicTransformer | FlatTransformer,
        config: dict[str, Any],
    ) -> None:
        super().__init__()
        self.config = config
        tokens = {key: config[key] for key in TOKEN_OPTIONS}
        self.tokenizer = GraphTokenizer(config["in_features"], encoder.dim, **tokens)
        self.encoder = encoder
        classes = self.classes
        self.logits = (
            StereographicLogits(encoder.dim, encoder.heads, classes, curvature=None) if classes else None
        )

    @property
    def curvatures(self) -> Tensor:
        """All curvatures, ``(layers, heads)``."""
        return self.encoder.curvatures

    def prepare(self, data: "Data") -> "Data":
        """Compute the Laplacian eigenvectors and the token edges of ``data`` once."""
        return self.tokenizer.prepare(data)

    def tangent(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return nodes (graphs, with ``graph_token``) as tangent vectors at the origin, ``(N, heads, d)``."""
        row = self.tokenizer(data, x)
        u = self._encode(row)
        return u[-row.graphs :] if self.tokenizer.graph_type is not None else u[: row.nodes]

    def points(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return nodes (graphs, with ``graph_token``) as points ``(N, heads, d)`` of the last layer's space."""
        return expmap0(self.tangent(data, x), k=self.encoder.output_curvature)

    def positions(self, data: "Data", x: Tensor | None = None) -> StereographicPositions:
        """Return where the nodes (graphs, with ``graph_token``) are."""
        return StereographicPositions.from_tangent(self.tangent(data, x), self.encoder.output_curvature)

    def scores(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return the smooth product logits ``(N, classes)``."""
        assert self.logits is not None, "the model was built without classes"
        return self.logits.tangent(self.tangent(data, x), self.encoder.output_curvature)

    def forward(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return class scores if the model has classes, else points; ``x`` replaces the graph's features."""
        return self.points(data, x) if self.logits is None else self.scores(data, x)

    def _encode(self, row: TokenRow) -> Tensor:
        if row.segment is None:
            return self.encoder.tangent(row.tokens)
        if self.config["attention"] == "linear":
            return self.encoder.tangent(row.tokens, segment=row.segment, count=row.graphs)
        tokens, mask, place = row.padded()
        return self.encoder.tangent(tokens, mask).flatten(0, 1)[place]


class FPST(GraphTransformer):
    """The fully product-stereographic Transformer on graphs.

    Example:
        >>> model = FPST(0, num_nodes=34, dim=16, heads=2)          # a graph without features
        >>> points = model(gf.load("karate"))                       # (34, 2, 8)

    Args:
        in_features: width of the node features; 0 for none.
        dim: width, all heads together.
        heads: number of heads.
        layers: number of blocks.
        classes: number of classes; None to return points.
        num_nodes: learned vectors for this many nodes, for a graph without features.
        identifiers: number of Laplacian eigenvectors.
        identifier_norm: ``"unit"``, or ``"entry"`` for eigenvectors times the root of the number of nodes.
        feature_dropout: share of the node features dropped in training.
        edge_tokens: ``"undirected"``, ``"directed"`` or ``"none"``.
        edge_features: width of ``edge_attr``.
        graph_token: whether results are of graphs instead of nodes.
        flip_signs: whether training draws random signs of the eigenvectors.
        ffn_dim: inner width of the feed-forward parts.
        attention: ``"linear"`` or ``"softmax"``.
        norm: whether to normalise before each part.
        final_norm: whether to normalise the result in the tangent space.
        dropout: share of values dropped in the blocks.
        dropout_kind: ``"tangent"`` or ``"weight"``.
        activation: one of relu, elu, tanh, sigmoid, gelu.
        curvature: initial curvatures.
        learn_curvature: whether training changes them.
        share_curvature: one curvature for all heads of a layer.
    """

    name = "fpst"

    def __init__(
        self,
        in_features: int,
        *,
        dim: int = 16,
        heads: int = 2,
        layers: int = 1,
        classes: int | None = None,
        num_nodes: int | None = None,
        identifiers: int = 16,
        identifier_norm: str = "unit",
        feature_dropout: float = 0.0,
        edge_tokens: str = "undirected",
        edge_features: int = 0,
        graph_token: bool = False,
        flip_signs: bool = False,
        ffn_dim: int | None = None,
        attention: str = "linear",
        norm: bool = True,
        final_norm: bool = False,
        dropout: float = 0.0,
        dropout_kind: str = "tangent",
        activation: str = "relu",
        curvature: InitialCurvature = 0.0,
        learn_curvature: bool = True,
        share_curvature: bool = False,
    ) -> None:
        config = arguments(locals())
        options = {key: config[key] for key in (*ENCODER_OPTIONS, *CURVATURE_OPTIONS)}
        super().__init__(StereographicTransformer(**options), config)


class TokenGT(GraphTransformer):
    """The flat twin of :class:`FPST`: the same tokens and parameters, an ordinary pre-norm Transformer.

    Arguments are those of :class:`FPST` without the curvatures.
    """

    name = "tokengt"

    def __init__(
        self,
        in_features: int,
        *,
        dim: int = 16,
        heads: int = 2,
        layers: int = 1,
        classes: int | None = None,
        num_nodes: int | None = None,
        identifiers: int = 16,
        identifier_norm: str = "unit",
        feature_dropout: float = 0.0,
        edge_tokens: str = "undirected",
        edge_features: int = 0,
        graph_token: bool = False,
        flip_signs: bool = False,
        ffn_dim: int | None = None,
        attention: str = "linear",
        norm: bool = True,
        final_norm: bool = False,
        dropout: float = 0.0,
        dropout_kind: str = "tangent",
        activation: str = "relu",
    ) -> None:
        config = arguments(locals())
        options = {key: config[key] for key in ENCODER_OPTIONS}
        super().__init__(FlatTransformer(**options), config)


TOKEN_OPTIONS: Sequence[str] = (
    "num_nodes",
    "identifiers",
    "identifier_norm",
    "feature_dropout",
    "edge_tokens",
    "edge_features",
    "graph_token",
    "flip_signs",
)
ENCODER_OPTIONS: Sequence[str] = (
    "dim",
    "heads",
    "layers",
    "ffn_dim",
    "attention",
    "norm",
    "final_norm",
    "dropout",
    "dropout_kind",
    "activation",
)
CURVATURE_OPTIONS: Sequence[str] = ("curvature", "learn_curvature", "share_curvature")
