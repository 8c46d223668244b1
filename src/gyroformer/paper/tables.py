"""The paper's tables as lists of jobs, and the numbers that it prints for them."""

import dataclasses as dc
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gyroformer.errors import UsageError, did_you_mean
from gyroformer.models import MODELS
from gyroformer.settings import JobSettings, make_job

PRINTED = Path(__file__).with_name("printed.toml")
#: models that a table is about, with more seeds than the others of the first table
TWINS = ("fpst", "tokengt")


@dc.dataclass(frozen=True)
class Table:
    """A table of the paper.

    Attributes:
        name: what the command calls it.
        task: the task of all its runs.
        metric: the result that it shows.
        datasets: its columns.
        splits: the split of each data set, the same for all models; empty for the data set's own.
        seeds: number of runs of the twins, and of every other model.
    """

    name: str
    task: str
    metric: str
    datasets: tuple[str, ...]
    splits: dict[str, str]
    seeds: tuple[int, int]

    def job(self, dataset: str, model: str, seed: int = 0) -> JobSettings:
        """Return one run: the model's usual recipe, the table's split."""
        values: dict[str, Any] = {"graph": {"source": dataset}, "model": {"name": model}, "seed": seed}
        if dataset in self.splits:
            values["objective"] = {"split": self.splits[dataset]}
        return make_job(self.task, dataset=dataset, **values)

    def cells(
        self, datasets: Sequence[str] = (), models: Sequence[str] = (), seeds: int | None = None
    ) -> list["Cell"]:
        """Return the cells, those of the named data sets and models only if any are named."""
        for given, known, what in ((datasets, self.datasets, "data set"), (models, tuple(MODELS), "model")):
            for name in given:
                if name not in known:
                    near = did_you_mean(name, list(known))
                    raise UsageError(f"{self.name} has no {what} {name!r}{near} (known: {', '.join(known)})")
        return [
            Cell(self, dataset, model, seeds or self.seeds[model not in TWINS])
            for dataset in datasets or self.datasets
            for model in models or MODELS
        ]


@dc.dataclass(frozen=True)
class Cell:
    """A cell of a table: a model on a data set, over several seeds."""

    table: Table
    dataset: str
    model: str
    seeds: int

    def jobs(self) -> list[JobSettings]:
        """Return its runs."""
        return [self.table.job(self.dataset, self.model, seed) for seed in range(self.seeds)]


#: 60/20/20 draws, as in the paper, for every model alike
DRAWN = dict.fromkeys(("texas", "cornell", "wisconsin", "actor"), "random")

TABLES = {
    "table1": Table(
        "table1", "embed", "map", ("web-edu", "power", "facebook", "bio-worm"), splits={}, seeds=(5, 3)
    ),
    "table2": Table(
        "table2",
        "classify",
        "test_f1",
        ("texas", "cornell", "wisconsin", "actor", "airport", "citeseer", "pubmed", "cora"),
        # the paper's own split of Airport has test nodes among its training nodes
        splits={**DRAWN, "airport": "clean", **dict.fromkeys(("citeseer", "pubmed", "cora"), "public")},
        seeds=(10, 10),
    ),
}


def printed(table: str, dataset: str, model: str) -> tuple[float, float] | None:
    """Return mean and ± that the paper prints in a cell; None if it has no such cell."""
    with PRINTED.open("rb") as file:
        found = tomllib.load(file)[table][dataset].get(model)
    return None if found is None else (float(found[0]), float(found[1]))
