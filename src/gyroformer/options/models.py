"""Options of the graph models. A model's class is built as ``Model(in_features, dim=16, …)`` from the class here."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from gyroformer.errors import UsageError
from gyroformer.options.declare import Options, option
from gyroformer.options.layers import (
    MAX_COLUMNS,
    MAX_CURVATURE,
    MAX_HEADS,
    MAX_LAYERS,
    MAX_NODES,
    MAX_WIDTH,
    ActivationName,
    CurvatureOptions,
    FlatEncoderOptions,
    head_width,
)

EdgeTokens = Literal["undirected", "directed", "none"]
IdentifierNorm = Literal["unit", "entry"]
#: activations that make no coordinate longer, so that they map a ball into itself
ShrinkingName = Literal["elu", "gelu", "relu", "tanh"]

#: eigenvectors beyond which computing them takes longer than any training
MAX_IDENTIFIERS = 4_096


class GraphModelOptions(Options):
    """What the graph and the task decide about a model; the rest is the user's choice."""

    in_features: int = option(
        "width of the node features; 0 for none", at_least=0, at_most=MAX_COLUMNS, kw_only=False
    )
    classes: int | None = option(
        "number of classes; none to return points", default=None, at_least=2, at_most=MAX_COLUMNS
    )
    num_nodes: int | None = option(
        "learn a vector for each of so many nodes, for a graph without features",
        default=None,
        at_least=1,
        at_most=MAX_NODES,
    )

    @property
    def width(self) -> int:
        """Free coordinates of a node inside the model, all spaces together; never those of the class scores."""
        raise NotImplementedError


#: names of the options that no user sets for a job
DECIDED_BY_GRAPH = frozenset(("in_features", "classes", "num_nodes"))


class TokenOptions(Options):
    """How a graph becomes tokens."""

    identifiers: int = option(
        "number of Laplacian eigenvectors; 0 for none", default=16, at_least=0, at_most=MAX_IDENTIFIERS
    )
    identifier_norm: IdentifierNorm = option(
        "size of the eigenvectors: unit, length 1, or entry, length the root of the number of nodes",
        default="unit",
    )
    feature_dropout: float = option(
        "fraction of the node features dropped in training", default=0.0, at_least=0, below=1
    )
    edge_tokens: EdgeTokens = option(
        "which edges become tokens: undirected, each once, directed, each stored direction, or none",
        default="undirected",
    )
    edge_features: int = option("width of edge_attr; 0 for none", default=0, at_least=0, at_most=MAX_COLUMNS)
    graph_token: bool = option(
        "whether each graph has a token of its own, whose result is returned", default=False
    )
    flip_signs: bool = option(
        "whether training draws a random sign for each eigenvector in each step", default=False
    )


class TokenizerOptions(TokenOptions, GraphModelOptions):
    """A tokenizer by itself."""

    dim: int = option("width of the tokens", at_least=1, at_most=MAX_WIDTH, kw_only=False)


class TokenGTOptions(FlatEncoderOptions, TokenOptions, GraphModelOptions):
    """TokenGT."""

    dim: int = option(default=16)
    heads: int = option(default=2)
    layers: int = option(default=1)

    @property
    def width(self) -> int:
        """The width of the tokens."""
        return self.dim


class FPSTOptions(CurvatureOptions, TokenGTOptions):
    """FPS-T."""


class NodeModelOptions(GraphModelOptions):
    """What all models on nodes, rather than tokens, share."""

    #: the dropout of the model's paper or of what it builds on, for classification
    usual_dropout: ClassVar[float] = 0.5

    dim: int = option("width, all heads together", default=16, at_least=1, at_most=MAX_WIDTH)
    dropout: float | None = option(
        "fraction of values dropped in training; none for the paper's with classes, else 0",
        default=None,
        at_least=0,
        below=1,
    )

    @property
    def width(self) -> int:
        """The width, all heads together; a linear classifier (SGC) has no vectors inside, and takes it for points."""
        return self.dim

    @property
    def used_dropout(self) -> float:
        """The dropout, where None stands for the paper's with classes and for 0 without.

        Noise keeps a classifier from learning its few labels by heart, and only blurs points.
        """
        if self.dropout is not None:
            return self.dropout
        return self.usual_dropout if self.classes else 0.0


