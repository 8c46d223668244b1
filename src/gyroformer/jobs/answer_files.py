"""Answers and embeddings as files: CSV, TSV, JSON, npz, parquet."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gyroformer.durable import write_output
from gyroformer.errors import MissingPartError, UsageError
from gyroformer.jobs.predict import Answer
from gyroformer.runs.files import MEANING
from gyroformer.runs.read import coordinate_names

Arrays = dict[str, NDArray[Any]]

DELIMITERS = {".csv": ",", ".tsv": "\t"}


def write_answers(path: Path, answers: Sequence[Answer], whole: dict[str, Any]) -> None:
    """Write answers to ``path``: ``.csv`` or ``.tsv`` takes one, ``.json`` the ``whole`` object."""
    match path.suffix.lower():
        case ".json":
            text = json.dumps(whole, indent=2, allow_nan=False) + "\n"
        case ".csv" | ".tsv" as suffix:
            if len(answers) != 1:
                names = ", ".join(answer.name for answer in answers) or "none"
                raise UsageError(
                    f"{path}: a table holds one answer, asked for were {names}: ask for one, or use .json"
                )
            text = _table(suffix, answers[0].columns, answers[0].rows)
        case _:
            raise UsageError(f"{path}: answers are written as .csv, .tsv or .json")
    write_output(path, text.encode())


def write_embeddings(path: Path, ids: Sequence[Any], arrays: Arrays) -> None:
    """Write ids and coordinates to ``path``: ``.npz``, ``.csv``, ``.tsv`` or ``.parquet``.

    ``.npz`` holds what a run's ``embeddings.npz`` holds. The others have a row for each node: ``id`` and the
    coordinates ``h0_0, h0_1, …`` of the first head, then of the second, and so on. Numbers are written in full.
    """
    writers: dict[str, Callable[[], bytes]] = {
        ".npz": lambda: _npz(ids, arrays),
        ".csv": lambda: _coordinates(".csv", ids, arrays).encode(),
        ".tsv": lambda: _coordinates(".tsv", ids, arrays).encode(),
        ".parquet": lambda: _parquet(path, ids, arrays),
    }
    if path.suffix.lower() not in writers:
        raise UsageError(f"{path}: embeddings are written as {', '.join(writers)}")
    write_output(path, writers[path.suffix.lower()]())


def _table(suffix: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=DELIMITERS[suffix], lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _named(arrays: Arrays) -> tuple[list[str], NDArray[Any]]:
    """Return the coordinates' names and the coordinates, ``(N, columns)``."""
    points = arrays["embedding"]
    return coordinate_names(*points.shape[1:]), points.reshape(len(points), -1)


def _coordinates(suffix: str, ids: Sequence[Any], arrays: Arrays) -> str:
    names, points = _named(arrays)
    # numpy's text of a float32 is the shortest that reads back as the same number
    return _table(
        suffix,
        ["id", *names],
        [[name, *row] for name, row in zip(ids, points.astype(str).tolist(), strict=True)],
    )


def _npz(ids: Sequence[Any], arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    kept: dict[str, Any] = {"ids": np.array([str(name) for name in ids], dtype=np.str_)}
    kept |= {"meaning": np.array(MEANING), **arrays}
    np.savez(buffer, **kept)
    return buffer.getvalue()


def _parquet(path: Path, ids: Sequence[Any], arrays: Arrays) -> bytes:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingPartError("pyarrow", "parquet", f"writing {path}") from None
    names, points = _named(arrays)
    columns = {"id": list(ids)} | {name: points[:, index] for index, name in enumerate(names)}
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table(columns), sink)
    return bytes(sink.getvalue().to_pybytes())
