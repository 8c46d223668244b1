"""What is searched: the paper's grid and, for every model alike, how node features are prepared.

The paper prints a grid for layers, heads, weight decay, dropout, activation, hops and eigenvectors. Features decide
more than any of these, so their preparation is in everybody's space, and so is a weight decay beyond the printed ones.
"""

import dataclasses as dc
from collections.abc import Iterator, Mapping
from typing import Any

from gyroformer.graphs.features import Kind
from gyroformer.models import get_model
from gyroformer.options import as_plain
from gyroformer.options.check import choices_of
from gyroformer.options.models import ActiveOptions, HGNNOptions, NodeModelOptions
from gyroformer.settings import JobSettings, make_job


@dc.dataclass(frozen=True)
class Choice:
    """A setting with the values that are tried.

    Attributes:
        path: where it is in a job, e.g. ``"features.mixing"``.
        values: the values.
        when: it is asked only if the setting at this path has one of these values; None for always.
    """

    path: str
    values: tuple[Any, ...]
    when: tuple[str, tuple[Any, ...]] | None = None

    @property
    def name(self) -> str:
        """Its name in a study: the path, and the condition where two choices share a path."""
        return self.path if self.when is None else f"{self.path} if {self.when[1][0]}"

    def applies(self, point: Mapping[str, Any]) -> bool:
        """Return whether it is asked after the choices at ``point``, by path."""
        return self.when is None or point.get(self.when[0]) in self.when[1]


#: options of models: the paper's grid, and for Transformers on tokens what graphs with features need
GRID: dict[str, tuple[Any, ...]] = {
    "layers": (1, 2, 3),
    "heads": (1, 2, 4),
    "dropout": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7),
    # of Transformers: the dropout of graph networks is that of features too
    "feature_dropout": (0.0, 0.2, 0.5),
    "activation": ("relu", "elu", "tanh", "sigmoid"),
    "identifiers": (0, 4, 8, 16, 32),
    "identifier_norm": ("unit", "entry"),
    "edge_tokens": ("undirected", "none"),
    "final_norm": (False, True),
    "time_dim": (1, 8, 16),
    "graph_weight": (0.2, 0.5, 0.8),
    "refine": (False, True),
}
#: of these, what a model without classes is searched over: one layer and no dropout, as in the paper
POINTS = ("heads", "activation", "identifiers", "time_dim", "graph_weight")
#: at the paper's 1e-4 the curvatures hardly leave 0; each model may find out
CURVATURE_RATES = {"embed": (1e-4, 1e-2, 5e-2)}
USUAL_CURVATURE_RATES = (1e-4, 1e-2)

#: words and long vectors share a space; quantiles are for a few numbers alone
MANY = Choice("features.entries", ("row", "l2", "binary", "zscore"))
FEW = Choice("features.entries", ("zscore", "quantile"))
ENTRIES: dict[Kind, Choice] = {"words": MANY, "vectors": MANY, "numbers": FEW}
#: what of the features is searched beside their entries
FEATURES = (
    Choice("features.mixing", ("none", "power", "ppr", "joined")),
    Choice("features.hops", (2, 10, 20, 30), when=("features.mixing", ("power",))),
    Choice("features.hops", (1, 2, 3), when=("features.mixing", ("joined",))),
    Choice("features.alpha", (0.1, 0.2), when=("features.mixing", ("ppr",))),
    Choice("features.norm", ("sym", "row"), when=("features.mixing", ("power", "ppr", "joined"))),
    Choice("features.loops", (True, False), when=("features.mixing", ("power", "ppr", "joined"))),
    Choice("features.size", ("l2", "rms", "none")),
    Choice("features.scale", (1.0, 2.0, 4.0), when=("features.size", ("l2", "rms"))),
)
#: how a distance becomes the probability of an edge
DECODER = (Choice("objective.degrees", (True, False)), Choice("objective.learn_decoder", (True, False)))
WEIGHT_DECAY = Choice("training.weight_decay", (0.0, 1e-4, 5e-4, 1e-3, 5e-3, 2e-2))

