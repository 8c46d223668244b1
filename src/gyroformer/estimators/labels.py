"""Labels as users have them, numbers or words with gaps, to class numbers and back."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gyroformer.errors import DataError, UsageError
from gyroformer.estimators.inputs import Ids, Int, array_of
from gyroformer.graphs.check import UNLABELLED

if TYPE_CHECKING:
    from torch_geometric.data import Data


def own_labels(data: "Data") -> NDArray[Any] | None:
    """Return the labels that a graph carries, by their names if it has these; None if it has no labels."""
    if data.y is None:
        return None
    numbers, names = array_of(data.y), getattr(data, "label_names", None)
    return numbers if names is None else np.where(numbers == UNLABELLED, "", np.asarray(names)[numbers])


def labels_of_nodes(y: object, ids: Ids) -> NDArray[Any]:
    """Return one label for each node.

    A mapping from ids to labels, or a pandas ``Series`` with ids as its index, leaves the nodes that it does not name
    unlabelled.
    """
    if _is_series(y):
        y = _by_id(y, ids)
    if not isinstance(y, Mapping):
        labels = array_of(y)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.shape != (len(ids.names),):
            raise UsageError(
                f"y must hold one label for each of the {len(ids.names)} nodes, got {labels.shape}"
            )
        return labels
    labels = np.full(len(ids.names), None, dtype=object)
    for name, label in y.items():
        labels[ids.index(name)] = label
    return labels


def _is_series(y: object) -> bool:
    pandas = sys.modules.get("pandas")  # who holds a Series has imported it
    return pandas is not None and isinstance(y, pandas.Series)


def _by_id(series: Any, ids: Ids) -> Any:
    """Return a Series as a mapping by ids; one whose index says nothing but a row's number is in the order of nodes."""
    names = series.index.tolist()
    known = set(ids.names)
    if len(set(names)) < len(names):
        raise UsageError("y is a Series with a repeated id in its index: keep one label for each node")
    if all(name in known for name in names):
        return dict(zip(names, series.tolist(), strict=True))
    if names == list(range(len(ids.names))):
        return series.to_numpy()
    unknown = next(name for name in names if name not in known)
    raise UsageError(
        f"y is a Series whose index names {unknown!r}, which is no node: its index must hold ids"
    )


def encoded(labels: NDArray[Any]) -> tuple[NDArray[Any], Int]:
    """Return the sorted distinct labels, and for each node its label's index there or ``UNLABELLED``.

    −1 among numbers, and None, NaN and empty text among others, mean that a node has no label.
    """
    known = ~missing(labels)
    values = labels[known]
    if values.dtype == object:
        values = _narrowed(values)
    if values.dtype.kind == "f" and not (values == np.floor(values)).all():
        raise UsageError("Unknown label type: continuous numbers are no classes; give integers or text")
    classes, codes = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        found = f"all labels are {classes[0]}, 1 class" if len(classes) else "no node has a label"
        raise DataError(f"{found}: nothing can be learned with fewer than 2 classes")
    numbers = np.full(len(labels), UNLABELLED, dtype=np.int64)
    numbers[known] = codes
    return classes, numbers


def missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where there is no label."""
    kind = labels.dtype.kind
    if kind in "iuf":
        return (labels == UNLABELLED) | (labels != labels)  # NaN alone differs from itself
    if kind in "US":
        return labels == labels.dtype.type()
    if kind == "O":
        return np.array([_is_gap(label) for label in labels], dtype=bool)
    if kind == "b":
        return np.zeros(len(labels), dtype=bool)
    raise UsageError(f"labels must be numbers or text, got {labels.dtype}")


def _is_gap(label: object) -> bool:
    if label is None or (isinstance(label, str) and not label):
        return True
    number = isinstance(label, (int, float, np.number)) and not isinstance(label, bool)
    return number and (label == UNLABELLED or label != label)


def _narrowed(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array of objects as one of text or of numbers; both in one cannot be put in order."""
    text = [isinstance(value, str) for value in values]
    if all(text):
        return values.astype(np.str_)
    if any(text):
        raise UsageError("labels are numbers and text at once: make them one kind")
    return np.array(values.tolist())
