"""What is computed once for a graph before it becomes tokens: node identifiers, and the edges that are tokens.

Nothing is written into the caller's graph. For one graph the results are kept with its edges
(:mod:`gyroformer.graphs.derived`). :func:`prepare_graph` returns a copy that carries them under names that
``torch_geometric`` batches correctly, with what they were made from: a model with other options, or a graph whose edges
were replaced, does not take them for its own.
"""

import copy
import dataclasses as dc
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gyroformer.cache import user_cache
from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.derived import derived, derived_weighted
from gyroformer.graphs.spectral.laplacian import laplacian_identifiers
from gyroformer.operators import untraced
from gyroformer.options.models import EdgeTokens, IdentifierNorm, TokenOptions

if TYPE_CHECKING:
    from torch_geometric.data import Data

_log = logging.getLogger(__name__)

#: nodes from which eigenvectors, which then take half a minute and more, are kept in the user's cache folder
KEPT_NODES = 100_000
#: odd constants of a hash of edges: any large ones do, int64 wraps
_MIX = (0x9E3779B97F4A7C15 - 2**64, 0x2545F4914F6CDD1D, 0x2127599BF4325C37)


@dc.dataclass(frozen=True)
class GraphTokens:
    """What the tokenizer needs of a graph, or of a batch of graphs, on the graph's device.

    Attributes:
        identifiers: Laplacian eigenvectors ``(N, identifiers)``; None for none.
        edges: the edges that are tokens, ``(2, M)``; None for none.
        edge_features: their features ``(M, F)``; None if the graph has no ``edge_attr``.
    """

    identifiers: Tensor | None
    edges: Tensor | None
    edge_features: Tensor | None

    def some_edges(self, some: slice) -> "GraphTokens":
        """Return the same with some of the edges only."""
        if self.edges is None or some == slice(0, self.edges.size(1)):
            return self
        features = None if self.edge_features is None else self.edge_features[some]
        return GraphTokens(self.identifiers, self.edges[:, some], features)


@untraced
def graph_tokens(data: "Data", options: TokenOptions) -> GraphTokens:
    """Return what the tokenizer needs of ``data``, one graph or a ``Batch``: what it carries, else computed."""
    _check(data)
    edges, features = _edges(data, options)
    return GraphTokens(_identifiers(data, options), edges, features)


def prepare_graph(
    data: "Data",
    *,
    identifiers: int = 16,
    identifier_norm: IdentifierNorm = "unit",
    edge_tokens: EdgeTokens = "undirected",
    cache: Path | str | None = None,
) -> "Data":
    """Return a copy of ``data`` that carries what the tokenizer needs; graphs are prepared before they are batched.

    Args:
        data: one graph (not a batch).
        identifiers: number of Laplacian eigenvectors, carried as ``identifiers (N, identifiers)``.
        identifier_norm: ``"unit"`` or ``"entry"``: their length is 1 or the root of the number of nodes.
        edge_tokens: ``"undirected"``, ``"directed"`` or ``"none"``; the edges are carried as ``token_edge_index
            (2, M)``, their features, if the graph has ``edge_attr``, as ``token_edge_attr``.
        cache: folder where eigenvectors are kept between runs; by default those of a large graph are kept in the
            user's cache folder.
    """
    options = TokenOptions(identifiers=identifiers, identifier_norm=identifier_norm, edge_tokens=edge_tokens)
    _check(data)
    vectors = _identifiers(data, options, cache)
    edges, features = _edges(data, options)
    prepared = copy.copy(data)
    prepared.made_from = fingerprint(data)
    if vectors is not None:
        prepared.identifiers = vectors
        if not _by_user(data):
            prepared.identifiers_are = _identifier_name(options)
    if edges is not None:
        prepared.token_edge_index, prepared.tokens_are = edges, edge_tokens
    if features is not None:
        prepared.token_edge_attr = features
    return prepared


def fingerprint(data: "Data") -> Tensor:
    """Return a number for the edges of each graph, ``(graphs,)``, whatever their order."""
    edges = data.edge_index
    batch = data.batch if "batch" in data else None
    if batch is None:
        graph, graphs, start = edges.new_zeros(edges.size(1)), 1, edges.new_zeros(1)
    else:
        graph, graphs, start = batch[edges[0]], int(data.num_graphs), data.ptr
    source, target = edges - start[graph]
    mixed = source * _MIX[0] + (target + 1) * _MIX[1]
    mixed = (mixed ^ (mixed >> 29)) * _MIX[2]
    return edges.new_zeros(graphs).index_add(0, graph, mixed ^ (mixed >> 32))


def _check(data: "Data") -> None:
    if data.edge_index is None:
        raise DataError("the graph has no edge_index; give an empty one, shape (2, 0), if there is no edge")


