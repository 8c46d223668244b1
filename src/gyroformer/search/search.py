"""What is searched for, as one value: it names its study and gives the job at each point of its space."""

import dataclasses as dc
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gyroformer.durable import sha256_of
from gyroformer.graphs.features import Kind
from gyroformer.options import as_plain, merged
from gyroformer.runs.rows import generation
from gyroformer.search.space import Choice, space_of
from gyroformer.settings import JobSettings, make_job
from gyroformer.tasks import TASKS

#: seeds of trials, which no table reports: its own begin at 0
FIRST_SEED = 1000


@dc.dataclass(frozen=True)
class Search:
    """What is searched for.

    Attributes:
        task: the task.
        graph: a data set's name or a file.
        model: the model.
        recipe: the recipe that settings outside the space come from; None for the usual one.
        fixed: settings that are held, nested like a job's; they leave the space.
        trials: trials in all, those of other workers and of earlier calls among them.
        seeds: runs of each trial, whose mean counts; with a drawn split each has a split of its own.
        seed: of the sampler; another seed is another study.
    """

    task: str
    graph: str
    model: str
    trials: int
    recipe: str | None = None
    fixed: Mapping[str, Any] = dc.field(default_factory=dict)
    seeds: int = 1
    seed: int = 0

    def job(self, point: Mapping[str, Any] | None = None, replicate: int = 0) -> JobSettings:
        """Return the job at a point of the space, given by paths."""
        values: dict[str, Any] = {"graph": {"source": self.graph}, "model": {"name": self.model}}
        for path, value in (point or {}).items():
            *tables, name = path.split(".")
            inner: dict[str, Any] = {name: value}
            for table in reversed(tables):
                inner = {table: inner}
            values = merged(values, inner)
        values = merged(values, {**self.fixed, "seed": FIRST_SEED + replicate})
        return make_job(self.task, recipe=self.recipe, dataset=self.graph, **values)

    def space(self, features: Kind | None) -> list[Choice]:
        """Return the choices that are not held fixed, for models that see features of this kind, or none."""
        held = dict(leaves(self.fixed))
        return [choice for choice in space_of(self.job(), features) if choice.path not in held]

    @property
    def judged_by(self) -> str:
        """The metric that is to become large."""
        return TASKS[self.task].kind(self.job().objective).judged_by

    def name(self, space: list[Choice]) -> str:
        """Return the study's name: other settings, another space, graph or code of the model are another study."""
        job = self.job()
        files = [Path(value) for value in as_plain(job.graph).values() if isinstance(value, str)]
        graph = [sha256_of(path) for path in files if path.is_file()]
        about = [as_plain(job), [dc.asdict(choice) for choice in space], self.seeds, graph, generation(job)]
        if self.seed:  # 0 is not said: studies from before the seed was part of the name are found
            about.append({"seed": self.seed})
        mark = hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode()).hexdigest()[:8]
        return f"{self.task}-{Path(self.graph).stem}-{self.model}-{mark}"


def leaves(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested tables, each with its path."""
    for key, value in table.items():
        path = f"{before}{key}"
        if isinstance(value, Mapping):
            yield from leaves(value, f"{path}.")
        else:
            yield path, value
