r"""Aggregation over neighbourhoods without an N×N matrix: what graph convolutions and graph attention share.

The graph is simple and undirected: direction, repetitions and self-loops of ``edge_index`` do not matter. A batch of
graphs is one block-diagonal graph and needs nothing special. What is derived from a graph is computed once
(:mod:`gyroformer.graphs.derived`).
"""

import warnings
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.graphs.derived import derived, derived_weighted
from gyroformer.graphs.hops import normalised_adjacency
from gyroformer.options.features import Norm

if TYPE_CHECKING:
    from torch_geometric.data import Data


def propagation(
    data: "Data", *, norm: Norm = "sym", loops: bool = True, dtype: torch.dtype = torch.float32
) -> Tensor:
    r"""Return the normalised adjacency matrix of a graph as a sparse tensor ``(N, N)`` on the graph's device.

    ``"sym"`` is :math:`D^{-1/2} A D^{-1/2}`, ``"row"`` is :math:`D^{-1} A`, with the identity added to A if ``loops``
    (:func:`~gyroformer.graphs.hops.normalised_adjacency`), and A holds ``data.edge_weight`` where the graph has that.
    The result is shared between calls: do not change it.
    """
    edges, nodes = _graph(data)
    weight = data.edge_weight if "edge_weight" in data else None
    return derived_weighted(
        edges,
        weight,
        ("propagation", nodes, norm, loops, dtype),
        lambda: normalised_adjacency(
            edges, nodes, norm=norm, loops=loops, weight=weight, dtype=dtype, device=edges.device
        ),
    )


def neighbour_edges(data: "Data", *, loops: bool = True) -> Tensor:
    """Return every edge once in each direction as ``(2, E)``, sources above targets, sorted by target.

    With ``loops`` every node is a neighbour of itself, so that no target of attention is without a source.
    The result is shared between calls: do not change it.
    """
    edges, nodes = _graph(data)
    return derived(
        edges,
        ("neighbours", nodes, loops),
        lambda: propagation(data, norm="row", loops=loops).indices().flip(0).contiguous(),
    )


def _graph(data: "Data") -> tuple[Tensor, int]:
    edges, nodes = data.edge_index, data.num_nodes
    if not isinstance(edges, Tensor) or nodes is None:
        raise UsageError(
            "the graph needs an edge_index and a number of nodes; set data.edge_index and data.x"
        )
    return edges, nodes


def as_sparse_rows(matrix: Tensor) -> Tensor:
    """Return a matrix in sparse rows, the layout that torch multiplies by quickly."""
    with warnings.catch_warnings():
        # torch says once for each process that sparse rows are in beta; of them only the product is used
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        return matrix.to_sparse_csr()


def propagate(matrix: Float[Tensor, "M N"], x: Float[Tensor, "N ..."]) -> Float[Tensor, "M ..."]:
    """Return ``matrix @ x`` for a sparse ``(M, N)`` and x ``(N, ...)`` with any number of further dimensions."""
    return (matrix @ x.reshape(x.size(0), -1)).reshape(matrix.size(0), *x.shape[1:])


def edge_sum(
    values: Float[Tensor, "E ..."], target: Int[Tensor, " E"], num_nodes: int
) -> Float[Tensor, "{num_nodes} ..."]:
    """Return for each node the sum of the values ``(E, ...)`` of the edges that end in it, ``(num_nodes, ...)``."""
    return values.new_zeros(num_nodes, *values.shape[1:]).index_add(0, target, values)


def edge_softmax(
    scores: Float[Tensor, "E ..."], target: Int[Tensor, " E"], num_nodes: int
) -> Float[Tensor, "E ..."]:
    r"""Return the softmax of scores ``(E, ...)`` over the edges that end in one node, each head by itself.

    .. math:: \alpha_e = \frac{\exp(s_e - m)}{\sum_{e' \to i}\exp(s_{e'} - m)}, \qquad m = \max_{e' \to i} s_{e'}

    so no finite score overflows. A score of -inf masks its edge; a node with nothing else gets zeros. Half
    precision is summed in float32.
    """
    wide = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    index = target.reshape(-1, *([1] * (wide.dim() - 1))).expand_as(wide)
    top = wide.detach().new_full((num_nodes, *wide.shape[1:]), -torch.inf)
    top = top.scatter_reduce(0, index, wide.detach(), "amax")
    # the shift cancels; where all scores are -inf any finite one does
    top = torch.where(top == -torch.inf, 0.0, top)
    grown = (wide - top[target]).exp()
    total = edge_sum(grown, target, num_nodes)
    return (grown / torch.where(total == 0, 1.0, total)[target]).to(scores.dtype)
