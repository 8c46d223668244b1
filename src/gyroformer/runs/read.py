"""The one reader of a run folder: what was asked for, what came out, and the model with its graph."""

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from gyroformer.arrays import read_arrays
from gyroformer.data.load import load
from gyroformer.errors import CorruptFileError, DataError, MissingPartError, UsageError
from gyroformer.models import get_model
from gyroformer.models.pretrained import CONFIG, TASK, read_config, read_weights
from gyroformer.runs.check import ADVICE, check_embeddings, check_history
from gyroformer.runs.files import EMBEDDINGS, MANIFEST, METRICS, read_results, verify_run
from gyroformer.runs.graph import StoredGraph, read_graph
from gyroformer.settings import GraphOptions, JobSettings, job_from_plain
from gyroformer.untrusted import check_regular, read_json

if TYPE_CHECKING:
    import numpy as np
    import pandas
    from torch_geometric.data import Data

    from gyroformer.models.base import GraphModel

Row = dict[str, Any]


def open_run(path: str | Path, *, verify: bool = True) -> "Run":
    """Return the finished run in a folder.

    Args:
        path: the run folder.
        verify: whether every file is checked against its checksum first (the weights always are).

    Raises:
        DataError: the folder holds no finished run.
        CorruptFileError: a file is missing, altered or of an unknown version.
    """
    folder = Path(path)
    if not (folder / CONFIG).exists():
        raise DataError(f"{folder}: holds no run ({CONFIG} is missing); give the folder of a run (see runs/)")
    if verify:
        verify_run(folder)
    return Run(folder)


class Run:
    """A finished run. What it holds is read when it is first asked for, and kept.

    Example:
        >>> run = gf.open_run("runs/web-edu-embed-fpst")
        >>> run.results["map"], run.settings.training.epochs
        >>> run.model(run.graph)
        >>> run.frame().loc["a node"]

    Args:
        path: the run folder; :func:`open_run` checks it first.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results: dict[str, Any] = read_results(path)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """All of ``config.json``."""
        return read_config(self.path)

    @functools.cached_property
    def settings(self) -> JobSettings:
        """What was to be done."""
        job = self.config.get("job")
        if not isinstance(job, dict) or "task" not in job:
            raise DataError(
                f"{self.path}: the run has no settings of a job; it was not made by a command or an estimator"
            )
        try:
            return job_from_plain(upgraded(job, self.config["format"]))
        except UsageError as error:
            raise CorruptFileError(
                f"{self.path / CONFIG}: its settings are not of this version ({error})"
            ) from None

    @functools.cached_property
    def manifest(self) -> dict[str, Any]:
        """Versions, machine, checksums and times."""
        return read_json(self.path / MANIFEST)

    @functools.cached_property
    def history(self) -> list[Row]:
        """A row for each epoch: ``epoch``, ``loss``, ``lr``, ``curvatures``, and ``metrics`` where evaluated."""
        path = self.path / METRICS
        check_regular(path, error=CorruptFileError)
        try:
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except (OSError, ValueError, RecursionError) as error:
            raise CorruptFileError(f"{path}: cannot be read ({error})") from None
        check_history(rows, path)
        return rows

    @functools.cached_property
    def _arrays(self) -> "dict[str, np.ndarray]":
        path = self.path / EMBEDDINGS
        arrays = read_arrays(path, error=CorruptFileError, advice=ADVICE)
        check_embeddings(arrays, path)
        return arrays

    @property
    def ids(self) -> list[str]:
        """The nodes' ids as text, in the order of the rows."""
        return [str(name) for name in self._arrays["ids"].tolist()]

    @property
    def embeddings(self) -> "dict[str, np.ndarray]":
        """Arrays by name.

        ``embedding (N, heads, d)``: tangent vectors at the origin of each head's space; ``curvature (heads,)`` if the
        model has any; ``probability (N, classes)`` for a model with classes.
        """
        return {name: array for name, array in self._arrays.items() if name not in ("ids", "meaning")}

    @functools.cached_property
    def model(self) -> "GraphModel":
        """The trained model, in evaluation mode."""
        return get_model(self.config["model"]).build.from_pretrained(self.path)

    @functools.cached_property
    def task_weights(self) -> dict[str, Tensor]:
        """Parameters of the task's own, by name; empty if it had none."""
        tensors = read_weights(self.path, self.config["sha256"])
        return {name.removeprefix(TASK): t for name, t in tensors.items() if name.startswith(TASK)}

    @functools.cached_property
    def stored_graph(self) -> StoredGraph | None:
        """What ``graph.npz`` holds; None for a run of a version that kept no graph."""
        return read_graph(self.path)

    @functools.cached_property
    def graph(self) -> "Data":
        """The graph as it was read: ids, edges, and features and labels where there are any."""
        if self.stored_graph is not None:
            data = self.stored_graph.data
            if [str(name) for name in data.ids] != self.ids:
                raise CorruptFileError(
                    f"{self.path}: its graph has other nodes than its embeddings: {ADVICE}"
                )
            return data
        return self._graph_again()

    def _graph_again(self) -> "Data":
        """Return the graph from where the settings say: for runs of versions that kept none."""
        options = self.settings.graph
        if not options.source:
            raise DataError(f"{self.path}: does not say where its graph came from: give it as GRAPH")
        data = load_graph(options)
        if [str(name) for name in data.ids] != self.ids:
            raise DataError(f"{options.source}: now has other nodes than {self.path} was trained on")
        return data

    def frame(self) -> "pandas.DataFrame":
        """Return a table with a row for each node, its id as the index: coordinates, and probabilities of classes."""
        try:
            import pandas
        except ImportError:
            raise MissingPartError("pandas", "pandas", "a table of the embeddings") from None
        arrays = self.embeddings
        points = arrays["embedding"]
        names = coordinate_names(*points.shape[1:])
        table = pandas.DataFrame(
            points.reshape(len(points), -1), index=pandas.Index(self.ids, name="id"), columns=names
        )
        if "probability" in arrays:
            classes = self.results.get("label_names") or range(arrays["probability"].shape[1])
            for index, name in enumerate(classes):
                table[f"P({name})"] = arrays["probability"][:, index]
        return table


def load_graph(options: GraphOptions) -> "Data":
    """Return the graph that the settings name."""
    return load(options.source, directed=options.directed, features=options.features, labels=options.labels)


def coordinate_names(heads: int, width: int) -> list[str]:
    """Return the names of the coordinates of all heads, in the order of a joined vector."""
    return [f"h{head}_{index}" for head in range(heads) for index in range(width)]


def upgraded(job: dict[str, Any], version: int) -> dict[str, Any]:
    """Return the settings of a run of folder format ``version`` by the names of the present one."""
    if version > 1:
        return job
    renamed = {"val_share": "val_fraction", "test_share": "test_fraction"}
    objective = {renamed.get(key, key): value for key, value in job.get("objective", {}).items()}
    return {**job, "objective": objective}
