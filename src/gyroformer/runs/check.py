"""What the files of a run must be, checked before anything is made of them: a folder may be damaged or hostile."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gyroformer.errors import CorruptFileError, UsageError
from gyroformer.options.check import Range, checked
from gyroformer.tasks import SHOWN

if TYPE_CHECKING:
    import numpy as np

Row = dict[str, Any]
ADVICE = "restore it, or run again into another folder"

#: coordinates and curvatures beyond this are of no run: their squares would leave every finite number
LARGEST = 1e6
_COUNT = Range(at_least=0, at_most=2**62)
#: the type of each result that is read again; a run may have others
RESULTS: dict[str, Any] = {
    **dict.fromkeys(("task", "graph", "model", "recipe", "stopped"), str),
    **dict.fromkeys(("nodes", "edges", "parameters", "seed", "epochs", "best_epoch"), int),
    "seconds": float,
    "rate_lowered": bool,
    "curvatures": Sequence[Sequence[float]],
    "label_names": Sequence[str] | None,
    "split": dict | None,
    "test_confusion": Sequence[Sequence[int]] | None,
    "final": dict | None,
    **dict.fromkeys(SHOWN, float | None),
}
SPLIT: dict[str, Any] = {
    **dict.fromkeys(("train", "val", "test", "leaks"), int | None),
    **dict.fromkeys(("seed", "index"), int | None),
    **dict.fromkeys(("name", "sha256"), str),
}
ROW: dict[str, Any] = {"epoch": int, "loss": float, "lr": float}


def check_results(results: dict[str, Any], path: Path) -> None:
    """Raise unless the results have the types that they are read with."""
    _check(RESULTS, results, path)
    if results.get("split") is not None:
        _check(SPLIT, results["split"], path, "split.")
        if "sha256" not in results["split"]:
            raise CorruptFileError(f"{path}: its split has no checksum: {ADVICE}")


def check_history(rows: list[Any], path: Path) -> None:
    """Raise unless the rows are those of the epochs 1, 2, …, with finite numbers."""
    if not rows:
        raise CorruptFileError(f"{path}: holds no epoch: {ADVICE}")
    for index, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or row.get("epoch") != index:
            raise CorruptFileError(f"{path}: line {index} is not of epoch {index}: {ADVICE}")
        if not all(_is_row_value(key, value) for key, value in row.items()) or ROW.keys() - row.keys():
            raise CorruptFileError(f"{path}: line {index} is not a row of metrics: {ADVICE}")
    widths = {len(row["curvatures"]) for row in rows if "curvatures" in row}
    if len(widths) > 1:
        raise CorruptFileError(
            f"{path}: has another number of curvatures in one epoch than in another: {ADVICE}"
        )


def check_embeddings(arrays: "dict[str, np.ndarray]", path: Path) -> None:
    """Raise unless the arrays are ids, points, curvatures and probabilities that belong together."""
    for problem in _problems(arrays):
        raise CorruptFileError(f"{path}: {problem}: {ADVICE}")


def _problems(arrays: "dict[str, np.ndarray]") -> Iterator[str]:
    import numpy as np

    def is_number(name: str, dims: int) -> bool:
        array = arrays[name]
        return array.ndim == dims and array.dtype.kind == "f" and bool(np.isfinite(array).all())

    if "ids" not in arrays or "embedding" not in arrays:
        yield "has no ids or no embedding"
        return
    ids, points = arrays["ids"], arrays["embedding"]
    if ids.ndim != 1 or ids.dtype.kind != "U":
        yield "its ids are not a list of text"
    if not is_number("embedding", 3) or not points.size:
        yield "its embedding is not (nodes, heads, width) of finite numbers"
    elif len(ids) != len(points):
        yield "has another number of ids than of nodes"
    for name in ("embedding", "curvature"):
        if name in arrays and arrays[name].size and not np.abs(arrays[name]).max() <= np.float64(LARGEST):
            yield f"its {name} is beyond ±{LARGEST:g}"
    if "curvature" in arrays and not (is_number("curvature", 1) and arrays["curvature"].size):
        yield "its curvature is not a list of finite numbers"
    if "probability" in arrays:
        chances = arrays["probability"]
        if not is_number("probability", 2) or len(chances) != len(ids) or not chances.size:
            yield "its probability is not (nodes, classes) of finite numbers"


def _check(types: dict[str, Any], values: dict[str, Any], path: Path, prefix: str = "") -> None:
    for key in types.keys() & values.keys():
        try:
            checked(types[key], values[key], f"{prefix}{key}", _COUNT if types[key] is int else Range())
        except UsageError as error:
            raise CorruptFileError(f"{path}: {error}; {ADVICE}") from None


def _is_row_value(key: str, value: Any) -> bool:
    if key == "curvatures":
        return isinstance(value, list) and all(map(_is_finite, value))
    if key == "metrics":
        return isinstance(value, dict) and all(map(_is_finite, value.values()))
    return _is_finite(value) if key in ROW else True


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < math.inf
