"""Graphs in NumPy archives (.npz)."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gyroformer.arrays import Arrays, read_arrays
from gyroformer.errors import DataError
from gyroformer.graphs.listing import Listing
from gyroformer.graphs.reading.names import MAX_NODES, check_max_nodes

Entries = tuple[NDArray[np.int64], int, np.ndarray | None]

EDGES = ("edge_index", "edges")
FEATURES = ("x", "features", "node_features", "attr_matrix")
LABELS = ("y", "labels", "node_labels")
IDS = ("ids", "node_ids", "node_id")


def read_npz(path: Path, *, max_nodes: int = MAX_NODES) -> Listing:
    """Read a graph from an archive.

    The edges are ``edge_index`` ``(2, E)``, ``edges`` ``(E, 2)``, a matrix saved by
    ``scipy.sparse.save_npz``, or one under ``adj_data``, ``adj_indices``, ``adj_indptr``,
    ``adj_shape``. Features, labels and ids are taken where they are there, under the names in this module.

    Raises:
        DataError: if the archive is damaged, needs unpickling or holds no graph.
    """
    return listing_of(path, read_arrays(path), max_nodes=max_nodes)


def listing_of(path: Path, arrays: Arrays, *, max_nodes: int = MAX_NODES) -> Listing:
    """Return the graph in the arrays of an archive, as :func:`read_npz` describes them."""
    matrix = sparse_part(path, arrays, "adj_" if "adj_data" in arrays else "")
    x, y, ids = feature_part(path, arrays), first_of(arrays, LABELS), first_of(arrays, IDS)
    weight = arrays.get("edge_weight")
    if matrix is not None:
        ends, nodes, weight = _matrix_edges(path, matrix, max_nodes)
    else:
        ends = _index_edges(path, arrays)
        nodes = _node_count(path, arrays, ends, (x, y, ids))
        check_max_nodes(path, nodes, max_nodes)
    names = list(range(nodes)) if ids is None else plain_ids(path, ids)
    return Listing(ends[0], ends[1], names, weight, x, y)


def first_of(arrays: Arrays, names: Iterable[str]) -> np.ndarray | None:
    """Return the first array that is there under one of the names."""
    return next((arrays[name] for name in names if name in arrays), None)


def feature_part(path: Path, arrays: Arrays) -> Any:
    """Return the features: an array under a usual name, or the sparse matrix under ``attr_…``."""
    dense = first_of(arrays, FEATURES)
    return dense if dense is not None else sparse_part(path, arrays, "attr_")


def plain_ids(path: Path, ids: np.ndarray) -> list[int] | list[str]:
    """Return an array of ids as integers or text."""
    if ids.ndim != 1 or ids.dtype.kind not in "iuUS":
        raise DataError(
            f"{path}: ids must be a 1-D array of integers or text, got {ids.dtype} of shape {ids.shape}"
        )
    try:
        text = np.char.decode(ids, "utf-8") if ids.dtype.kind == "S" else ids
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: ids are not UTF-8 ({error}): store them as text") from None
    names: list[int] | list[str] = text.tolist()
    return names


def sparse_part(path: Path, arrays: Arrays, prefix: str) -> Any:
    """Return the scipy matrix whose parts are stored under a prefix, or None."""
    from scipy.sparse import coo_array, csc_array, csr_array

    part = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    if not {"shape", "data"} <= set(part):
        return None
    kind = part["format"].item() if "format" in part and part["format"].size == 1 else b"csr"
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    if part["data"].dtype.kind not in "biuf":
        raise DataError(f"{path}: a matrix of {part['data'].dtype}: its entries must be real numbers")
    try:
        shape = tuple(int(side) for side in part["shape"])
        if kind == "coo":
            return coo_array((part["data"], (part["row"], part["col"])), shape=shape)
        make = {"csr": csr_array, "csc": csc_array}[kind]
        matrix = make((part["data"], part["indices"], part["indptr"]), shape=shape)
        matrix.check_format(full_check=True)
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise DataError(
            f"{path}: the sparse matrix in it is not valid ({error}): save it with save_npz"
        ) from None
    return matrix


def _matrix_edges(path: Path, matrix: Any, max_nodes: int) -> Entries:
    rows, columns = matrix.shape
    if rows != columns or not rows:
        raise DataError(
            f"{path}: a {rows} x {columns} matrix is not a graph: it must be square and not empty"
        )
    check_max_nodes(path, rows, max_nodes)
    return matrix_entries(matrix)


def matrix_entries(matrix: Any) -> Entries:
    """Return the ends of a square sparse matrix's entries other than 0, its side, its values unless all 1."""
    entries = matrix.tocoo()
    if entries.data.dtype.kind not in "biuf":
        raise DataError(f"a matrix of {entries.data.dtype} is not a graph: its entries must be real numbers")
    there = entries.data != 0
    ends = np.stack([entries.row[there], entries.col[there]]).astype(np.int64)
    values = entries.data[there]
    return ends, entries.shape[0], None if (values == 1).all() else values


def _index_edges(path: Path, arrays: Arrays) -> NDArray[np.int64]:
    edges = first_of(arrays, EDGES)
    if edges is None:
        found = ", ".join(sorted(arrays)[:12]) or "nothing"
        raise DataError(f"{path}: no graph in it, only {found}: store 'edge_index' of shape (2, edges)")
    turned = edges.T if edges.ndim == 2 and "edge_index" not in arrays else edges
    if turned.ndim != 2 or turned.shape[0] != 2:
        raise DataError(f"{path}: edges have the shape {edges.shape}: store 'edge_index' of shape (2, edges)")
    if turned.size and turned.dtype.kind not in "iu":
        raise DataError(f"{path}: edges are {turned.dtype}: store node indices, integers from 0")
    if turned.dtype == np.uint64 and turned.size and turned.max() >= 2**63:
        raise DataError(f"{path}: an edge ends at node {turned.max()}: store node indices, from 0")
    return turned.astype(np.int64)


def _node_count(path: Path, arrays: Arrays, ends: NDArray[np.int64], parts: tuple[Any, ...]) -> int:
    """Return the number of nodes: stated, or of rows of features, labels or ids, or the last index + 1."""
    stated = arrays.get("num_nodes")
    if stated is not None:
        if stated.size != 1 or stated.dtype.kind not in "iu":
            raise DataError(
                f"{path}: num_nodes must be one integer, got {stated.dtype} of shape {stated.shape}"
            )
        return int(stated.item())
    rows = [part.shape[0] for part in parts if part is not None and part.shape]
    if rows:
        return int(rows[0])
    if not ends.size:
        raise DataError(f"{path}: no edge and no number of nodes, so there is no graph: store 'num_nodes'")
    return int(ends.max()) + 1
