"""Amazon Computers and the Coauthor graphs from the npz files of the gnn-benchmark repository.

Keys: ``adj_*`` and ``attr_*`` are the parts of two CSR matrices, ``labels`` the classes. Other keys, which
hold names as pickled objects in the public files, are never read. As in torch_geometric, every attribute
above zero counts as 1.
"""

from pathlib import Path

import numpy as np
from scipy import sparse

from gyroformer.data.parsed import Parsed
from gyroformer.data.plain_npz import read_arrays
from gyroformer.errors import DataError


def read_npz_graph(path: Path) -> Parsed:
    """Return the graph in ``path``."""
    adjacency, attributes = _matrix(path, "adj"), _matrix(path, "attr")
    y = read_arrays(path, ["labels"])[0].astype(np.int64)
    if not adjacency.shape[0] == adjacency.shape[1] == attributes.shape[0] == len(y):
        raise DataError(f"{path}: adjacency, attributes and labels are of different numbers of nodes")
    attributes.data = (attributes.data > 0).astype(np.float32)
    source, target = adjacency.tocoo().coords
    ends = {"source": source.astype(np.int64), "target": target.astype(np.int64)}
    return Parsed(origin=path, **ends, x=attributes, y=y, symmetric=True)


def _matrix(path: Path, name: str) -> sparse.csr_array:
    parts = ("data", "indices", "indptr", "shape")
    data, indices, indptr, shape = read_arrays(path, [f"{name}_{part}" for part in parts])
    try:
        matrix = sparse.csr_array((data, indices, indptr), shape=tuple(shape))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise DataError(f"{path}: {name}_* is no sparse matrix ({error}); get the file anew") from None
    return matrix
