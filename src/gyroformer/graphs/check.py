"""What features, labels and weights must be, and errors that name the first entry that is not."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from gyroformer.errors import DataError

UNLABELLED = -1  # the class number of a node whose label is not known
MAX_CLASSES = 65_536  # a class number sizes the output layer, so an id taken for a label must not pass


def checked_features(x: object, num_nodes: int, *, columns: Sequence[str] | None = None) -> torch.Tensor:
    """Return features as a finite float32 tensor of shape ``(num_nodes, F)``, F at least 1.

    Args:
        x: array, tensor or scipy sparse matrix of numbers.
        num_nodes: rows that there must be.
        columns: names to use in errors; column numbers by default.
    """
    array = _dense(x)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[0] != num_nodes or array.shape[1] == 0:
        raise DataError(
            f"features must be a table of {num_nodes} rows, one per node, got shape {array.shape}"
        )
    if array.dtype.kind not in "biuf":
        raise DataError(f"features must be numbers, got {array.dtype}: encode text columns as numbers")
    with np.errstate(over="ignore"):  # what overflows float32 is caught just below
        values = np.ascontiguousarray(array, dtype=np.float32)
    finite = np.isfinite(values)
    if not finite.all():
        row, column = (int(index) for index in np.argwhere(~finite)[0])
        name = column if columns is None else repr(columns[column])
        raise DataError(
            f"feature row {row}, column {name} is {array[row, column]}: "
            "fill in or remove values that are missing, infinite or beyond float32"
        )
    return torch.from_numpy(values)


def checked_labels(y: object, num_nodes: int) -> torch.Tensor:
    """Return labels as an int64 tensor of shape ``(num_nodes,)``: classes from 0, ``UNLABELLED`` for none."""
    array = _dense(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.shape[0] != num_nodes:
        raise DataError(f"labels must be {num_nodes} class numbers, one per node, got shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise DataError(f"labels must be class numbers, got {array.dtype}")
    for wrong, why in (
        (~np.isfinite(array), "class numbers are finite; -1 stands for a node without a label"),
        (array < UNLABELLED, "class numbers start at 0; -1 stands for a node without a label"),
        (array != np.floor(array), "class numbers are integers"),
        (array >= MAX_CLASSES, f"class numbers are below {MAX_CLASSES}"),
    ):
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise DataError(f"label of row {row} is {array[row]}: {why}")
    return torch.from_numpy(array.astype(np.int64))


def checked_weights(weight: object, num_edges: int) -> NDArray[np.float32]:
    """Return edge weights as a finite float32 array of shape ``(num_edges,)``."""
    array = _dense(weight)
    if array.shape != (num_edges,):
        raise DataError(f"{num_edges} edges need {num_edges} weights, got shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise DataError(f"edge weights must be numbers, got {array.dtype}")
    with np.errstate(over="ignore"):
        values = array.astype(np.float32)
    if not np.isfinite(values).all():
        index = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"weight of edge {index} is {array[index]}: give every edge a finite weight")
    return values


def _dense(values: object) -> np.ndarray:
    from scipy.sparse import issparse

    if isinstance(values, torch.Tensor):
        return values.detach().cpu().numpy()
    return values.toarray() if issparse(values) else np.asarray(values)  # type: ignore[attr-defined]
