"""Node identifiers from the eigenvectors of the symmetric normalised Laplacian, right and repeatable.

L = I - D^(-1/2) A D^(-1/2) of the simple undirected graph; an isolated node is a component of its own with
eigenvalue 0. Each connected component is solved alone: methods that see the whole matrix miss some of its
repeated zeros. Equal input gives equal bits on one machine (same versions, same number of threads).

Repeated eigenvalues inside one component leave the choice of a basis: the vectors span the right space, but
which ones come back depends on the numbering of the nodes.
"""

import dataclasses as dc
import logging
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.graphs.adjacency import Csr, FloatArray, IntArray, ranked_components, simple_adjacency
from gyroformer.graphs.spectral.eigen_solvers import (
    WANTED_RESIDUAL,
    has_multigrid,
    null_vector,
    residual_norms,
    smallest_eigenpairs,
)
from gyroformer.graphs.spectral.laplacian_cache import cache_key, read_cached, write_cached

Scope = Literal["graph", "component"]
#: eigenvalues nearer than this are one repeated eigenvalue when components are put in order
SAME_VALUE = 1e-9
#: entries within this fraction of the largest one tie for it when the sign is chosen
SAME_SIZE = 1e-6

_log = logging.getLogger(__name__)


@dc.dataclass(frozen=True, slots=True)
class LaplacianIdentifiers:
    """Eigenvectors as columns, with what is known about them.

    Attributes:
        vectors: ``(N, dim)`` float64; unit norm (per component for scope ``"component"``), zero columns
            where a graph has fewer vectors than asked for.
        values: eigenvalue of each column, ``(dim,)``; for scope ``"component"`` ``(components, dim)``.
            NaN where the column is padding.
        residuals: |L v - w v|, shaped like ``values``.
        methods: how each component was solved, largest component first; ``"null"`` if only its known null
            vector was needed.
    """

    vectors: Tensor
    values: Tensor
    residuals: Tensor
    methods: tuple[str, ...]


def laplacian_identifiers(
    edge_index: Tensor | NDArray[Any],
    num_nodes: int,
    dim: int,
    *,
    scope: Scope = "graph",
    weight: Tensor | NDArray[Any] | None = None,
    cache: Path | str | None = None,
) -> LaplacianIdentifiers:
    """Return ``dim`` eigenvectors of the normalised Laplacian with the smallest eigenvalues, zero included.

    Columns are sorted by eigenvalue; equal ones by component, largest component first. Each vector's entry
    of largest magnitude is positive (the first such node, where several tie).

    Args:
        edge_index: ``(2, E)`` integers; direction, repetitions and self-loops do not matter.
        num_nodes: number of nodes.
        dim: number of columns.
        scope: ``"graph"``: the smallest eigenvalues of the whole graph. With C components the first C
            columns are their constant vectors, so a scattered graph gets little else. ``"component"``:
            each component its own ``dim`` smallest, side by side in the same columns.
        weight: positive weights of the edges, ``(E,)``; all 1 by default.
        cache: folder where results are kept, by a hash of the graph; made if absent. None keeps nothing.
    """
    if dim < 1:
        raise UsageError(f"identifiers need at least one column, got dim={dim}")
    if scope not in ("graph", "component"):
        raise UsageError(f"scope must be 'graph' or 'component', got {scope!r}")
    adjacency = simple_adjacency(edge_index, num_nodes, weight)
    key = cache_key(adjacency, dim, scope) if cache is not None else ""
    if cache is not None and (found := read_cached(Path(cache), key, num_nodes, dim)) is not None:
        arrays, methods = found
    else:
        arrays, methods = _compute(adjacency, dim, scope)
        if cache is not None:
            write_cached(Path(cache), key, arrays, methods)
    vectors, values, residuals = (torch.from_numpy(array) for array in arrays)
    return LaplacianIdentifiers(vectors, values, residuals, methods)