def _is(data: "Data", name: str, wanted: str) -> bool:
    """Return whether what the graph, or each graph of the batch, carries was made as wanted from its present edges."""
    if name not in data or "made_from" not in data:
        return False
    said = data[name] if isinstance(data[name], list) else [data[name]]
    made_from = data.made_from
    same = derived(
        data.edge_index, ("same edges", data.num_nodes), lambda: torch.equal(fingerprint(data), made_from)
    )
    return same and all(one == wanted for one in said)


def _by_user(data: "Data") -> bool:
    """Return whether the graph has identifiers that a user put there."""
    return "identifiers" in data and "identifiers_are" not in data


def _identifier_name(options: TokenOptions) -> str:
    return f"{options.identifiers} {options.identifier_norm}"


def _identifiers(data: "Data", options: TokenOptions, cache: Path | str | None = None) -> Tensor | None:
    """Return the identifiers ``(N, identifiers)`` of one graph or of a batch."""
    if not options.identifiers:
        return None
    if _by_user(data):
        _check_width(data, options.identifiers)
        return data.identifiers
    name = _identifier_name(options)
    if _is(data, "identifiers_are", name):
        return data.identifiers
    batched = "batch" in data and data.batch is not None
    graphs = data.to_data_list() if batched else [data]
    return derived_weighted(
        data.edge_index,
        data.edge_weight if "edge_weight" in data else None,
        ("identifiers", data.num_nodes, name),
        lambda: torch.cat([_eigenvectors(one, options, cache) for one in graphs]),
    )


def _check_width(data: "Data", width: int) -> None:
    if data.identifiers.dim() != 2 or data.identifiers.size(1) != width:
        raise DataError(
            f"data.identifiers has the shape {tuple(data.identifiers.shape)}, the model takes "
            f"({data.num_nodes}, {width}): remove it, or build the model with identifiers={data.identifiers.size(-1)}"
        )


def _usual_cache(nodes: int) -> Path | None:
    """Return where the eigenvectors of a large graph are kept: whoever asks a run of it, or resumes it, needs them."""
    if nodes < KEPT_NODES:
        return None
    try:
        return user_cache() / "eigenvectors"
    except UsageError as error:
        _log.warning("Laplacian eigenvectors are not kept for the next time: %s", error)
        return None


def _eigenvectors(data: "Data", options: TokenOptions, cache: Path | str | None) -> Tensor:
    nodes, width, device = int(data.num_nodes or 0), options.identifiers, data.edge_index.device
    if not nodes:
        return torch.zeros(0, width, device=device)
    # each component its own: of the whole graph's smallest, a scattered graph gets component numbers only
    weight = data.edge_weight if "edge_weight" in data else None
    found = laplacian_identifiers(
        data.edge_index, nodes, width, scope="component", weight=weight, cache=cache or _usual_cache(nodes)
    )
    scale = nodes**0.5 if options.identifier_norm == "entry" else 1.0
    return (found.vectors.float() * scale).to(device)


def _edges(data: "Data", options: TokenOptions) -> tuple[Tensor | None, Tensor | None]:
    """Return the edges that are tokens and their features."""
    kind, nodes = options.edge_tokens, int(data.num_nodes or 0)
    if kind == "none":
        return None, None
    if _is(data, "tokens_are", kind):
        return data.token_edge_index, data.token_edge_attr if "token_edge_attr" in data else None
    edge_index = data.edge_index
    edges, index = derived(
        edge_index, ("token edges", nodes, kind), lambda: token_edges(edge_index, kind, nodes)
    )
    attributes = data.edge_attr if "edge_attr" in data else None
    return edges, None if attributes is None else token_features(attributes, index, edges.size(1))


def token_edges(edge_index: Tensor, kind: EdgeTokens, nodes: int) -> tuple[Tensor, Tensor]:
    """Return the edges ``(2, M)`` that become tokens and, of each stored edge, the index of its token ``(E,)``."""
    if kind == "directed":
        # a copy: what is derived from edges must not keep them alive
        return edge_index.clone(), torch.arange(edge_index.size(1), device=edge_index.device)
    low, high = edge_index.min(0).values, edge_index.max(0).values
    pairs, index = torch.unique(low * nodes + high, return_inverse=True)
    return torch.stack((pairs.div(nodes, rounding_mode="floor"), pairs % nodes)), index


def token_features(attributes: Tensor, index: Tensor, count: int) -> Tensor:
    """Return the features ``(M, F)`` of token edges, averaged over the stored edges of each."""
    flat = attributes if attributes.dim() == 2 else attributes.unsqueeze(-1)
    sums = flat.new_zeros(count, flat.size(1)).index_add(0, index, flat)
    return sums / index.bincount(minlength=count).unsqueeze(-1)
