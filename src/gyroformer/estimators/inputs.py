"""What users hand to an estimator: a graph of any kind, nodes by index or by id, a random state, a device."""

import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from gyroformer.data.load import load
from gyroformer.errors import UsageError, did_you_mean
from gyroformer.graphs.reading.convert import to_graph

if TYPE_CHECKING:
    from torch_geometric.data import Data

Int = NDArray[np.int64]


def graph_of(obj: object, *, directed: bool = False) -> "Data":
    """Return the clean graph of a data set's name, a path, or anything that ``to_graph`` takes."""
    if isinstance(obj, (str, Path)):
        return load(obj, directed=directed)
    return to_graph(obj, directed=directed)


def source_of(obj: object) -> str:
    """Return the name or path that a graph was given by; empty for an object, which no name brings back."""
    return str(obj) if isinstance(obj, (str, Path)) else ""


def seed_of(random_state: Any) -> int:
    """Return the seed that scikit-learn's ``random_state`` stands for: itself, or a draw."""
    from sklearn.utils import check_random_state

    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        seed = int(random_state)
        if not 0 <= seed < 2**32:
            raise UsageError(f"random_state must be from 0 to 2**32 - 1, got {seed}")
        return seed
    if random_state is not None and not isinstance(random_state, np.random.RandomState):
        raise UsageError(f"random_state must be an integer, a RandomState or None, got {random_state!r}")
    return int(check_random_state(random_state).randint(2**31 - 1))


_drawing = threading.RLock()


@contextmanager
def own_random_state(device: str) -> Iterator[None]:
    """Give back torch's global random states after the block as they were before it.

    One thread at a time: all threads share these states, and fits beside each other would draw from each other's.
    """
    found = torch.device(device)
    devices = [found.index or 0] if found.type == "cuda" else []
    with _drawing, torch.random.fork_rng(devices=devices):
        yield


def plain(value: Any) -> Any:
    """Return numpy's numbers, which a parameter grid may hold, as Python's, in dictionaries and lists too."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def array_of(values: object) -> NDArray[Any]:
    """Return a tensor, list or array as an array."""
    return values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)


def node_indices(nodes: object, num_nodes: int, what: str) -> Int:
    """Return indices of nodes, from a mask ``(N,)`` or from indices ``(n,)`` or ``(n, 1)``.

    Args:
        nodes: the mask or the indices.
        num_nodes: N.
        what: what they are, for errors.
    """
    array = array_of(nodes)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise UsageError(
            f"{what} must be a mask of {num_nodes} nodes or the indices of some, got shape {array.shape}"
        )
    if array.dtype == bool:
        if array.size != num_nodes:
            raise UsageError(f"{what} is a mask of {array.size} nodes, but the graph has {num_nodes}")
        return np.flatnonzero(array)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise UsageError(f"{what} must be a mask or indices of nodes (integers), got {array.dtype}")
    wrong = array[(array < 0) | (array >= num_nodes)]
    if wrong.size:
        raise UsageError(f"{what} names node {wrong[0]}, but nodes are numbered 0 to {num_nodes - 1}")
    return array.astype(np.int64)


class Ids:
    """The nodes' ids, and the way back from an id to its index."""

    def __init__(self, ids: Sequence[Hashable]) -> None:
        self.names = list(ids)
        self._index = {name: index for index, name in enumerate(self.names)}

    def array(self) -> NDArray[Any]:
        """Return the ids as an array: of integers, of text, or of objects if there are both."""
        kinds = set(map(type, self.names))
        return np.array(self.names, dtype=object if len(kinds) > 1 else None)

    def indices(self, wanted: Any) -> Int:
        """Return the indices ``(n,)`` of some ids; a single id gives one."""
        single = isinstance(wanted, (str, bytes)) or not hasattr(wanted, "__len__")
        listed = [wanted] if single else wanted
        return np.array([self.index(name) for name in listed], dtype=np.int64)

    def index(self, name: Any) -> int:
        """Return the index of an id."""
        name = name.item() if isinstance(name, (np.generic, torch.Tensor)) else name
        if not isinstance(name, Hashable) or name not in self._index:
            near = did_you_mean(str(name), [str(known) for known in self.names])
            raise UsageError(f"no node has the id {name!r}{near}")
        return self._index[name]
