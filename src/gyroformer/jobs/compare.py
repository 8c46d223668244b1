"""Several models on one graph with the same seeds, and what their runs say together."""

import dataclasses as dc
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gyroformer.durable import make_folder, write_output
from gyroformer.errors import UsageError
from gyroformer.jobs.plan import plan_task
from gyroformer.jobs.pool import Planned, Teller, run_all, run_folder
from gyroformer.report import REPORT, write_report
from gyroformer.report.closeness import Progress
from gyroformer.runs.files import read_results
from gyroformer.runs.graph import changed_parts, graph_checksums
from gyroformer.runs.read import load_graph
from gyroformer.runs.rows import key_of, read_rows
from gyroformer.runs.spread import interval
from gyroformer.runs.statistics import against_first, overlap_of
from gyroformer.settings import JobSettings
from gyroformer.tasks import TASKS
from gyroformer.tasks.classify import ClassifyObjective, split_of
from gyroformer.untrusted import read_json

if TYPE_CHECKING:
    from torch_geometric.data import Data

ROWS, SUMMARY, GRAPH_SUMS = "rows.csv", "compare.json", "graph.json"


@dc.dataclass(frozen=True)
class Comparison:
    """What is compared.

    Attributes:
        jobs: the job of each model with the first seed.
        seeds: number of seeds.
        out: folder for all that comes of it.
    """

    jobs: Mapping[str, JobSettings]
    seeds: int
    out: Path

    @property
    def metric(self) -> str:
        """The result that counts."""
        job = next(iter(self.jobs.values()))
        return TASKS[job.task].kind(job.objective).shown[0]

    def runs(self) -> list[Planned]:
        """Return all runs, seed by seed: after the first few the models can be compared already."""
        return [
            Planned(job.but(seed=job.seed + step), name, f"{name} seed {job.seed + step}")
            for step in range(self.seeds)
            for name, job in self.jobs.items()
        ]

    def done(self) -> list[Planned]:
        """Return the runs that have a row, model by model."""
        rows = read_rows(self.out / ROWS)
        found = [run for run in self.runs() if key_of(run.job) in rows]
        return [run for name in self.jobs for run in found if run.variant == name]

    def run(
        self,
        *,
        workers: int,
        threads: int,
        ignore_memory: bool = False,
        tell: Teller = lambda state: None,
        watch: Teller = lambda state: None,
    ) -> list[str]:
        """Do the runs that are not done; return what failed, a line each. A mistake is said before the first."""
        jobs = list(self.jobs.values())
        graph = load_graph(jobs[0].graph)
        plan_task(jobs[0], graph)
        self._check_split(graph)
        self._check_graph(graph_checksums(graph), jobs[0].graph.source)
        return run_all(
            self.runs(),
            file=self.out / ROWS,
            folder=self.out,
            workers=workers,
            threads=threads,
            ignore_memory=ignore_memory,
            tell=tell,
            watch=watch,
        )

    def _check_split(self, graph: "Data") -> None:
        """Refuse models that their recipes would test on different nodes: their differences say nothing."""
        splits = {
            name: split_of(graph, job.objective, job.seed)
            for name, job in self.jobs.items()
            if isinstance(job.objective, ClassifyObjective)
        }
        first = next(iter(splits), "")
        for name, split in splits.items():
            if split.sha256 != splits[first].sha256:
                raise UsageError(
                    f"{first} would be tested on the split {splits[first].name} and {name} on {split.name}: name one "
                    f"for both, as in --split {splits[first].name}"
                )

    def _check_graph(self, checksums: dict[str, str], source: str) -> None:
        """Refuse a graph that has changed since the first run here: runs on two graphs are no comparison."""
        make_folder(self.out)
        file = self.out / GRAPH_SUMS
        if file.exists():
            changed = changed_parts(read_json(file), checksums)
            if changed:
                raise UsageError(
                    f"{self.out}: was begun on another graph than {source} is now (changed: {', '.join(changed)}); "
                    "restore the file, or choose another --out"
                )
        write_output(file, (json.dumps(checksums, indent=2) + "\n").encode())

    def summary(self) -> dict[str, Any]:
        """Return a row for each model that has runs, and the first model's paired differences from the others."""
        rows, metric, done = read_rows(self.out / ROWS), self.metric, self.done()
        found, values = [], dict[str, dict[int, float]]()
        for name in dict.fromkeys(run.variant for run in done):
            jobs = [run.job for run in done if run.variant == name]
            own = [rows[key_of(job)] for job in jobs]
            values[name] = {job.seed: float(row["value"]) for job, row in zip(jobs, own, strict=True)}
            mean, half = interval(list(values[name].values()))
            found.append(
                {
                    "model": name,
                    "mean": mean,
                    "low": None if half is None else mean - half,
                    "high": None if half is None else mean + half,
                    "seeds": len(own),
                    "parameters": int(own[0]["parameters"]),
                    "seconds": interval([float(row["seconds"]) for row in own])[0],
                    "recipe": own[0]["recipe"],
                    "values": {str(seed): value for seed, value in values[name].items()},
                    "runs": [str(run_folder(self.out, job)) for job in jobs],
                }
            )
        first = next(iter(self.jobs))
        splits = [self._split(run) for run in done if run.variant == first]
        pairs = against_first(values, overlap=overlap_of(splits)) if first in values else []
        return {"metric": metric, "rows": found, "differences": pairs}

    def _split(self, run: Planned) -> dict[str, Any] | None:
        split: dict[str, Any] | None = read_results(run_folder(self.out, run.job)).get("split")
        return split

    def report(self, progress: Progress | None = None) -> Path | None:
        """Write one page of all runs that are done and return it; None if there are none."""
        done = self.done()
        if not done:
            return None
        folders = [run_folder(self.out, run.job) for run in done]
        names = [run.about for run in done]
        return write_report(folders, self.out / REPORT, names=names, progress=progress)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Keep the summary beside the runs."""
        write_output(self.out / SUMMARY, (json.dumps(summary, indent=2) + "\n").encode())


def chosen_models(names: Sequence[str]) -> list[str]:
    """Return the names if they are two models or more, each once."""
    from gyroformer.models import get_model

    for name in names:
        get_model(name)
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise UsageError(f"--models names {twice[0]!r} twice: name each model once")
    if len(names) < 2:
        raise UsageError(
            f"--models names {'one' if names else 'no'} model: name two or more, as in --models fpst,tokengt,gcn"
        )
    return list(names)
