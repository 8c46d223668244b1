"""Identifiers kept on disk, by a hash of all that they depend on."""

import hashlib
import logging
import os
import tempfile
from pathlib import Path

import numpy as np

from gyroformer.arrays import read_arrays
from gyroformer.errors import CorruptFileError
from gyroformer.graphs.adjacency import Csr, FloatArray, upper_edges
from gyroformer.graphs.spectral.eigen_solvers import has_multigrid

#: raise it when the algorithm changes in a way that changes its results
ALGORITHM_VERSION = 1

NAMES = ("vectors", "values", "residuals", "methods")

_log = logging.getLogger(__name__)

Arrays = tuple[FloatArray, FloatArray, FloatArray]


def cache_key(adjacency: Csr, dim: int, scope: str) -> str:
    """Return the sha256 of the algorithm's version, the request and the simple graph."""
    nodes = adjacency.shape[0]
    # pyamg's presence decides between methods, whose results differ in their last digits
    head = f"laplacian {ALGORITHM_VERSION} {nodes} {dim} {scope} {has_multigrid()}\n"
    digest = hashlib.sha256(head.encode())
    for ends in upper_edges(adjacency):
        digest.update(np.ascontiguousarray(ends, "<i8").tobytes())
    if (adjacency.data != 1).any():
        digest.update(b"weights" + np.ascontiguousarray(adjacency.data, "<f8").tobytes())
    return digest.hexdigest()


def read_cached(folder: Path, key: str, num_nodes: int, dim: int) -> tuple[Arrays, tuple[str, ...]] | None:
    """Return what was kept under ``key``; None if nothing was, or if it is damaged, which a warning says."""
    path = folder / f"{key}.npz"
    if not path.exists():
        return None
    try:
        stored = read_arrays(path, NAMES, error=CorruptFileError, advice="computing the identifiers again")
    except CorruptFileError as error:
        _log.warning("a cache is damaged: %s", error)
        return None
    vectors, values, residuals, methods = (stored[name] for name in NAMES)
    if vectors.shape != (num_nodes, dim) or values.shape != residuals.shape or methods.ndim != 1:
        _log.warning("%s is damaged (its shapes do not fit): computing the identifiers again", path)
        return None
    return (vectors, values, residuals), tuple(str(name) for name in methods)


def write_cached(folder: Path, key: str, arrays: Arrays, methods: tuple[str, ...]) -> None:
    """Keep a result under ``key``: complete or not at all, whatever interrupts; a warning if it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{key}.", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                vectors, values, residuals = arrays
                names = np.array(methods)
                np.savez(file, vectors=vectors, values=values, residuals=residuals, methods=names)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(folder / f"{key}.npz")
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        _log.warning("identifiers could not be kept in %s: %s", folder, error)
