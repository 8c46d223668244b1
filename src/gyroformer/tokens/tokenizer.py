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
from gyroformer.ops.attention import Part
from gyroformer.options import FromOptions, takes
from gyroformer.options.models import TokenizerOptions
from gyroformer.processes.group import count as processes
from gyroformer.processes.tensors import gathered_at_once, share, taken
from gyroformer.tokens.prepare import GraphTokens, graph_tokens, prepare_graph

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
        part: which tokens of the graph these are, where several processes have some each; None for all.
    """

    tokens: Tensor
    nodes: int
    segment: Tensor | None
    graphs: int
    part: Part | None = None

    def all_nodes(self, *made: Tensor) -> tuple[Tensor, ...]:
        """Return what was made of these nodes, ``(nodes, ...)`` each, with what other processes made of the others."""
        return made if self.part is None else gathered_at_once(made, self.part.first)

    def padded(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return tokens ``(B, N, dim)``, mask ``(B, N)`` and the index ``(T,)`` of each token in ``B * N``."""
        assert self.segment is not None
        counts = self.segment.bincount(minlength=self.graphs)
        width = int(counts.max())
        order = self.segment.argsort(stable=True)
        start = counts.cumsum(0) - counts
        rank = torch.empty_like(order)
        rank[order] = torch.arange(order.numel(), device=order.device) - start[self.segment[order]]
        index = self.segment * width + rank
        tokens = self.tokens.new_zeros(self.graphs * width, self.tokens.size(1)).index_copy(
            0, index, self.tokens
        )
        mask = torch.zeros(self.graphs * width, dtype=torch.bool, device=tokens.device).index_fill(
            0, index, True
        )
        return tokens.unflatten(0, (self.graphs, width)), mask.unflatten(0, (self.graphs, width)), index


class GraphTokenizer(FromOptions, nn.Module):
    """Makes the tokens of a graph, or of a batch of graphs.

    A graph without features has learned vectors for its nodes: what one-hot features and a linear map amount to,
    without the N x N matrix.
    """

    @takes(TokenizerOptions)
    def __init__(self, options: TokenizerOptions) -> None:
        super().__init__()
        in_features, num_nodes, width = options.in_features, options.num_nodes, options.identifiers
        if not in_features and not num_nodes and not width:
            raise UsageError("tokens need node features, num_nodes (learned vectors) or identifiers")
        self.options, self.dim = options, options.dim
        self.features = (
            NodeFeatures(in_features, self.dim, num_nodes=num_nodes, dropout=options.feature_dropout)
            if in_features or num_nodes
            else None
        )
        has_edges = options.edge_tokens != "none"
        self.identifier_map = nn.Linear(2 * width, self.dim, bias=False) if width else None
        self.edge_map = (
            nn.Linear(options.edge_features, self.dim) if options.edge_features and has_edges else None
        )
        self.node_type = nn.Parameter(torch.empty(self.dim))
        self.edge_type = nn.Parameter(torch.empty(self.dim)) if has_edges else None
        self.graph_type = nn.Parameter(torch.empty(self.dim)) if options.graph_token else None
        for vector in (self.node_type, self.edge_type, self.graph_type):
            if vector is not None:
                nn.init.normal_(vector, std=self.dim**-0.5)

    @torch.no_grad()
    def start_at(self, vectors: Tensor) -> None:
        """Make ``vectors (N, dim)`` the tokens of the nodes: their learned vectors, with nothing added."""
        assert self.features is not None
        assert self.features.table is not None
        self.features.table.weight.copy_(vectors)
        self.node_type.zero_()
        if self.identifier_map is not None:
            self.identifier_map.weight.zero_()

    def prepare(self, data: "Data") -> "Data":
        """Return a copy of one graph that carries the eigenvectors and the token edges that this tokenizer needs."""
        options = self.options
        return prepare_graph(
            data,
            identifiers=options.identifiers,
            identifier_norm=options.identifier_norm,
            edge_tokens=options.edge_tokens,
        )

    def forward(self, data: "Data", x: Tensor | None = None) -> TokenRow:
        """Return the tokens of ``data``, one graph or a ``Batch``; ``x`` replaces its node features.

        Where several processes compute as one, each has some of a graph's nodes and some of its edges.
        """
        nodes = int(data.num_nodes or 0)
        if nodes == 0:
            raise DataError("the graph has no node: there is nothing to encode")
        prepared = graph_tokens(data, self.options)
        first, second = self._identifier_parts(prepared)
        batch = data.batch if "batch" in data else None
        # graphs of a batch are too small to be shared, and there is one token only for a whole graph
        whole = batch is not None or self.graph_type is not None or processes() == 1
        some = slice(0, nodes) if whole else share(nodes)
        rows = [self._node_tokens(nodes, data.x if x is None else x, first + second, some)]
        segments, places, total = [batch], [some], nodes
        if self.edge_type is not None:
            assert prepared.edges is not None
            edges = prepared.edges.size(1)
            mine = slice(0, edges) if whole else share(edges)
            rows.append(self._edge_tokens(prepared.some_edges(mine), first, second))
            places.append(slice(nodes + mine.start, nodes + mine.stop))
            total += edges
            segments.append(None if batch is None else batch[prepared.edges[0]])
        graphs = 1 if batch is None else int(data.num_graphs)
        if self.graph_type is not None:
            rows.append(self.graph_type.expand(graphs, self.dim))
            segments.append(None if batch is None else torch.arange(graphs, device=batch.device))
        segment = None if batch is None else torch.cat([s for s in segments if s is not None])
        part = None if whole else Part(tuple(places), total, nodes)
        return TokenRow(torch.cat(rows), some.stop - some.start, segment, graphs, part)

    def _identifier_parts(self, prepared: GraphTokens) -> tuple[Tensor, Tensor]:
        """Return P W₁ and P W₂, ``(N, dim)`` each, for W = [W₁; W₂]."""
        if self.identifier_map is None:
            zero = self.node_type.new_zeros(1, self.dim)
            return zero, zero
        assert prepared.identifiers is not None
        vectors = prepared.identifiers.to(self.node_type.dtype)
        if self.options.flip_signs and self.training:
            vectors = flip_signs(vectors)
        left, right = self.identifier_map.weight.chunk(2, dim=1)
        return vectors @ left.mT, vectors @ right.mT

    def _node_tokens(self, nodes: int, x: Tensor | None, identifier: Tensor, some: slice) -> Tensor:
        base = taken((self.node_type + identifier).expand(nodes, self.dim), some)
        return base if self.features is None else base + self.features(nodes, x, some)

    def _edge_tokens(self, prepared: GraphTokens, first: Tensor, second: Tensor) -> Tensor:
        assert self.edge_type is not None
        assert prepared.edges is not None
        source, target = prepared.edges
        if self.options.edge_tokens == "undirected":
            both = 0.5 * (first + second)
            first = second = both
        tokens = self.edge_type.expand(source.numel(), self.dim)
        if self.identifier_map is not None:
            tokens = tokens + first.index_select(0, source) + second.index_select(0, target)
        if self.edge_map is None:
            return tokens
        features = prepared.edge_features
        if features is None or features.size(-1) != self.edge_map.in_features:
            raise DataError(f"edges need features of width {self.edge_map.in_features} (data.edge_attr)")
        return tokens + self.edge_map(features.to(tokens.dtype))
