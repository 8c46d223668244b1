"""Everything that decides a job's result, in one value that is written to ``config.json``.

A job's settings start from a recipe; what the user gives goes before it; the rest are the declared defaults. They are
complete: reading a run again never depends on a default that has changed since.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from gyroformer.data.registry import DATASETS
from gyroformer.errors import UsageError, did_you_mean
from gyroformer.models import get_model
from gyroformer.options import Options, as_plain, from_plain, merged, option
from gyroformer.options.features import FeatureOptions
from gyroformer.options.models import DECIDED_BY_GRAPH, GraphModelOptions
from gyroformer.options.training import TrainOptions
from gyroformer.recipes import read_recipe, usual_recipe
from gyroformer.tasks import TASKS

#: graph files that hold edges only, so that features would come from a second file
EDGES_ONLY = {
    ".txt",
    ".csv",
    ".tsv",
    ".edges",
    ".mtx",
    ".parquet",
    ".jsonl",
    ".ndjson",
    ".gexf",
    ".graphml",
    ".gml",
}


class GraphOptions(Options):
    """Which graph."""

    source: str = option("a data set's name or a file; empty for a graph given in Python", default="")
    directed: bool = option(
        "keep the direction of edges; for link, and for Transformers, whose edge tokens are then directed",
        default=False,
    )
    features: str | None = option(
        "a file of node features, or one of a data set's feature sets", default=None
    )
    labels: str | None = option("a file of labels, for a graph from a file", default=None)
    header: bool | None = option(
        "whether the first line of an edge list names its columns; found by default",
        default=None,
        neutral=None,
    )
    source_column: str | None = option(
        "column of an edge list with the first ends, by name or number",
        default=None,
        flag="source",
        neutral=None,
    )
    target_column: str | None = option(
        "column of an edge list with the second ends", default=None, flag="target", neutral=None
    )
    weight_column: str | None = option(
        "column of an edge list with the weights; none to leave weights out",
        default=None,
        flag="weight",
        neutral=None,
    )

    @property
    def columns(self) -> dict[str, Any]:
        """How an edge list is to be read, as far as that is said: arguments of ``gyroformer.load``."""
        said = {
            "header": self.header,
            "source": self.source_column,
            "target": self.target_column,
            "weight": self.weight_column,
        }
        return {name: value for name, value in said.items() if value is not None}


class ModelSettings(Options):
    """Which model, with all its options but those that the graph decides."""

    name: str = option("the model", default="fpst")
    options: dict[str, Any] = option("its options", default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        spec = get_model(self.name)
        known = [one.name for one in spec.choices()]
        for key in self.options:
            if key in DECIDED_BY_GRAPH:
                raise UsageError(f"the option {key!r} of a model is decided by the graph: it cannot be set")
            if key not in known:
                raise UsageError(
                    f"the model {self.name!r} has no option {key!r}{did_you_mean(str(key), known)} "
                    f"(options: {', '.join(known)})"
                )
        whole = as_plain(self._whole())
        object.__setattr__(self, "options", {key: whole[key] for key in known})

    @property
    def width(self) -> int:
        """Free coordinates of a node inside the model, all spaces together."""
        return self._whole().width

    def _whole(self) -> GraphModelOptions:
        # checked as a model would: a graph of one feature stands for any
        return from_plain(get_model(self.name).options, {"in_features": 1, **self.options})


class JobSettings(Options):
    """A job: equal settings on the same kind of machine give equal results."""

    task: str = option("what the model is trained for")
    recipe: str = option("the recipe that the values started from", default="default")
    graph: GraphOptions = option("which graph", default_factory=GraphOptions)
    model: ModelSettings = option("which model", default_factory=ModelSettings)
    features: FeatureOptions = option("how node features are prepared", default_factory=FeatureOptions)
    training: TrainOptions = option("how to train", default_factory=TrainOptions)
    objective: Any = option("what is to be reached, by the task's own options")
    seed: int = option("seed of every random draw", default=0, at_least=0, at_most=2**32 - 1)
    device: str = option("where to compute: cpu, cuda, … or auto for the fastest", default="cpu")
    dtype: Literal["float32", "float64"] = option("precision of the numbers", default="float32")


def job_from_plain(values: Mapping[str, Any]) -> JobSettings:
    """Return the job that ``as_plain`` made into dictionaries."""
    task = values.get("task")
    if task not in TASKS:
        raise UsageError(f"task must be one of {', '.join(TASKS)}; got {task!r}")
    objective = from_plain(TASKS[task].Objective, values.get("objective", {}), "objective")
    return from_plain(JobSettings, {**values, "objective": objective})


def may_have_features(source: str, features: str | None) -> bool:
    """Return whether the graph named ``source`` has node features, as far as its name and options tell."""
    if features is not None:
        return True
    if source in DATASETS:
        return DATASETS[source].features > 0
    suffixes = [suffix for suffix in Path(source).suffixes if suffix != ".gz"]
    return not suffixes or suffixes[-1].lower() not in EDGES_ONLY


def _check_recipe(recipe: Mapping[str, Any], name: str, model: str) -> None:
    """Raise if a recipe sets options that the model does not have: it is for other models."""
    table = recipe.get("model")
    options = table.get("options") if isinstance(table, dict) else None
    known = {one.name for one in get_model(model).choices()} | {*DECIDED_BY_GRAPH}
    strange = [key for key in options if key not in known] if isinstance(options, dict) else []
    if strange:
        raise UsageError(
            f"the recipe {name!r} sets {strange[0]!r}, which the model {model!r} does not have: it is for other "
            "models, such as fpst; leave --recipe out for the usual one"
        )


def make_job(
    task: str,
    *,
    recipe: str | None = None,
    dataset: str = "",
    has_features: bool | None = None,
    **values: Any,
) -> JobSettings:
    """Return a job: a recipe's settings, with ``values`` (nested like the job) in their places.

    Args:
        task: a name in ``gyroformer.tasks.TASKS``.
        recipe: the recipe's name; by default the usual one for the model and the data set.
        dataset: name of the data set, which may have a recipe of its own.
        has_features: whether the graph has node features; by default as its name tells.
        values: settings that differ, e.g. ``model={"name": "tokengt"}, training={"epochs": 10}``.
    """
    if task not in TASKS:
        raise UsageError(f"task must be one of {', '.join(TASKS)}; got {task!r}")
    model = values.get("model", {}).get("name", ModelSettings().name)
    graph = values.get("graph", {})
    if has_features is None:
        has_features = may_have_features(graph.get("source", ""), graph.get("features"))
    asked = merged({"model": {"name": model}}, values)
    name = (
        recipe
        or TASKS[task].own_recipe(asked)
        or usual_recipe(
            task,
            model=model,
            dataset=dataset,
            split=values.get("objective", {}).get("split"),
            features=has_features,
        )
    )
    base = read_recipe(task, name)
    _check_recipe(base, name, model)
    implied = TASKS[task].implied(merged(base, values))
    if graph.get("directed") and get_model(model).tokens:
        implied = merged(implied, {"model": {"options": {"edge_tokens": "directed"}}})
    given = merged(implied, values)
    # what a recipe says for one model only
    own = base.pop("models", {}).get(model, {})
    base = merged({**base, "task": task, "recipe": name}, {"model": {"options": own}} if own else {})
    if recipe is None:
        base = merged(base, TASKS[task].usual(asked))
    return job_from_plain(merged(base, given))
