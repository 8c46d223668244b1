r"""Graph tokens: features, node identifiers and type identifiers, added up.

.. math:: t_u = x_u + [P_u \| P_u]\,W + E_\mathrm{node}, \qquad t_{uv} = x_{uv} + [P_u \| P_v]\,W + E_\mathrm{edge}

An undirected edge is one token; it takes the mean over its two directions, so that the numbering of the nodes
does not matter. Tokens of many graphs lie in one row: all nodes, all edges, then one token a graph if wanted.
"""

import dataclasses as dc
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.spectral.laplacian import flip_signs
from gyroformer.nn.features import NodeFeatures
from gyroformer.tokens.prepare import EDGE_TOKENS, has_identifiers, prepare_graph

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dc.dataclass(frozen=True, slots=True)
class TokenRow:
    """Tokens of one or many graphs in one row.

    Attributes:
        tokens: ``(T, dim)``: nodes, then edges, then graphs.
        nodes: number of node tokens, the first in the row.
        segment: ``(T,)``, the graph of each token; None for a single graph.
        graphs: number of graphs.
    """

    tokens: Tensor
    nodes: int
    segment: Tensor | None
    graphs: int

    def padded(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return tokens ``(B, N, dim)``, mask ``(B, N)`` and the place ``(T,)`` of each token in ``B * N``."""
        assert self.segment is not None
        counts = self.segment.bincount(minlength=self.graphs)
        width = int(counts.max())
        order = self.segment.argsort(stable=True)
        start = counts.cumsum(0) - counts
        rank = torch.empty_like(order)
        rank[order] = torch.arange(order.numel(), device=order.device) - start[self.segment[order]]
        place = self.segment * width + rank
        tokens = self.tokens.new_zeros(self.graphs * width, self.tokens.size(1)).index_copy(
            0, place, self.tokens
        )
        mask = torch.zeros(self.graphs * width, dtype=torch.bool, device=tokens.device).index_fill(
            0, place, True
        )
        return tokens.unflatten(0, (self.graphs, width)), mask.unflatten(0, (self.graphs, width)), place


class GraphTokenizer(nn.Module):
    """Makes the tokens of a graph, or of a batch of graphs.

    Args:
        in_features: width of the node features; 0 for none.
        dim: width of the tokens.
        num_nodes: for a graph without features: its number of nodes, each with a learned vector of its own (what
            one-hot features and a linear map amount to, without the N x N matrix).
        identifiers: number of Laplacian eigenvectors; 0 for none.
        identifier_norm: ``"unit"``, or ``"entry"`` for eigenvectors times the root of the number of nodes.
        feature_dropout: share of the node features dropped in training.
        edge_tokens: ``"undirected"`` (each edge once), ``"directed"`` (each stored direction) or ``"none"``.
        edge_features: width of ``edge_attr``; 0 for none.
        graph_token: whether each graph has a token of its own.
        flip_signs: whether training draws a random sign for each eigenvector in each step.
    """

    def __init__(
        self,
        in_features: int,
        dim: int,
        *,
        num_nodes: int | None = None,
        identifiers: int = 16,
        identifier_norm: str = "unit",
        feature_dropout: float = 0.0,
        edge_tokens: str = "undirected",
        edge_features: int = 0,
        graph_token: bool = False,
        flip_signs: bool = False,
    ) -> None:
        super().__init__()
        if edge_tokens not in EDGE_TOKENS:
            raise UsageError(f"edge_tokens must be one of {', '.join(EDGE_TOKENS)}; got {edge_tokens!r}")
        if not in_features and not num_nodes and not identifiers:
            raise UsageError("tokens need node features, num_nodes (learned vectors) or identifiers")
        self.dim, self.identifiers, self.edge_tokens = dim, identifiers, edge_tokens
        self.identifier_norm = identifier_norm
        self.flip_signs = flip_signs
        self.features = (
            NodeFeatures(in_features, dim, num_nodes=num_nodes, dropout=feature_dropout)
            if in_features or num_nodes
            else None
        )
        self.identifier_map = nn.Linear(2 * identifiers, dim, bias=False) if identifiers else None
        self.edge_map = nn.Linear(edge_features, dim) if edge_features and edge_tokens != "none" else None
        self.node_type = nn.Parameter(torch.empty(dim))
        self.edge_type = nn.Parameter(torch.empty(dim)) if edge_tokens != "none" else None
        self.graph_type = nn.Parameter(torch.empty(dim)) if graph_token else None
        for vector in (self.node_type, self.edge_type, self.graph_type):
            if vector is not None:
                nn.init.normal_(vector, std=dim**-0.5)

    def prepare(self, data: "Data") -> "Data":
        """Give one graph the eigenvectors and the token edges that this tokenizer needs, and return it."""
        return prepare_graph(
            data,
            identifiers=self.identifiers,
            identifier_norm=self.identifier_norm,
            edge_tokens=self.edge_tokens,
        )

    def forward(self, data: "Data", x: Tensor | None = None) -> TokenRow:
        """Return the tokens of ``data``, one graph or a ``Batch``; ``x`` replaces its node features."""
        prepared = self._prepared(data)
        first, second = self._identifier_parts(prepared)
        nodes = int(prepared.num_nodes or 0)
        rows = [self._node_tokens(prepared, prepared.x if x is None else x, first + second)]
        batch = prepared.batch if "batch" in prepared else None
        segments = [batch]
        if self.edge_type is not None:
            rows.append(self._edge_tokens(prepared, first, second))
            segments.append(None if batch is None else batch[prepared.token_edge_index[0]])
        graphs = 1 if batch is None else int(prepared.num_graphs)
        if self.graph_type is not None:
            rows.append(self.graph_type.expand(graphs, self.dim))
            segments.append(None if batch is None else torch.arange(graphs, device=batch.device))
        segment = None if batch is None else torch.cat([s for s in segments if s is not None])
        return TokenRow(torch.cat(rows), nodes, segment, graphs)

    def _prepared(self, data: "Data") -> "Data":
        """Return ``data`` with identifiers and token edges; a batch must bring them (see ``prepare_graph``)."""
        if "batch" not in data or data.batch is None:
            return self.prepare(data)
        needed = ["identifiers"] * bool(self.identifiers) + ["token_edge_index"] * (
            self.edge_tokens != "none"
        )
        missing = [name for name in needed if name not in data]
        if missing:
            raise DataError(
                f"the batch has no {' and no '.join(missing)}: call gyroformer.tokens.prepare_graph on each graph "
                "before batching"
            )
        if self.identifiers:
            has_identifiers(data, self.identifiers)
        return data

    def _identifier_parts(self, data: "Data") -> tuple[Tensor, Tensor]:
        """Return P W₁ and P W₂, ``(N, dim)`` each, for W = [W₁; W₂]."""
        if self.identifier_map is None:
            zero = self.node_type.new_zeros(1, self.dim)
            return zero, zero
        vectors = data.identifiers.to(self.node_type.dtype)
        if self.flip_signs and self.training:
            vectors = flip_signs(vectors)
        left, right = self.identifier_map.weight.chunk(2, dim=1)
        return vectors @ left.mT, vectors @ right.mT

    def _node_tokens(self, data: "Data", x: Tensor | None, identifier: Tensor) -> Tensor:
        nodes = int(data.num_nodes or 0)
        base = (self.node_type + identifier).expand(nodes, self.dim)
        return base if self.features is None else base + self.features(nodes, x)

    def _edge_tokens(self, data: "Data", first: Tensor, second: Tensor) -> Tensor:
        assert self.edge_type is not None
        source, target = data.token_edge_index
        if self.edge_tokens == "undirected":
            both = 0.5 * (first + second)
            first = second = both
        tokens = self.edge_type.expand(source.numel(), self.dim)
        if self.identifier_map is not None:
            tokens = tokens + first[source] + second[target]
        if self.edge_map is None:
            return tokens
        if "token_edge_attr" not in data or data.token_edge_attr.size(-1) != self.edge_map.in_features:
            raise DataError(f"edges need features of width {self.edge_map.in_features} (data.edge_attr)")
        return tokens + self.edge_map(data.token_edge_attr.to(tokens.dtype))
