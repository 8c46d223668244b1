"""What a table of runs is: columns, rows, and the cells where they meet."""

import dataclasses as dc
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from gyroformer.errors import UsageError, did_you_mean
from gyroformer.options import as_plain, merged
from gyroformer.settings import JobSettings, make_job
from gyroformer.tasks import TASKS

#: models that a table is about, with more seeds than the others of the first table
TWINS = ("fpst", "tokengt")


@dc.dataclass(frozen=True)
class Variant:
    """A model with some settings changed, or with the recipe of another.

    Attributes:
        name: what it is called.
        model: the model.
        changes: settings, nested like a job's.
        recipe: the recipe that it starts from; None for the usual one.
        features_of: the model whose recipe says how features are prepared; None for its own.
        only: data sets or columns that it is run on; empty for all of its table.
    """

    name: str
    model: str
    changes: Mapping[str, Any] = dc.field(default_factory=dict)
    recipe: str | None = None
    features_of: str | None = None
    only: tuple[str, ...] = ()

    def is_for(self, column: "Column") -> bool:
        """Return whether it is run on a column."""
        wanted = not self.only or not {column.dataset, column.name}.isdisjoint(self.only)
        return wanted and (not column.rows or self.name in column.rows)


@dc.dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        dataset: the data set.
        split: the split, the same for all models; None where nothing is held out.
        overlap: test nodes for each training node where each seed draws a split of its own; 0 for a fixed split.
        epochs: epochs, where they are not the recipe's.
        task: the task, where a table has several.
        test_nodes: nodes of a test; 0 where nothing is held out.
        width: width of every model, where it is not the recipe's.
        seeds: number of runs of every row, where it is not the table's.
        rows: the rows that are run on it; empty for all of its table.
    """

    dataset: str
    split: str | None = None
    overlap: float = 0.0
    epochs: int | None = None
    task: str | None = None
    test_nodes: int = 0
    width: int | None = None
    seeds: int | None = None
    rows: tuple[str, ...] = ()

    @property
    def split_name(self) -> str:
        """What its split is called beside published ones."""
        return {None: "none", "random": "60/20/20"}.get(self.split, self.split or "")

    @property
    def name(self) -> str:
        """The data set, and the split or the width if it is marked."""
        marks = {"legacy": f" ({self.split})"}.get(self.split or "", "")
        return f"{self.dataset}{marks}" + (f" width {self.width}" if self.width else "")


@dc.dataclass(frozen=True)
class Table:
    """A table of the paper, or one of our own.

    Attributes:
        name: what the command calls it.
        task: the task of its runs.
        columns: its columns.
        variants: its rows.
        seeds: number of runs of the twins, and of every other row.
        title: its heading.
    """

    name: str
    task: str
    columns: tuple[Column, ...]
    variants: tuple[Variant, ...]
    seeds: tuple[int, int]
    title: str

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(column.name for column in self.columns)

    @property
    def models(self) -> tuple[str, ...]:
        """The names of its rows."""
        return tuple(variant.name for variant in self.variants)

    def cells(
        self, datasets: Sequence[str] = (), models: Sequence[str] = (), seeds: int | None = None
    ) -> list["Cell"]:
        """Return the cells, those of the named data sets and models only if any are named."""
        for given, known, what in ((datasets, self.datasets, "data set"), (models, self.models, "row")):
            for name in given:
                if name not in known:
                    near = did_you_mean(name, known)
                    raise UsageError(f"{self.name} has no {what} {name!r}{near} (known: {', '.join(known)})")
        found = [
            Cell(self, column, variant, seeds or column.seeds or self.seeds[variant.name not in TWINS])
            for column in self.columns
            for variant in self.variants
            if (not datasets or column.name in datasets)
            and (not models or variant.name in models)
            and variant.is_for(column)
        ]
        if not found:
            raise UsageError(f"{self.name} has none of {', '.join(models)} on {', '.join(datasets)}")
        return found


@dc.dataclass(frozen=True)
class Cell:
    """A cell of a table: a variant on a data set, over several seeds."""

    table: Table
    column: Column
    variant: Variant
    seeds: int

    @property
    def task(self) -> str:
        """The task of its runs."""
        return self.column.task or self.table.task

    @functools.cached_property
    def metric(self) -> str:
        """The result that it shows."""
        return TASKS[self.task].kind(self.job().objective).shown[0]

    def job(self, seed: int = 0) -> JobSettings:
        """Return one run: the variant's recipe, the column's split."""
        column, variant = self.column, self.variant
        dataset = column.dataset
        values: dict[str, Any] = {
            "graph": {"source": dataset},
            "model": {"name": variant.model},
            "seed": seed,
        }
        if column.width is not None:
            values["model"]["options"] = {"dim": column.width}
        if column.split is not None:
            values["objective"] = {"split": column.split}
        if column.epochs is not None and variant.recipe is None:  # a recipe that is named has its own
            values["training"] = {"epochs": column.epochs}
        if variant.features_of is not None:
            other = make_job(self.task, dataset=dataset, model={"name": variant.features_of})
            values["features"] = as_plain(other.features)
        return make_job(self.task, recipe=variant.recipe, dataset=dataset, **merged(values, variant.changes))

    def jobs(self) -> list[JobSettings]:
        """Return its runs."""
        first = self.job()
        return [first.but(seed=seed) for seed in range(self.seeds)]
