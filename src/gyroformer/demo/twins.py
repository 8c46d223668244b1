"""FPS-T beside its flat twin on a graph that every machine has: the main job, small enough for a minute.

The graph is written to a file first, so that the same commands that a user types work on it.
"""

import dataclasses as dc
import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from gyroformer.compiled import make_ready
from gyroformer.demo.stdlib_graph import ImportGraph, stdlib_graph
from gyroformer.durable import claimed, make_folder, write_durably
from gyroformer.errors import DataError, UsageError
from gyroformer.jobs.run import run_job
from gyroformer.models.pretrained import CONFIG
from gyroformer.options import as_plain
from gyroformer.report import REPORT, write_report
from gyroformer.runs.files import RESULTS
from gyroformer.runs.folder import LOCK
from gyroformer.settings import JobSettings, make_job
from gyroformer.train.loop import Listener
from gyroformer.untrusted import read_json

#: epochs of each of the two; the recipe's own number goes farther and takes longer
EPOCHS = 1000
#: the two models by the names of their folders
TWINS = {"fpst": "fpst", "flat": "tokengt"}


@dc.dataclass(frozen=True, slots=True)
class Comparison:
    """What the demo found.

    Attributes:
        fpst: results of FPS-T.
        flat: results of its flat twin.
        graph: the file with the graph.
        report: the page that compares the two.
    """

    fpst: dict[str, Any]
    flat: dict[str, Any]
    graph: Path
    report: Path


def run(
    folder: Path,
    *,
    seed: int = 0,
    epochs: int = EPOCHS,
    graph: ImportGraph | None = None,
    tell: Callable[[str], None] = lambda message: None,
    listening: Callable[[], AbstractContextManager[Listener | None]] = nullcontext,
) -> Comparison:
    """Embed the import graph of the standard library with both models and compare them on a page.

    Args:
        folder: where graph, runs and page go; an earlier demo there is replaced, an interrupted one continued.
        seed: of every draw.
        epochs: of both models, by the same recipe.
        graph: another graph.
        tell: hears what is being done.
        listening: gives a listener of the epochs for each model's training.
    """
    make_folder(folder)
    tell("reading the sources of Python's standard library")
    graph = graph or stdlib_graph()
    file = write_graph(folder, graph)
    make_ready()  # else the first of the two would be timed with the compiler
    found = {}
    for name, model in TWINS.items():
        tell(f"training {name} ({epochs} epochs)")
        job = make_job(
            "embed",
            graph={"source": str(file)},
            model={"name": model},
            training={"epochs": epochs},
            seed=seed,
        )
        make_room(folder / name, job)
        with listening() as listen:
            done = run_job(job, out=folder / name, resume=True, listen=listen, report=False)
        found[name] = done.results
    tell("writing the report")
    report = write_report([folder / name for name in TWINS], folder / REPORT)
    return Comparison(found["fpst"], found["flat"], file, report)


def write_graph(folder: Path, graph: ImportGraph) -> Path:
    """Write the graph as an edge list and return its path."""
    make_folder(folder)
    file = folder / f"python-{graph.python}-imports.csv"
    lines = [f"{graph.names[a]},{graph.names[b]}" for a, b in graph.edges]
    try:
        write_durably(file, ("\n".join(["source,target", *lines]) + "\n").encode())
    except OSError as error:
        raise DataError(f"{file}: cannot be written ({error.strerror}); choose another --out") from None
    return file


def make_room(folder: Path, job: JobSettings) -> None:
    """Remove the run of an earlier demo, unless it is this one, interrupted; refuse to touch anything else."""
    if not folder.exists() or not any(folder.iterdir()):
        return
    config = folder / CONFIG
    earlier = read_json(config).get("job", {}) if config.exists() else {}
    if not _is_demo(earlier):
        raise UsageError(f"{folder}: holds something that is not the demo's; choose another --out")
    if earlier == as_plain(job) and not (folder / RESULTS).exists():
        return
    with claimed(folder / LOCK):  # no other demo is at work on it
        try:
            shutil.rmtree(folder, ignore_errors=os.name != "posix")  # elsewhere a file in use cannot go
        except OSError as error:
            raise DataError(
                f"{folder}: cannot be replaced ({error.strerror}); choose another --out"
            ) from None


def _is_demo(job: dict[str, Any]) -> bool:
    source = Path(str(job.get("graph", {}).get("source", ""))).name
    return job.get("task") == "embed" and source.startswith("python-") and source.endswith("-imports.csv")