def flip_signs(vectors: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Return ``vectors`` with the sign of each column drawn at random.

    An eigenvector's sign is arbitrary; drawing it again at each training step keeps a model from relying
    on it. Not for evaluation.
    """
    signs = torch.randint(0, 2, (vectors.shape[-1],), generator=generator, device=vectors.device) * 2 - 1
    return vectors * signs.to(vectors.dtype)


Arrays = tuple[FloatArray, FloatArray, FloatArray]


@dc.dataclass(frozen=True, slots=True)
class _Part:
    """Eigenpairs of one component, its null vector first."""

    nodes: IntArray
    values: FloatArray
    vectors: FloatArray
    residuals: FloatArray
    method: str


def _compute(adjacency: Csr, dim: int, scope: Scope) -> tuple[Arrays, tuple[str, ...]]:
    count, component = ranked_components(adjacency)
    nodes = np.split(np.argsort(component, kind="stable"), np.cumsum(np.bincount(component))[:-1])
    # over the whole graph the zeros of all components come first and leave room for this many more
    extra = max(dim - count, 0) if scope == "graph" else dim - 1
    needed = nodes[:dim] if scope == "graph" else nodes
    index = np.empty(adjacency.shape[0], np.int64)  # of each node within its own component
    for members in needed:
        index[members] = np.arange(members.size)
    parts = [_solve(adjacency, members, index, extra) for members in needed]
    methods = tuple(part.method for part in parts) + ("null",) * (count - len(parts))
    _warn_of_residuals(parts)
    join = _join_graph if scope == "graph" else _join_components
    return join(parts, adjacency.shape[0], dim), methods


def _solve(adjacency: Csr, nodes: IntArray, index: IntArray, extra: int) -> _Part:
    """Return the null vector of the component on ``nodes`` and up to ``extra`` further eigenpairs."""
    rows = adjacency[nodes]
    # slicing columns would cost the whole graph's size for each component
    part = sp.csr_matrix((rows.data, index[rows.indices], rows.indptr), shape=(nodes.size, nodes.size))
    null = null_vector(part)[:, None]
    extra = min(extra, nodes.size - 1)
    if extra == 0:
        return _Part(nodes, np.zeros(1), null, np.zeros(1), "null")
    pairs = smallest_eigenpairs(part, extra)
    residuals = residual_norms(part, pairs.values, pairs.vectors)
    vectors = np.hstack([null, canonical_signs(pairs.vectors)])
    return _Part(nodes, np.append(0.0, pairs.values), vectors, np.append(0.0, residuals), pairs.method)


def canonical_signs(vectors: FloatArray) -> FloatArray:
    """Return unit columns whose entry of largest magnitude (the first, where several tie) is positive."""
    vectors = vectors / np.linalg.norm(vectors, axis=0)
    size = np.abs(vectors)
    first = np.argmax(size >= size.max(axis=0) * (1 - SAME_SIZE), axis=0)
    return np.asarray(vectors * np.sign(vectors[first, np.arange(vectors.shape[1])]))


def _warn_of_residuals(parts: list[_Part]) -> None:
    worst = max(parts, key=lambda part: float(part.residuals.max()))
    if worst.residuals.max() > WANTED_RESIDUAL:
        _log.warning(
            "Laplacian eigenvectors of a component of %d nodes have residuals up to %.1e (method %s)%s",
            worst.nodes.size,
            worst.residuals.max(),
            worst.method,
            "" if has_multigrid() else "; pip install 'gyroformer[fast]' brings a better method",
        )


def _join_graph(parts: list[_Part], num_nodes: int, dim: int) -> Arrays:
    """Return the smallest eigenpairs over all parts: by value, equal values by part."""
    values = np.concatenate([part.values for part in parts])
    owner = np.repeat(np.arange(len(parts)), [part.values.size for part in parts])
    column = np.concatenate([np.arange(part.values.size) for part in parts])
    by_value = np.argsort(values, kind="stable")
    # number the runs of equal values, so that rounding does not decide between equal components
    run = np.cumsum(np.diff(values[by_value], prepend=values[by_value[0]]) > SAME_VALUE)
    order = by_value[np.lexsort((column[by_value], owner[by_value], run))][:dim]

    vectors = np.zeros((num_nodes, dim))
    kept_values, kept_residuals = np.full(dim, np.nan), np.full(dim, np.nan)
    for target, i in enumerate(order):
        part = parts[owner[i]]
        vectors[part.nodes, target] = part.vectors[:, column[i]]
        kept_values[target] = part.values[column[i]]
        kept_residuals[target] = part.residuals[column[i]]
    return vectors, kept_values, kept_residuals


def _join_components(parts: list[_Part], num_nodes: int, dim: int) -> Arrays:
    """Return every part's own eigenpairs, side by side in the same columns."""
    vectors = np.zeros((num_nodes, dim))
    values, residuals = np.full((len(parts), dim), np.nan), np.full((len(parts), dim), np.nan)
    for row, part in enumerate(parts):
        width = part.values.size
        vectors[part.nodes, :width] = part.vectors
        values[row, :width] = part.values
        residuals[row, :width] = part.residuals
    return vectors, values, residuals
