"""Cora, CiteSeer and PubMed from the ``ind.*`` files of the Planetoid repository.

Nodes come in two parts: those of ``allx``, in order, and the test nodes, whose rows in ``tx`` are in the
order of ``test.index``. CiteSeer's test numbers have gaps: these nodes have no features, label 0 and no
edges, as in every loader of this set.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gyroformer.data.old_pickles import COLLECTIONS, NUMPY, SCIPY, Shell, array_of, is_node, unpickle
from gyroformer.data.sources import FETCH_AGAIN
from gyroformer.errors import DataError
from gyroformer.graphs.adjacency import IntArray
from gyroformer.graphs.listing import Listing

VALIDATION = 500
#: entries of the largest table of features that is read; PubMed's has 10⁷
MAX_ENTRIES = 1 << 30


def read_planetoid(folder: Path, prefix: str) -> Listing:
    """Return the graph whose files ``ind.<prefix>.*`` are in ``folder``."""
    files = {name: folder / f"ind.{prefix}.{name}" for name in ("allx", "tx", "y", "ally", "ty", "graph")}
    test = _test_index(folder / f"ind.{prefix}.test.index")
    known_x, test_x = _features(files["allx"]), _features(files["tx"])
    known_y, test_y = _labels(files["ally"]), _labels(files["ty"])
    if not (len(test) == test_x.shape[0] == len(test_y) and known_x.shape[0] == len(known_y) <= test.min()):
        raise DataError(f"{folder}: the ind.{prefix}.* files do not fit together; fetch them again")
    known, nodes = len(known_y), int(test.max()) + 1
    # CiteSeer leaves out 15 numbers of 3,327
    if (
        len(np.unique(test)) < len(test)
        or nodes > 2 * (known + len(test))
        or known_x.shape[1] != test_x.shape[1]
    ):
        raise DataError(f"{folder}: the ind.{prefix}.* files do not fit together; fetch them again")
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
        if not (line.isascii() and line.isdecimal() and len(line) < 10):
            raise DataError(f"{path}:{number}: expected a node index, found {line[:40]!r}")
    if not lines:
        raise DataError(f"{path}: empty; {FETCH_AGAIN}")
    return np.array(lines, dtype=np.int64)


def _features(path: Path) -> sparse.csr_array:
    held = unpickle(path, NUMPY, SCIPY)
    if type(held) is not Shell or type(held.state) is not dict or type(held.state.get("_shape")) is not tuple:
        raise DataError(f"{path}: expected a sparse matrix, found {type(held).__name__}")
    parts = {name: array_of(held.state.get(name), path) for name in ("data", "indices", "indptr")}
    shape = held.state["_shape"]
    sized = len(shape) == 2 and all(map(is_node, shape)) and shape[0] * shape[1] <= MAX_ENTRIES
    if not sized or any(part.ndim != 1 for part in parts.values()):
        raise DataError(f"{path}: not a sparse matrix of a size that is read; {FETCH_AGAIN}")
    try:
        matrix = sparse.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
        matrix.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise DataError(f"{path}: not a sparse matrix ({error}); {FETCH_AGAIN}") from None
    with np.errstate(over="ignore"):  # what is not finite is refused with its row
        return matrix.astype(np.float32)


def _labels(path: Path) -> IntArray:
    table = array_of(unpickle(path, NUMPY), path)
    if table.ndim != 2 or not table.size:
        raise DataError(f"{path}: expected a table with one label per row, found the shape {table.shape}")
    labels: IntArray = table.argmax(axis=1).astype(np.int64)
    return labels


def _edges(path: Path) -> tuple[IntArray, IntArray]:
    held = unpickle(path, COLLECTIONS)
    if type(held) is not Shell or held.name != "collections defaultdict":
        raise DataError(f"{path}: expected lists of neighbours, found {type(held).__name__}")
    neighbours = held.items
    lists = [listed for listed in neighbours.values() if type(listed) is list]
    # a list may be named again and again: the whole must not be longer than the file, which names each node once
    few = sum(map(len, lists)) <= path.stat().st_size
    if (
        len(lists) < len(neighbours)
        or not few
        or not all(is_node(one) for some in (neighbours, *lists) for one in some)
    ):
        raise DataError(f"{path}: expected lists of neighbours, found other values; {FETCH_AGAIN}")
    source = np.repeat(np.array(list(neighbours), dtype=np.int64), [len(listed) for listed in lists])
    target = np.array([node for listed in lists for node in listed], dtype=np.int64)
    return source, target


def _mask(index: IntArray, nodes: int) -> NDArray[np.bool_]:
    mask = np.zeros(nodes, dtype=np.bool_)
    mask[index] = True
    return mask
