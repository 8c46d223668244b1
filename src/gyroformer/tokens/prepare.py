"""What is computed once for a graph before it becomes tokens: its edges as tokens, its node identifiers.

Results are stored in the ``Data`` itself, under names that ``torch_geometric`` batches correctly.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.spectral.laplacian import laplacian_identifiers

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: which edges become tokens: each pair once, each stored direction, or none
EDGE_TOKENS = ("undirected", "directed", "none")
#: size of the eigenvectors: length 1, or entries of root-mean-square size 1 (length √n)
IDENTIFIER_NORMS = ("unit", "entry")


def prepare_graph(
    data: "Data",
    *,
    identifiers: int = 16,
    identifier_norm: str = "unit",
    edge_tokens: str = "undirected",
    cache: Path | str | None = None,
) -> "Data":
    """Give ``data`` what the tokenizer needs, and return it; what it has already is kept.

    Args:
        data: one graph (not a batch).
        identifiers: number of Laplacian eigenvectors, stored as ``data.identifiers (N, identifiers)``.
        identifier_norm: ``"unit"`` or ``"entry"``: their length is 1 or the root of the number of nodes.
        edge_tokens: one of ``EDGE_TOKENS``; the edges are stored as ``data.token_edge_index (2, M)``, their
            features, if the graph has ``edge_attr``, as ``data.token_edge_attr``.
        cache: folder where eigenvectors are kept between runs.
    """
    if edge_tokens not in EDGE_TOKENS:
        raise UsageError(f"edge_tokens must be one of {', '.join(EDGE_TOKENS)}; got {edge_tokens!r}")
    if identifier_norm not in IDENTIFIER_NORMS:
        raise UsageError(
            f"identifier_norm must be one of {', '.join(IDENTIFIER_NORMS)}; got {identifier_norm!r}"
        )
    nodes = int(data.num_nodes or 0)
    if nodes == 0:
        raise DataError("the graph has no node: there is nothing to encode")
    if data.edge_index is None:
        raise DataError("the graph has no edge_index; give an empty one, shape (2, 0), if there is no edge")
    if identifiers and not has_identifiers(data, identifiers):
        # each component its own: of the whole graph's smallest, a scattered graph gets component numbers only
        found = laplacian_identifiers(data.edge_index, nodes, identifiers, scope="component", cache=cache)
        data.identifiers = found.vectors.float() * (nodes**0.5 if identifier_norm == "entry" else 1.0)
    if edge_tokens != "none" and "token_edge_index" not in data:
        attributes = data.edge_attr if "edge_attr" in data else None
        data.token_edge_index, token_attributes = token_edges(data.edge_index, attributes, edge_tokens, nodes)
        if token_attributes is not None:
            data.token_edge_attr = token_attributes
    return data


def has_identifiers(data: "Data", width: int) -> bool:
    """Return whether the graph carries identifiers; raise if they have another width than the model's."""
    if "identifiers" not in data:
        return False
    if data.identifiers.dim() != 2 or data.identifiers.size(1) != width:
        raise DataError(
            f"data.identifiers has the shape {tuple(data.identifiers.shape)}, the model takes "
            f"({data.num_nodes}, {width}): remove it, or build the model with identifiers={data.identifiers.size(-1)}"
        )
    return True


def token_edges(
    edge_index: Tensor, attributes: Tensor | None, edge_tokens: str, nodes: int
) -> tuple[Tensor, Tensor | None]:
    """Return the edges that become tokens and their features (averaged over a pair's directions)."""
    if edge_tokens == "directed":
        return edge_index, attributes
    low, high = edge_index.min(0).values, edge_index.max(0).values
    pairs, place = torch.unique(low * nodes + high, return_inverse=True)
    index = torch.stack((pairs.div(nodes, rounding_mode="floor"), pairs % nodes))
    if attributes is None:
        return index, None
    flat = attributes if attributes.dim() == 2 else attributes.unsqueeze(-1)
    sums = flat.new_zeros(pairs.numel(), flat.size(1)).index_add(0, place, flat)
    return index, sums / place.bincount(minlength=pairs.numel()).unsqueeze(-1)
