"""Everything that decides a job's result, in one value that is written to ``config.json``."""

import dataclasses as dc
from pathlib import Path
from typing import Any, Literal

from gyroformer.config import from_plain, merged
from gyroformer.data.registry import DATASETS
from gyroformer.errors import UsageError
from gyroformer.graphs.features import FeatureSettings
from gyroformer.recipes import read_recipe, usual_recipe
from gyroformer.train.settings import TrainSettings


@dc.dataclass(frozen=True, kw_only=True)
class GraphSettings:
    """Which graph.

    Attributes:
        source: a data set's name or a file.
        directed: whether the direction of edges is kept.
        features: a data set's feature set, or a file of features.
        labels: a file of labels.
    """

    source: str = ""
    directed: bool = False
    features: str | None = None
    labels: str | None = None


@dc.dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Which model, and the arguments of its constructor that are not its own defaults."""

    name: str = "fpst"
    options: dict[str, Any] = dc.field(default_factory=dict)


@dc.dataclass(frozen=True, kw_only=True)
class EmbedObjective:
    """What ``embed`` is to reach.

    Attributes:
        squared: whether the loss holds squared distances.
        negatives: ``"all"`` non-neighbours, a number of sampled ones, or ``"auto"``: all up to a size.
        map_nodes: number of nodes over which mAP is taken; None: all, up to a size.
        use_features: whether the graph's features are used; by default each node has a vector of its own.
    """

    squared: bool = True
    negatives: Literal["all", "auto"] | int = "auto"
    map_nodes: int | None = None
    use_features: bool = False


@dc.dataclass(frozen=True, kw_only=True)
class ClassifyObjective:
    """What ``classify`` is to reach.

    Attributes:
        split: the name of a split; None: the data set's own.
        split_seed: which draw; None: the job's seed.
        split_index: which stored one; None: by the job's seed.
        stratified: whether a random split keeps the classes' shares.
        balanced: whether every class weighs the same in the loss.
    """

    split: str | None = None
    split_seed: int | None = None
    split_index: int | None = None
    stratified: bool = False
    balanced: bool = False


@dc.dataclass(frozen=True, kw_only=True)
class LinkObjective:
    """What ``link`` is to reach.

    Attributes:
        decoder: probabilities of edges from squared distances, ``"fermi-dirac"``, or plain ones, ``"distance"``.
        radius: the decoder's radius.
        temperature: its temperature.
        learn_decoder: whether training changes the two.
        val_share: share of the edges held out to choose by.
        test_share: share of the edges held out to test on.
        split_seed: which draw; None: the job's seed.
    """

    decoder: Literal["fermi-dirac", "distance"] = "fermi-dirac"
    radius: float = 2.0
    temperature: float = 1.0
    learn_decoder: bool = False
    val_share: float = 0.05
    test_share: float = 0.10
    split_seed: int | None = None


@dc.dataclass(frozen=True, kw_only=True)
class JobSettings:
    """A job: equal settings on the same kind of machine give equal results.

    Attributes:
        task: ``"embed"``, ``"classify"`` or ``"link"``.
        recipe: the recipe that the values started from.
        graph: which graph.
        model: which model.
        features: how node features are made ready.
        training: how to train.
        seed: of every draw.
        device: where to compute.
        dtype: with how many digits.
    """

    task: str
    recipe: str = "default"
    graph: GraphSettings = GraphSettings()
    model: ModelSettings = ModelSettings()
    features: FeatureSettings = dc.field(default_factory=FeatureSettings)
    training: TrainSettings = dc.field(default_factory=TrainSettings)
    seed: int = 0
    device: str = "cpu"
    dtype: Literal["float32", "float64"] = "float32"


@dc.dataclass(frozen=True, kw_only=True)
class EmbedJob(JobSettings):
    """Graph reconstruction."""

    task: str = "embed"
    objective: EmbedObjective = EmbedObjective()


@dc.dataclass(frozen=True, kw_only=True)
class ClassifyJob(JobSettings):
    """Node classification."""

    task: str = "classify"
    objective: ClassifyObjective = ClassifyObjective()


@dc.dataclass(frozen=True, kw_only=True)
class LinkJob(JobSettings):
    """Link prediction."""

    task: str = "link"
    objective: LinkObjective = LinkObjective()


JOBS: dict[str, type[JobSettings]] = {"embed": EmbedJob, "classify": ClassifyJob, "link": LinkJob}


def job_from_plain(values: dict[str, Any]) -> JobSettings:
    """Return the job that ``config.as_plain`` made into dictionaries."""
    task = values.get("task")
    if task not in JOBS:
        raise UsageError(f"task must be one of {', '.join(JOBS)}; got {task!r}")
    return from_plain(JOBS[task], values)


#: graph files that hold edges only, so that features would come from a second file
EDGES_ONLY = {".txt", ".csv", ".tsv", ".edges", ".mtx"}


def may_have_features(source: str, features: str | None) -> bool:
    """Return whether the graph named ``source`` has node features, as far as its name and options tell."""
    if features is not None:
        return True
    if source in DATASETS:
        return DATASETS[source].features > 0
    suffixes = [suffix for suffix in Path(source).suffixes if suffix != ".gz"]
    return not suffixes or suffixes[-1].lower() not in EDGES_ONLY


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
        task: ``"embed"``, ``"classify"`` or ``"link"``.
        recipe: the recipe's name; by default the usual one for the model and the data set.
        dataset: name of the data set, which may have a recipe of its own.
        has_features: whether the graph has node features; by default as its name tells.
        values: settings that differ, e.g. ``model={"name": "tokengt"}, training={"epochs": 10}``.
    """
    model = values.get("model", {}).get("name", ModelSettings().name)
    graph = values.get("graph", {})
    if has_features is None:
        has_features = may_have_features(graph.get("source", ""), graph.get("features"))
    name = recipe or usual_recipe(task, model=model, dataset=dataset, features=has_features)
    return job_from_plain(merged({**read_recipe(task, name), "task": task, "recipe": name}, values))
