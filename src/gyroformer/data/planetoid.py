"""Cora, CiteSeer and PubMed from the ``ind.*`` files of the Planetoid repository.

Nodes come in two parts: those of ``allx``, in order, and the test nodes, whose rows in ``tx`` are in the
order of ``test.index``. CiteSeer's test numbers have gaps: these nodes have no features, label 0 and no
edges, as in every loader of this set.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gyroformer.data.sources import FETCH_AGAIN
from gyroformer.data.unpickle import COLLECTIONS, NUMPY, SCIPY, Shell, unpickle
from gyroformer.errors import DataError
from gyroformer.graphs.adjacency import IntArray
from gyroformer.graphs.listing import Listing

VALIDATION = 500


def read_planetoid(folder: Path, prefix: str) -> Listing:
    """Return the graph whose files ``ind.<prefix>.*`` are in ``folder``."""
    files = {name: folder / f"ind.{prefix}.{name}" for name in ("allx", "tx", "y", "ally", "ty", "graph")}
    test = _test_index(folder / f"ind.{prefix}.test.index")
    known_x, test_x = _features(files["allx"]), _features(files["tx"])
    known_y, test_y = _labels(files["ally"]), _labels(files["ty"])
    if not (len(test) == test_x.shape[0] == len(test_y) and known_x.shape[0] == len(known_y) <= test.min()):
        raise DataError(f"{folder}: the ind.{prefix}.* files do not fit together; fetch them again")
    known, nodes = len(known_y), int(test.max()) + 1
    train = len(_labels(files["y"]))
    if train + VALIDATION > known:
        raise DataError(
            f"{files['y']}: {train} training nodes of {known} leave fewer than {VALIDATION} for validation"
        )

    # row r of the stacked table belongs to node node_of[r]
    node_of = np.concatenate([np.arange(known), test])
    stacked = sparse.coo_array(sparse.vstack([known_x, test_x]))
    rows, columns = stacked.coords
    x = sparse.csr_array((stacked.data, (node_of[rows], columns)), shape=(nodes, known_x.shape[1]))
    y = np.zeros(nodes, dtype=np.int64)
    y[node_of] = np.concatenate([known_y, test_y])

    source, target = _edges(files["graph"])
    masks = {
        "train": _mask(np.arange(train), nodes),
        "val": _mask(np.arange(train, train + VALIDATION), nodes),
        "test": _mask(test, nodes),
    }
    return Listing(source, target, range(nodes), x=x, y=y, masks=masks).checked(files["graph"])


def _test_index(path: Path) -> IntArray:
    lines = path.read_text(encoding="ascii", errors="replace").split()
    for number, line in enumerate(lines, start=1):
        if not line.isdecimal():
            raise DataError(f"{path}:{number}: expected a node index, found {line[:40]!r}")
    if not lines:
        raise DataError(f"{path}: empty; {FETCH_AGAIN}")
    return np.array(lines, dtype=np.int64)


def _features(path: Path) -> sparse.csr_array:
    held = unpickle(path, NUMPY, SCIPY)
    if not isinstance(held, Shell):
        raise DataError(f"{path}: expected a sparse matrix, found {type(held).__name__}")
    state = held.state
    try:
        matrix = sparse.csr_array((state["data"], state["indices"], state["indptr"]), shape=state["_shape"])
        matrix.check_format(full_check=True)
    except (KeyError, ValueError, TypeError) as error:
        raise DataError(f"{path}: not a sparse matrix ({error}); {FETCH_AGAIN}") from None
    return matrix.astype(np.float32)


def _labels(path: Path) -> IntArray:
    held = unpickle(path, NUMPY)
    if not isinstance(held, np.ndarray) or held.ndim != 2 or held.dtype.kind not in "iuf":
        raise DataError(f"{path}: expected a table with one label per row, found {type(held).__name__}")
    labels: IntArray = held.argmax(axis=1).astype(np.int64)
    return labels


def _edges(path: Path) -> tuple[IntArray, IntArray]:
    held = unpickle(path, COLLECTIONS)
    if not isinstance(held, Mapping):
        raise DataError(f"{path}: expected lists of neighbours, found {type(held).__name__}")
    neighbours = cast(Mapping[int, list[int]], held)
    lengths = [len(listed) for listed in neighbours.values()]
    source = np.repeat(np.array(list(neighbours), dtype=np.int64), lengths)
    target = np.array([node for listed in neighbours.values() for node in listed], dtype=np.int64)
    return source, target


def _mask(index: IntArray, nodes: int) -> NDArray[np.bool_]:
    mask = np.zeros(nodes, dtype=np.bool_)
    mask[index] = True
    return mask
