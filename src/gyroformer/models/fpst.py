"""FPS-T, the fully product-stereographic Transformer on graphs, and TokenGT, its flat twin.

Read it against the paper: tokens (section 4.4), blocks (4.1 to 4.3), logits (4.1). The two models differ in one
line, the encoder.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gyroformer.geometry import expmap0
from gyroformer.models.base import GraphModel
from gyroformer.nn.logits import StereographicLogits
from gyroformer.nn.transformer import Encoder, FlatTransformer, StereographicTransformer
from gyroformer.ops.positions import StereographicPositions
from gyroformer.options import takes
from gyroformer.options.layers import EncoderOptions, FlatEncoderOptions
from gyroformer.options.models import FPSTOptions, TokenGTOptions, TokenizerOptions
from gyroformer.tokens import GraphTokenizer, TokenRow

if TYPE_CHECKING:
    from torch_geometric.data import Data


class GraphTransformer(GraphModel):
    """Tokens, an encoder, and class scores; subclasses choose the encoder.

    ``forward(data)`` takes a ``torch_geometric`` ``Data`` or ``Batch`` and returns points ``(N, heads, d)`` of the
    nodes, or with ``classes`` their scores ``(N, classes)``; with ``graph_token`` both are of the graphs.
    """

    options: TokenGTOptions

    def __init__(self, options: TokenGTOptions, encoder: Encoder) -> None:
        super().__init__(options)
        self.tokenizer = GraphTokenizer.of(options.part(TokenizerOptions))
        self.encoder = encoder
        self.logits = StereographicLogits.of_model(options.dim, options.heads, options.classes)

    @property
    def reads_weights(self) -> bool:
        """Whether it has eigenvectors of the weighted Laplacian."""
        return self.options.identifiers > 0

    @property
    def reads_direction(self) -> bool:
        """Whether each direction of an edge is a token of its own."""
        return self.options.edge_tokens == "directed" and self.options.identifiers > 0

    @property
    def curvatures(self) -> Tensor:
        """All curvatures, ``(layers, heads)``."""
        return self.encoder.curvatures

    def prepare(self, data: "Data") -> "Data":
        """Return a copy of ``data`` that carries its Laplacian eigenvectors and token edges."""
        return self.tokenizer.prepare(data)

    @torch.no_grad()
    def start_at(self, vectors: Tensor) -> None:
        """Put the nodes of a new model at tangent vectors ``(N, dim)``: all that is added to them starts at 0."""
        if self.tokenizer.features is None or self.tokenizer.features.table is None:
            super().start_at(vectors)
        else:
            self.tokenizer.start_at(vectors)
            self.encoder.add_nothing()

    def tangent(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return nodes (graphs, with ``graph_token``) as tangent vectors at the origin, ``(N, heads, d)``."""
        row = self.tokenizer(data, x)
        (tangent,) = row.all_nodes(self._read(row))
        return tangent

    def points(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return nodes (graphs, with ``graph_token``) as points ``(N, heads, d)`` of the last layer's space."""
        return expmap0(self.tangent(data, x), k=self.encoder.output_curvature)

    def positions(self, data: "Data", x: Tensor | None = None) -> StereographicPositions:
        """Return where the nodes (graphs, with ``graph_token``) are."""
        row = self.tokenizer(data, x)
        # the points of this process's nodes first: those of all cost more to make than to gather
        own = StereographicPositions.from_tangent(self._read(row), self.encoder.output_curvature)
        sine, cosine = row.all_nodes(own.sine, own.cosine)
        return StereographicPositions(sine, cosine, own.k)

    def class_scores(self, data: "Data", x: Tensor | None = None) -> Tensor:
        """Return the smooth product logits ``(N, classes)``."""
        assert self.logits is not None
        return self.logits.tangent(self.tangent(data, x), self.encoder.output_curvature)

    def _read(self, row: TokenRow) -> Tensor:
        """Return the nodes of a row, or its graphs with ``graph_token``, as tangent vectors."""
        if self.tokenizer.graph_type is not None:
            return self._encode(row)[-row.graphs :]
        return self._encode(row, read=row.nodes)

    def _encode(self, row: TokenRow, read: int | None = None) -> Tensor:
        """Return the tokens encoded, the first ``read`` of them (None: all)."""
        if row.segment is None:
            return self.encoder.tangent(row.tokens, read=read, part=row.part)
        if self.encoder.kind == "linear":
            return self.encoder.tangent(row.tokens, segment=row.segment, count=row.graphs, read=read)
        tokens, mask, index = row.padded()
        return self.encoder.tangent(tokens, mask).flatten(0, 1)[index[:read]]


class FPST(GraphTransformer):
    r"""The fully product-stereographic Transformer on graphs.

    Nodes and edges are tokens: their features, eigenvectors of the Laplacian that say where they are, and a vector of
    their kind. A block lets every token attend to all others and adds what it finds, each head in its own space:

    .. math:: x \leftarrow \mathrm{attention}_\kappa(\mathrm{norm}\,x) \oplus x, \qquad
              x \leftarrow \mathrm{feedforward}_\kappa(\mathrm{norm}\,x) \oplus x, \qquad
              \mathrm{attention}_\kappa(x)_i = \mathrm{mid}_\kappa\{V_j\ \text{with weight}\ \alpha_{ij}\}

    with values :math:`V = \exp_0(W^V \log_0 x)`, the midpoint of :func:`stereographic_attention`, and every other map
    between tangent vectors at the origin. All curvatures are learned and start at 0, where it is :class:`TokenGT`.

    Example:
        >>> model = FPST(0, num_nodes=34, dim=16, heads=2)          # a graph of 34 nodes without features
        >>> points = model(graph)                                   # (34, 2, 8)
    """

    name = "fpst"

    @takes(FPSTOptions)
    def __init__(self, options: FPSTOptions) -> None:
        super().__init__(options, StereographicTransformer.of(options.part(EncoderOptions)))


class TokenGT(GraphTransformer):
    r"""The flat twin of :class:`FPST`: the same tokens and parameters, an ordinary pre-norm Transformer.

    .. math:: x \leftarrow x + \mathrm{attention}(\mathrm{norm}\,x), \qquad
              x \leftarrow x + \mathrm{feedforward}(\mathrm{norm}\,x)

    As published (Kim et al., 2022, *Pure Transformers are powerful graph learners*): nodes and edges as tokens, each
    with the identifiers of its two ends and a learned type, Laplacian eigenvectors as identifiers, pre-norm blocks.

    Ours, so that nothing but the space differs from FPS-T: linear attention unless ``attention="softmax"`` (there
    softmax, or Performer's estimate of it); no token for the whole graph; random signs of eigenvectors only with
    ``flip_signs``, and no random vectors in their place; in ``embed`` nodes are compared by their distance.
    """

    name = "tokengt"

    @takes(TokenGTOptions)
    def __init__(self, options: TokenGTOptions) -> None:
        super().__init__(options, FlatTransformer.of(options.part(FlatEncoderOptions)))
