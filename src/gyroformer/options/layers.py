"""Options of the layers: curvatures, linear maps, attention, blocks and encoders."""

from collections.abc import Sequence
from typing import Literal

from gyroformer.errors import UsageError
from gyroformer.options.declare import Options, option

ActivationName = Literal["relu", "elu", "tanh", "sigmoid", "gelu"]
AttentionKind = Literal["linear", "softmax", "none"]
DropoutKind = Literal["tangent", "weight"]
#: a value for all, one for each head, or one list of these for each layer
InitialCurvature = float | Sequence[float] | Sequence[Sequence[float]]

#: sizes beyond which nothing fits into any memory: a mistyped number is refused before anything is built
MAX_WIDTH, MAX_LAYERS, MAX_HEADS = 65_536, 1_000, 4_096
#: features, classes or nodes that no graph has which this program can read
MAX_COLUMNS, MAX_NODES = 100_000_000, 10_000_000_000
#: |k| beyond which single precision has no distances left between points one unit apart
MAX_CURVATURE = 1e4


class CurvatureOptions(Options):
    """The curvatures of a layer, or of several."""

    curvature: InitialCurvature = option(
        "initial curvature: one for all, one for each head, or a list of these for each layer",
        default=0.0,
        at_least=-MAX_CURVATURE,
        at_most=MAX_CURVATURE,
    )
    learn_curvature: bool = option("whether training changes the curvatures", default=True)
    share_curvature: bool = option("one curvature for all heads of a layer", default=False)


class HeadOptions(CurvatureOptions):
    """A layer on a product of spaces, one for each head."""

    heads: int = option(
        "number of heads, the factors of the product", default=1, at_least=1, at_most=MAX_HEADS
    )


class LinearOptions(HeadOptions):
    """A linear map of points."""

    in_features: int = option(
        "width of the input, all heads together", at_least=1, at_most=MAX_COLUMNS, kw_only=False
    )
    out_features: int = option(
        "width of the output, all heads together", at_least=1, at_most=MAX_COLUMNS, kw_only=False
    )
    bias: bool = option("whether to add a bias in the tangent space", default=True)
    weight_dropout: float = option(
        "fraction of the weights set to zero in each training step", default=0.0, at_least=0, below=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        head_width(self.in_features, self.heads, "in_features")
        head_width(self.out_features, self.heads, "out_features")


class ActivationOptions(HeadOptions):
    """An activation of points."""

    activation: ActivationName = option("activation function", default="relu", kw_only=False)


class LayerNormOptions(HeadOptions):
    """Layer normalisation of points."""

    dim: int = option("width, all heads together", at_least=1, at_most=MAX_WIDTH, kw_only=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        head_width(self.dim, self.heads)


class SizeOptions(Options):
    """The width of a layer and its heads."""

    dim: int = option("width, all heads together", at_least=1, at_most=MAX_WIDTH, kw_only=False)
    heads: int = option("number of heads", at_least=1, at_most=MAX_HEADS, kw_only=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        head_width(self.dim, self.heads)


class FlatAttentionOptions(SizeOptions):
    """Multi-head attention of vectors."""

    kind: AttentionKind = option(
        "linear (feature map ELU + 1, linear in the number of tokens), softmax, or none: each token to itself alone",
        default="linear",
    )
    bias: bool = option("whether the maps have a bias", default=True)
    weight_dropout: float = option(
        "fraction of the weights set to zero in each training step", default=0.0, at_least=0, below=1
    )


class AttentionOptions(CurvatureOptions, FlatAttentionOptions):
    """Multi-head attention of points."""


class FlatBlockOptions(SizeOptions):
    """A pre-norm Transformer block."""

    ffn_dim: int | None = option(
        "inner width of the feed-forward part; none for dim, as in the paper's code",
        default=None,
        at_least=1,
        at_most=MAX_WIDTH,
    )
    attention: AttentionKind = option(
        "linear (time and memory linear in the number of tokens), softmax, or none: each token to itself alone",
        default="linear",
    )
    norm: bool = option("whether to normalise before each part", default=True)
    dropout: float = option("fraction of values dropped in training", default=0.0, at_least=0, below=1)
    dropout_kind: DropoutKind = option(
        "what is dropped: tangent, coordinates of tangent vectors, or weight, entries of the weights",
        default="tangent",
    )
    activation: ActivationName = option("activation function", default="relu")

    @property
    def weight_dropout(self) -> float:
        """The dropout of weights."""
        return self.dropout if self.dropout_kind == "weight" else 0.0

    @property
    def tangent_dropout(self) -> float:
        """The dropout of tangent vectors."""
        return self.dropout if self.dropout_kind == "tangent" else 0.0


class BlockOptions(CurvatureOptions, FlatBlockOptions):
    """A Transformer block on a product of spaces."""


class FlatEncoderOptions(FlatBlockOptions):
    """A stack of pre-norm Transformer blocks."""

    layers: int = option("number of layers", at_least=1, at_most=MAX_LAYERS, kw_only=False)
    final_norm: bool = option("whether to normalise the last block's result", default=False)


class EncoderOptions(CurvatureOptions, FlatEncoderOptions):
    """A stack of Transformer blocks on products of spaces."""


class SequenceEncoderOptions(CurvatureOptions):
    """An encoder of sequences, by the names of torch's own."""

    d_model: int = option("width, all heads together", at_least=1, at_most=MAX_WIDTH, kw_only=False)
    nhead: int = option("number of heads", at_least=1, at_most=MAX_HEADS, kw_only=False)
    num_layers: int = option("number of layers", at_least=1, at_most=MAX_LAYERS, kw_only=False)
    dim_feedforward: int = option(
        "inner width of the feed-forward part", default=2048, at_least=1, at_most=MAX_WIDTH
    )
    dropout: float = option("fraction of values dropped in training", default=0.1, at_least=0, below=1)
    activation: ActivationName = option("activation function", default="relu")
    layer_norm_eps: float = option("what is added to the variance in layer norms", default=1e-5, above=0)
    batch_first: bool = option(
        "whether sequences are (batch, tokens, width) and not (tokens, batch, width)", default=False
    )
    norm_first: bool = option(
        "whether to normalise before each part and not after each sum; trains more easily", default=False
    )
    bias: bool = option("whether maps and norms have a bias", default=True)
    final_norm: bool = option("whether to normalise the last block's result", default=False)
    attention: AttentionKind = option(
        "softmax, linear (time and memory linear in the number of tokens), or none: each token to itself alone",
        default="softmax",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model % self.nhead:
            raise UsageError(
                f"d_model must be a multiple of nhead, got d_model={self.d_model} and nhead={self.nhead}"
            )


class LogitsOptions(CurvatureOptions, SizeOptions):
    """Class scores of points."""

    classes: int = option("number of classes", at_least=1, at_most=MAX_COLUMNS, kw_only=False)
    curvature: InitialCurvature | None = option(  # type: ignore[assignment]
        "initial curvature, one for all heads or one for each; none if every call brings its own",
        default=0.0,
        at_least=-MAX_CURVATURE,
        at_most=MAX_CURVATURE,
    )


def head_width(dim: int, heads: int, name: str = "dim") -> int:
    """Return ``dim / heads``, or raise if the heads do not divide it."""
    if dim < 1 or dim % heads:
        raise UsageError(f"{name} must be a positive multiple of heads, got {name}={dim} and heads={heads}")
    return dim // heads
