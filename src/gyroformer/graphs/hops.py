"""Mixing node features over hops: powers of the normalised adjacency matrix, as pure functions.

Shapes: ``x`` is ``(N, F)``, ``edge_index`` ``(2, E)``. The graph is simple and undirected: direction, repetitions and
self-loops of ``edge_index`` do not matter; ``weight`` ``(E,)`` gives its edges weights. Products are sparse: a hop
costs O(E F) time and no memory beyond its result, and gradients flow back to ``x``. A sparse ``x`` is accepted and
comes back dense, for mixing fills it.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.graphs.adjacency import degrees, simple_adjacency
from gyroformer.options.features import Norm


def normalised_adjacency(
    edge_index: Tensor | NDArray[Any],
    num_nodes: int,
    *,
    norm: Norm = "sym",
    loops: bool = True,
    weight: Tensor | NDArray[Any] | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""Return the normalised adjacency matrix as a sparse tensor ``(N, N)``.

    With A (plus the identity if ``loops``) and its degrees D: ``"sym"`` is
    :math:`D^{-1/2} A D^{-1/2}` and ``"row"`` is :math:`D^{-1} A`, whose rows sum to 1. Without loops the
    row of an isolated node is zero. With ``weight`` ``(E,)`` A holds the weights, and D their sums.
    """
    if norm not in ("sym", "row"):
        raise UsageError(f"norm must be 'sym' or 'row', got {norm!r}")
    adjacency = simple_adjacency(edge_index, num_nodes, weight)
    if loops:
        adjacency = (adjacency + sp.eye_array(num_nodes)).tocsr()
    degree = degrees(adjacency)
    row = np.repeat(np.arange(num_nodes), np.diff(adjacency.indptr))
    column = adjacency.indices.astype(np.int64)
    value = adjacency.data * (1 / degree[row] if norm == "row" else 1 / np.sqrt(degree[row] * degree[column]))
    return torch.sparse_coo_tensor(
        torch.from_numpy(np.stack([row, column])),
        torch.from_numpy(value).to(dtype),
        (num_nodes, num_nodes),
        device=device,
        is_coalesced=True,
        check_invariants=False,
    )


def mix_hops(
    x: Tensor,
    edge_index: Tensor | NDArray[Any],
    hops: int,
    *,
    norm: Norm = "sym",
    loops: bool = True,
    weight: Tensor | None = None,
) -> Tensor:
    r"""Return :math:`\hat A^K X`: features mixed over ``hops`` steps (0 changes nothing)."""
    x, matrix = _prepare(x, edge_index, hops, norm, loops, weight)
    for _ in range(hops):
        x = matrix @ x
    return x


def joined_hops(
    x: Tensor,
    edge_index: Tensor | NDArray[Any],
    hops: int,
    *,
    norm: Norm = "sym",
    loops: bool = True,
    weight: Tensor | None = None,
) -> list[Tensor]:
    r"""Return :math:`[X, \hat A X, \ldots, \hat A^K X]`, ready for ``torch.cat(..., dim=-1)``."""
    x, matrix = _prepare(x, edge_index, hops, norm, loops, weight)
    result = [x]
    for _ in range(hops):
        result.append(matrix @ result[-1])
    return result


def ppr_mix(
    x: Tensor,
    edge_index: Tensor | NDArray[Any],
    alpha: float,
    steps: int,
    *,
    norm: Norm = "sym",
    loops: bool = True,
    weight: Tensor | None = None,
) -> Tensor:
    r"""Return features mixed by personalised PageRank, a walk that restarts with probability ``alpha``.

    .. math:: Z_0 = X, \quad Z_{t+1} = (1 - \alpha) \hat A Z_t + \alpha X

    which tends to :math:`\alpha (I - (1 - \alpha) \hat A)^{-1} X` with an error below
    :math:`(1 - \alpha)^{steps}` times that of the start.
    """
    if not 0 < alpha <= 1:
        raise UsageError(f"alpha must lie in (0, 1], got {alpha}")
    x, matrix = _prepare(x, edge_index, steps, norm, loops, weight)
    mixed = x
    for _ in range(steps):
        mixed = (1 - alpha) * (matrix @ mixed) + alpha * x
    return mixed


def _prepare(
    x: Tensor,
    edge_index: Tensor | NDArray[Any],
    hops: int,
    norm: Norm,
    loops: bool,
    weight: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Return ``x`` as a dense matrix and the normalised adjacency in its dtype and on its device."""
    if hops < 0:
        raise UsageError(f"the number of hops cannot be negative, got {hops}")
    if x.dim() != 2:
        raise UsageError(f"features must have the shape (nodes, features), got {tuple(x.shape)}")
    if not x.is_floating_point():
        raise UsageError(f"features must be floating-point numbers to be mixed, got {x.dtype}")
    if x.layout != torch.strided:
        x = x.to_dense()
    matrix = normalised_adjacency(
        edge_index, x.shape[0], norm=norm, loops=loops, weight=weight, dtype=x.dtype, device=x.device
    )
    return x, matrix
