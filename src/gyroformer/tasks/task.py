"""What a task is, on one page. To add one: write a file like ``embed.py`` and name its class in ``tasks/__init__.py``.

A task says what a model is trained for. Its file holds, from top to bottom: its options (:attr:`Task.Objective`), what
it makes of a graph (:meth:`Task.from_graph`), the loss, the evaluation and the order of states that training needs, and
the results that are reported. The command line, recipes, run folders, reports and estimators know it through this class
only; its command and flags are derived from ``name``, ``help`` and ``Objective``. Recipes (``recipes/NAME/*.toml``) are
welcome, and not needed.

A job runs in this order::

    task = Reconstruction.from_graph(graph, objective, ready, seed=0)   # the graph as it was read
    model = ...                                                # built for task.data and task.classes
    task.start(model)
    for epoch in ...:
        task.loss(model).backward()                            # in training mode, once an epoch
        metrics = task.evaluate(model)                         # now and then; task.rank(metrics) keeps the best state
    task.results(model, metrics)                               # once, at the end

The files of tasks import torch inside functions only: ``--help`` shows their options and must not wait for it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from gyroformer.options import Options

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch_geometric.data import Data

    from gyroformer.models.base import GraphModel

    #: makes of a graph what a model sees: features prepared, or left out if the second argument is False, on the device
    Ready = Callable[[Data, bool], Data]


#: options of the graph that every command has: how an edge list is read
READING = ("directed", "header", "source_column", "target_column", "weight_column")


class Trainable(ABC):
    """A loss to lower, and metrics to judge a model by: all that the training loop knows.

    What must survive a resume lies in the model, in ``module``, in ``kept``, and in torch's global random generators;
    ``loss`` draws from these and from no other source.
    """

    #: what it is called
    name: ClassVar[str]
    #: parameters of the task's own (a decoder), trained, saved and restored with the model's
    module: "nn.Module | None" = None
    #: whether several processes that compute as one share the loss: each returns a part, and the parts add up to it;
    #: if not, each returns the whole, which is right too and saves no time
    shares_loss: ClassVar[bool] = False
    #: hears how many of how many nodes an evaluation has done, where it takes long; the loop listens
    heard: "Callable[[int, int], None] | None" = None
    #: buffers that steps change and a checkpoint needs, but no finished model (lists of near nodes)
    kept: "nn.Module | None" = None

    @abstractmethod
    def loss(self, model: "GraphModel") -> "Tensor":
        """Return the scalar to be lowered, or this process's part of it (``shares_loss``)."""

    @abstractmethod
    def evaluate(self, model: "GraphModel") -> dict[str, float]:
        """Return finite metrics by name; called in evaluation mode without gradients, draws no random number."""

    def rank(self, metrics: Mapping[str, float]) -> tuple[float, ...]:
        """Return what selects the best state, larger is better; an empty tuple keeps the last state."""
        return ()


class Task(Trainable):
    """What a model is trained for on one graph.

    Its ``name`` is the command, the folder of recipes and the entry in ``config.json``.
    """

    #: a noun, for titles
    title: ClassVar[str]
    #: what ``gyroformer NAME --help`` says, with an example
    help: ClassVar[str]
    #: which options of the graph (``gyroformer.settings.GraphOptions``) its command has beside ``READING``
    graph_flags: ClassVar[tuple[str, ...]] = ("features",)
    #: which options of running (``gyroformer.cli.job_flags.RunOptions``) its command has that others do not
    run_flags: ClassVar[tuple[str, ...]] = ()
    #: its options
    Objective: ClassVar[type[Options]]
    #: what ``gyroformer predict`` answers when nothing is asked: ``"nearest"``, ``"labels"`` or ``"new_edges"``
    answer: ClassVar[str] = "nearest"
    #: keys of the results that are printed, the one that counts first
    shown: ClassVar[tuple[str, ...]]
    #: the metric of ``evaluate`` by which settings are chosen, larger is better
    judged_by: ClassVar[str]

    #: whether its loss counts each edge by its weight
    uses_weights: ClassVar[bool] = False
    #: whether it looks at the direction of edges, whatever the model does
    uses_direction: ClassVar[bool] = False

    #: the graph that the model sees, on the model's device
    data: "Data"
    #: number of classes of the model; None for points
    classes: int | None = None
    #: what the user should know of choices that were made
    notes: tuple[str, ...] = ()

    @classmethod
    @abstractmethod
    def from_graph(cls, graph: "Data", objective: Any, ready: "Ready", *, seed: int, **given: Any) -> "Task":
        """Return the task for a graph as it was read; its objective may make it a special kind of task.

        Args:
            graph: the graph.
            objective: the task's options.
            ready: prepares the features of the graph that the model is to see, and moves it to its device.
            seed: of every draw that the objective leaves open.
            given: what a caller in Python brings along, for instance a split.
        """

    @abstractmethod
    def results(self, model: "GraphModel", metrics: Mapping[str, float]) -> dict[str, Any]:
        """Return the results of the trained model; what is held out for the test is looked at here, once."""

    def start(self, model: "GraphModel") -> None:
        """Put a new model where training is to begin, if that is not where it was built."""

    def results_so_far(self, model: "GraphModel", metrics: Mapping[str, float]) -> dict[str, Any]:
        """Return the results of a run that is not finished: what is held out for the test is not looked at."""
        return dict(metrics)

    @classmethod
    def uses_features(cls, objective: Any) -> bool:
        """Return whether the model is to see the graph's features, if it has any."""
        return True

    @classmethod
    def own_recipe(cls, values: Mapping[str, Any]) -> str | None:
        """Return the recipe that the user's settings, with the model's name, call for; None for the usual one."""
        return None

    @classmethod
    def kind(cls, objective: Any) -> "type[Task]":
        """Return the class of the task that an objective makes of this one: whose metrics count."""
        return cls

    @classmethod
    def usual(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings for what the user gave that go before those of the usual recipe, nested like a job's."""
        return {}

    @classmethod
    def implied(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings that follow from others, nested like a job's; those given by the user go before them."""
        return {}


#: words of metrics' keys that are not written as they are
_WORDS = {
    "calibration": "calibration error",
    "hierarchy": "ancestors'",
    "map": "mAP",
    "f1": "F1",
    "auc": "AUC",
    "ap": "AP",
    "val": "validation",
}


def metric_title(key: str) -> str:
    """Return what a metric is called, e.g. ``"validation F1"`` for ``"val_f1"``."""
    words = [_WORDS.get(word, word.replace("hits@", "Hits@")) for word in key.split("_")]
    return " ".join(words)
