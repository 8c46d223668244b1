"""What a page needs to know of a run, read from its folder."""

import dataclasses as dc
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gyroformer.errors import CorruptFileError, DataError, UsageError
from gyroformer.models.pretrained import CONFIG
from gyroformer.report.run_graph import RunGraph, graph_of_run
from gyroformer.train.finished import EMBEDDINGS, MANIFEST, METRICS, RESULTS, read_json, verify_run

if TYPE_CHECKING:
    from torch_geometric.data import Data

Row = dict[str, Any]


@dc.dataclass(frozen=True, slots=True)
class RunRecord:
    """A finished run.

    Attributes:
        name: what the page calls it; different for different runs of a page.
        path: its folder.
        results: its figures.
        job: its settings, nested.
        model: the model's own arguments.
        manifest: environment and sums.
        rows: one for each epoch.
        ids: the nodes' ids as text.
        embedding: tangent vectors at the origin of each head, ``(N, heads, d)``.
        curvature: one for each head; zeros for a model that has none.
        predicted: the most probable class of each node; None for a model without classes.
        graph: edges and labels, if they could be read again.
    """

    name: str
    path: Path
    results: dict[str, Any]
    job: dict[str, Any]
    model: dict[str, Any]
    manifest: dict[str, Any]
    rows: list[Row]
    ids: list[str]
    embedding: "np.ndarray[Any, Any]"
    curvature: "np.ndarray[Any, Any]"
    predicted: "np.ndarray[Any, Any] | None"
    graph: RunGraph


def run_folders(paths: Sequence[Path]) -> list[Path]:
    """Return the runs that are meant: a folder that is no run itself stands for the runs right in it."""
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            raise UsageError(f"{path}: is not a folder; give the folder of a run (see runs/)")
        inside = [] if (path / CONFIG).exists() else sorted(path.glob(f"*/{RESULTS}"), key=_by_number)
        found += [result.parent for result in inside] or [path]
    distinct = list(dict.fromkeys(folder.resolve() for folder in found))
    if not distinct:
        raise UsageError("no run was named: give the folder of a run (see runs/)")
    return distinct


def _by_number(result: Path) -> tuple[str, int, str]:
    """Return a key that sorts seed-10 after seed-9."""
    stem, _, number = result.parent.name.rpartition("-")
    return (stem, int(number), "") if number.isdecimal() else (result.parent.name, -1, "")


def run_names(folders: Sequence[Path]) -> list[str]:
    """Return a name for each folder: its last parts, as few as tell it from the others."""
    for depth in range(1, max(len(folder.parts) for folder in folders) + 1):
        names = ["/".join(folder.parts[-depth:]) for folder in folders]
        if len(set(names)) == len(names):
            return names
    raise UsageError("the same run was named twice")


def read_run(folder: Path, name: str, data: "Data | None" = None) -> RunRecord:
    """Return the finished run in ``folder``, its files checked against their sums.

    Args:
        folder: the run folder.
        name: what to call it.
        data: its graph, if it need not be read again.
    """
    if not (folder / CONFIG).exists():
        raise UsageError(f"{folder}: holds no run; give the folder of a run (see runs/)")
    verify_run(folder)
    about = read_json(folder / CONFIG)
    with np.load(folder / EMBEDDINGS, allow_pickle=False) as arrays:
        stored = {key: arrays[key] for key in arrays.files}
    if "embedding" not in stored or stored["embedding"].ndim != 3:
        raise DataError(f"{folder / EMBEDDINGS}: has no array 'embedding' of the shape (nodes, heads, width)")
    ids, embedding = stored["ids"].tolist(), stored["embedding"].astype(np.float64)
    curvature = stored.get("curvature", np.zeros(0)).astype(np.float64)
    if curvature.shape != (embedding.shape[1],):  # a model without curvatures: its space is flat
        curvature = np.zeros(embedding.shape[1])
    job = about.get("job", {})
    return RunRecord(
        name=name,
        path=folder,
        results=read_json(folder / RESULTS),
        job=job,
        model=about.get("config", {}),
        manifest=read_json(folder / MANIFEST),
        rows=_read_rows(folder / METRICS),
        ids=ids,
        embedding=embedding,
        curvature=curvature,
        predicted=stored["probability"].argmax(-1) if "probability" in stored else None,
        graph=graph_of_run(job.get("graph", {}), ids, data),
    )


def _read_rows(path: Path) -> list[Row]:
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise CorruptFileError(f"{path}: cannot be read ({error})") from None