#: what a start leaves to the search unless it says it: some models have a dropout by default and others have none
DROPOUTS = ("model.options.dropout", "model.options.feature_dropout")
#: a handful of numbers says too little to decay its weights, or to leave some of it out
NOTHING_LOST = {"training.weight_decay": 0.0, **dict.fromkeys(DROPOUTS, 0.0)}
#: the numbers of a node and of its neighbours side by side
BESIDE_NEIGHBOURS = {
    **{"features.mixing": "joined", "features.hops if joined": 2},
    **{"features.norm if power": "sym", "features.loops if power": True},
    **{"features.size": "rms", "features.scale if l2": 2.0},
}
#: words spread over the graph
SPREAD = {
    **{"features.entries": "row", "features.mixing": "ppr", "features.alpha if ppr": 0.1},
    **{"features.norm if power": "sym", "features.loops if power": True, "training.weight_decay": 2e-2},
}
#: where every search with words, or with long vectors, begins, whatever the model: words alone, words alone as long as
#: the rest, words of neighbours beside a node's own, words spread over the graph, the same so long that they outweigh
#: what a token says of its node's place, which is left out, and as numbers of several units
WORDS: tuple[dict[str, Any], ...] = (
    {"features.entries": "row", "features.mixing": "none", "features.size": "none"},
    {
        **{"features.entries": "l2", "features.mixing": "none"},
        **{"features.size": "l2", "features.scale if l2": 4.0, "training.weight_decay": 5e-3},
    },
    {
        **{"features.entries": "binary", "features.mixing": "joined", "features.hops if joined": 2},
        **{"features.norm if power": "row", "features.loops if power": False},
        **{"features.size": "rms", "features.scale if l2": 2.0, "training.weight_decay": 5e-3},
    },
    {**SPREAD, "features.size": "l2", "features.scale if l2": 2.0},
    {**SPREAD, "features.size": "rms", "features.scale if l2": 4.0, "model.options.identifiers": 0},
    {"features.entries": "zscore", **BESIDE_NEIGHBOURS, **NOTHING_LOST},
)
#: and with numbers: in their units, and along their quantiles, alone and beside the neighbours'
NUMBERS: tuple[dict[str, Any], ...] = (
    {"features.entries": "zscore", **BESIDE_NEIGHBOURS, **NOTHING_LOST},
    {
        **{"features.entries": "quantile", "features.mixing": "none"},
        **{"features.size": "rms", "features.scale if l2": 2.0, **NOTHING_LOST},
    },
    {"features.entries": "quantile", **BESIDE_NEIGHBOURS, **NOTHING_LOST},
    # of many steps for each number some can be left out
    {"features.entries": "quantile", **BESIDE_NEIGHBOURS, **NOTHING_LOST, **dict.fromkeys(DROPOUTS, 0.2)},
)
#: what ``entries = "suited"`` of the usual recipes comes to
SUITED: dict[Kind, str] = {"words": "row", "numbers": "quantile", "vectors": "zscore"}
STARTS: dict[Kind, tuple[dict[str, Any], ...]] = {"words": WORDS, "vectors": WORDS, "numbers": NUMBERS}


def space_of(job: JobSettings, features: Kind | None) -> list[Choice]:
    """Return the choices for a job's task and model, which sees node features of this kind, or none."""
    decoder = DECODER if job.task == "link" else ()
    prepared = () if features is None else (ENTRIES[features], *FEATURES)
    return [*_model_choices(job), *_training_choices(job), *decoder, *prepared]


def starts_of(space: list[Choice], job: JobSettings, features: Kind | None) -> list[dict[str, Any]]:
    """Return the points that a study begins with, by the choices' names: the usual recipe, then several preparations.

    What a preparation does not say is as the job has it, but for dropout; a value that is not among those tried is
    left to the search.
    """
    first = _usual_start(space, job, features)
    if features is None:
        return [first]
    usual = {
        choice.name: own
        for choice in space
        if choice.path not in DROPOUTS and (own := _at(job, choice.path)) in choice.values
    }
    names = {choice.name for choice in space}
    starts = [
        {**usual, **{name: value for name, value in start.items() if name in names}}
        for start in STARTS[features]
    ]
    return [first, *starts]


def _usual_start(space: list[Choice], job: JobSettings, features: Kind | None) -> dict[str, Any]:
    """Return what the usual recipe for a graph of one's own says of the space: no search is to find less than that.

    A data set's own recipe is not meant: it would be what an earlier search has found.
    """
    usual = make_job(job.task, has_features=features is not None, model={"name": job.model.name})
    start = {choice.name: own for choice in space if (own := _at(usual, choice.path)) in choice.values}
    kind, dropout = get_model(job.model.name).options, "model.options.dropout"
    if issubclass(kind, NodeModelOptions) and any(choice.name == dropout for choice in space):
        # a network's None stands for its paper's, or for none at all
        start.setdefault(dropout, kind.usual_dropout if job.task == "classify" else 0.0)
    if features is not None and any(choice.name == "features.entries" for choice in space):
        start["features.entries"] = SUITED[features]
    return start


def _at(job: JobSettings, path: str) -> Any:
    """Return the setting at a path, None if there is none."""
    found: Any = as_plain(job)
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _model_choices(job: JobSettings) -> Iterator[Choice]:
    for one in get_model(job.model.name).choices():
        if one.name not in GRID or (job.task == "embed" and one.name not in POINTS):
            continue
        if one.name == "activation" and _is_idle(job):
            continue
        words = choices_of(one.hint)
        values = tuple(value for value in GRID[one.name] if not words or value in words)
        if one.name == "time_dim":
            values = tuple(value for value in values if value <= job.model.options["dim"])
        if one.name == "heads":
            values = tuple(value for value in values if job.model.options["dim"] % value == 0)
        yield Choice(f"model.options.{one.name}", values)


def _is_idle(job: JobSettings) -> bool:
    """Return whether the activation does nothing: it stands between layers, and a network that embeds has but one.

    HGNN has one after its first map as well, and Hypformer if that is refined.
    """
    kind, options = get_model(job.model.name).options, job.model.options
    between = issubclass(kind, ActiveOptions) and not issubclass(kind, HGNNOptions)
    return job.task == "embed" and between and options["layers"] == 1 and not options.get("refine", False)


def _training_choices(job: JobSettings) -> Iterator[Choice]:
    if job.task != "embed":
        yield WEIGHT_DECAY
    if job.model.options.get("learn_curvature"):
        yield Choice("training.curvature_lr", CURVATURE_RATES.get(job.task, USUAL_CURVATURE_RATES))