class PointsOptions(NodeModelOptions):
    """Free points."""

    heads: int = option("number of factors of the space", default=2, at_least=1, at_most=MAX_HEADS)
    curvature: float | Sequence[float] = option(
        "initial curvatures, one for all factors or one for each",
        default=0.0,
        at_least=-MAX_CURVATURE,
        at_most=MAX_CURVATURE,
    )
    learn_curvature: bool = option("whether training changes the curvatures", default=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        head_width(self.dim, self.heads)


class NetworkOptions(NodeModelOptions):
    """What all graph networks share."""

    layers: int = option("number of layers", default=2, at_least=1, at_most=MAX_LAYERS)


class ActiveOptions(NetworkOptions):
    """A network with an activation between its layers."""

    activation: ActivationName = option("activation function", default="relu")


class MultiHeadOptions(ActiveOptions):
    """A network with several heads, or components of a product."""

    heads: int = option("number of heads or components", default=4, at_least=1, at_most=MAX_HEADS)

    def __post_init__(self) -> None:
        super().__post_init__()
        head_width(self.dim, self.heads)


class HyperbolicOptions(Options):
    """Spaces that stay hyperbolic."""

    curvature: float = option("initial curvature, negative", default=-1.0, below=0, at_least=-MAX_CURVATURE)
    learn_curvature: bool = option("whether training changes the curvatures", default=True)


class MLPOptions(ActiveOptions):
    """Multi-layer perceptron."""


class GCNOptions(ActiveOptions):
    """Graph convolutional network."""


class SAGEOptions(ActiveOptions):
    """GraphSAGE."""


class GATOptions(MultiHeadOptions):
    """Graph attention network."""

    usual_dropout: ClassVar[float] = 0.6
    activation: ActivationName = option(default="elu")


class SGCOptions(NetworkOptions):
    """Simplified graph convolution."""

    usual_dropout: ClassVar[float] = 0.0
    layers: int = option("number of propagation steps, K", default=2, at_least=1, at_most=MAX_LAYERS)


class HGCNOptions(HyperbolicOptions, ActiveOptions):
    """HGCN."""

    layers: int = option(default=1)
    manifold: Literal["hyperboloid", "poincare"] = option(
        "model of hyperbolic space: hyperboloid or poincare, which differ in the unit of length",
        default="hyperboloid",
    )
    aggregation: Literal["origin", "centre"] = option(
        "where neighbours are averaged: in the tangent space at the origin, or as in the paper's text at the centre",
        default="origin",
    )
    attention: bool = option("whether neighbours have learned weights", default=False)


class HGNNOptions(HyperbolicOptions, ActiveOptions):
    """HGNN."""

    activation: ShrinkingName = option(
        "activation of the ball's coordinates; sigmoid, and the published SELU, would lead out of the ball",
        default="elu",
    )
    centroids: int = option("number of centroids", default=64, at_least=1, at_most=MAX_WIDTH)
    learn_curvature: bool = option(default=False)


class HATOptions(HyperbolicOptions, MultiHeadOptions):
    """HAT."""

    activation: ActivationName = option(default="elu")
    learn_curvature: bool = option(default=False)


class KappaGCNOptions(MultiHeadOptions):
    """κ-GCN."""

    heads: int = option(default=2)
    layers: int = option(default=1)
    curvature: float | Sequence[float] = option(
        "initial curvatures, one for all components or one for each",
        default=0.0,
        at_least=-MAX_CURVATURE,
        at_most=MAX_CURVATURE,
    )
    learn_curvature: bool = option("whether training changes the curvatures", default=True)


class QGCNOptions(HyperbolicOptions, ActiveOptions):
    """Q-GCN."""

    layers: int = option(default=1)
    time_dim: int = option("number of time coordinates, from 1 to dim", default=1, at_least=1)
    skip: bool | None = option(
        "whether each layer returns the mean of the sum over neighbours and the node's own vector; none for the "
        "published choice, yes without classes and no with",
        default=None,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim < 2:
            raise UsageError(
                f"dim must be at least 2, got {self.dim}: a point has a coordinate more than its space"
            )
        if self.time_dim > self.dim:
            raise UsageError(f"time_dim must be from 1 to dim, {self.dim}; got {self.time_dim}")

    @property
    def width(self) -> int:
        """One less than the coordinates of a point, which lies on a surface."""
        return self.dim - 1


class GILOptions(HyperbolicOptions, MultiHeadOptions):
    """GIL."""

    usual_dropout: ClassVar[float] = 0.6
    heads: int = option(default=8)
    layers: int = option(default=1)
    activation: ActivationName = option(default="elu")
    learn_curvature: bool = option(default=False)
    distance: Literal["grow", "fall", "none"] = option(
        "how a neighbour's distance acts on its weight", default="grow"
    )

    @property
    def width(self) -> int:
        """That of the hyperbolic and the flat stream together."""
        return 2 * self.dim


class FMGNNOptions(ActiveOptions):
    """FMGNN."""

    landmarks: int = option("number of landmarks in each space", default=32, at_least=1, at_most=MAX_WIDTH)
    curvature: Sequence[float] = option(
        "initial curvatures of the hyperbolic and the spherical branch",
        default=(-1.0, 1.0),
        at_least=-MAX_CURVATURE,
        at_most=MAX_CURVATURE,
    )
    learn_curvature: bool = option("whether training changes the curvatures", default=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        curvature = list(self.curvature)
        if len(curvature) != 2 or not curvature[0] < 0 < curvature[1]:
            raise UsageError(f"curvature must be a negative and a positive number, got {self.curvature}")

    @property
    def width(self) -> int:
        """That of the flat, the hyperbolic and the spherical branch together."""
        return 3 * self.dim


class HypAttentionOptions(HyperbolicOptions, MultiHeadOptions):
    """Hyperbolic attention network."""

    layers: int = option(default=1)
    activation: ActivationName = option(default="elu")
    scope: Literal["neighbours", "all"] = option("which nodes a node attends to", default="all")
    weights: Literal["softmax", "sigmoid"] = option("how distances become weights", default="softmax")
    learn_curvature: bool = option(default=False)


class HypformerOptions(HyperbolicOptions, MultiHeadOptions):
    """Hypformer."""

    heads: int = option(default=1)
    layers: int = option(default=1)
    power: float = option("power of the focused feature map", default=2.0, at_least=1, at_most=100)
    graph_layers: int = option(
        "number of graph convolutions; 0 for a Transformer that does not see the edges",
        default=2,
        at_least=0,
        at_most=MAX_LAYERS,
    )
    graph_weight: float = option(
        "weight of the graph branch; the attention has the rest", default=0.8, at_least=0, below=1
    )
    refine: bool = option(
        "whether layer norm and activation follow the first map, and layer norm each block", default=False
    )
    learn_curvature: bool = option(default=False)
