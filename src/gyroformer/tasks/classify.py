"""Node classification: cross-entropy on some nodes, chosen on others, tested on the rest."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from gyroformer.errors import DataError
from gyroformer.options import Options, option
from gyroformer.tasks.task import Task

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

    from gyroformer.data.split import Split
    from gyroformer.models.base import GraphModel
    from gyroformer.tasks.task import Ready

#: the ten splits of geom-gcn
STORED_SPLITS = 10
MAX_SEED = 2**32 - 1
#: classes up to which results hold the confusion matrix
MOST_CLASSES = 100


class ClassifyObjective(Options):
    """What ``classify`` is to reach."""

    split: str | None = option(
        "which nodes are for what: public, geom-gcn, random, clean or legacy; none for the data set's own",
        default=None,
    )
    split_seed: int | None = option(
        "which draw of a drawn split; none for the job's seed", default=None, at_least=0, at_most=MAX_SEED
    )
    split_index: int | None = option(
        "which of the stored splits; none to choose by the job's seed", default=None, at_least=0
    )
    stratified: bool = option("whether a random split keeps the classes' fractions", default=False)
    balanced: bool = option("whether every class weighs the same in the loss", default=False)
    final: bool = option(
        "after choosing and testing, train a last model on all labelled nodes, for as many epochs as were best; it is "
        "the one that predict uses, and has no test of its own",
        default=False,
        neutral=False,
    )


class NodeClassification(Task):
    """The task of labelling a graph's nodes.

    Args:
        data: the graph, with class numbers ``y``.
        split: which nodes are learned from, chosen on and tested on.
        balanced: whether every class weighs the same in the loss, however many nodes it has.
    """

    name = "classify"
    title = "node classification"
    help = """Classify nodes: train on some, choose the best epoch on others, print the F1 on the rest.

    F1 is, for one class, the harmonic mean of precision (how many of the nodes given to it are of it) and recall (how
    many of its nodes are found); over all classes together (micro-F1) it is the fraction of nodes that are right.

    Example: gyroformer classify cora --seeds 10
    """
    graph_flags = ("features", "labels", "directed")
    answer = "labels"
    Objective = ClassifyObjective
    shown = ("test_f1", "val_f1")
    judged_by = "val_f1"

    def __init__(self, data: "Data", split: "Split", *, balanced: bool = False) -> None:
        self.data, self.split = data, split
        self.y = data.y
        self.classes: int = count_classes(self.y)
        device = self.y.device
        self._train, self._val, self._test = (
            part.to(device) for part in (split.train, split.val, split.test)
        )
        self.weight = class_weights(self.y[self._train], self.classes) if balanced else None
        self.notes = (split.describe(),) if split.leaks else ()

    @classmethod
    def from_graph(
        cls,
        graph: "Data",
        objective: ClassifyObjective,
        ready: "Ready",
        *,
        seed: int,
        split: "Split | None" = None,
        **given: Any,
    ) -> Self:
        """Return the task; ``split`` replaces the one that the objective names."""
        if graph.y is None:
            raise DataError("the graph has no labels: give a file of labels (--labels)")
        split = split or split_of(graph, objective, seed)
        return cls(ready(graph, True), split, balanced=objective.balanced)

    def loss(self, model: "GraphModel") -> "Tensor":
        """Return the mean cross-entropy over the training nodes."""
        return self._entropy(model.scores(self.data), self._train)

    def evaluate(self, model: "GraphModel") -> dict[str, float]:
        """Return micro-F1 in percent and cross-entropy on the validation nodes."""
        scores, nodes = model.scores(self.data), self._val
        # with one label a node, micro-F1 is the accuracy
        right = (scores[nodes].argmax(-1) == self.y[nodes]).double().mean()
        return {"val_f1": 100 * float(right), "val_loss": float(self._entropy(scores, nodes))}

    def rank(self, metrics: Mapping[str, float]) -> tuple[float, ...]:
        """Return validation F1 and, for ties, the lower validation loss."""
        return (metrics["val_f1"], -metrics["val_loss"])

    def test(self, model: "GraphModel") -> dict[str, float]:
        """Return the metrics on the test nodes, to be read once, at the end; none if there are no test nodes."""
        if not self._test.numel():
            return {}
        metrics = classification_metrics(model.scores(self.data), self.y, self._test)
        return {f"test_{name}": value for name, value in metrics.items()}

    def results(self, model: "GraphModel", metrics: Mapping[str, float]) -> dict[str, Any]:
        """Return the metrics of the test, also class by class, those of the validation, and what they were taken on."""
        found = {**self.test(model), **self.results_so_far(model, metrics)}
        if self._test.numel() and self.classes <= MOST_CLASSES:
            found["test_confusion"] = confusion(model.scores(self.data), self.y, self._test, self.classes)
        return found

    def results_so_far(self, model: "GraphModel", metrics: Mapping[str, float]) -> dict[str, Any]:
        """Return the metrics of the validation, and what they were taken on."""
        return {
            **metrics,
            "label_names": self.data.label_names if "label_names" in self.data else None,
            "split": self.split.about(),
        }

    def _entropy(self, scores: "Tensor", nodes: "Tensor") -> "Tensor":
        from torch.nn import functional

        weight = None if self.weight is None else self.weight.to(scores)
        return functional.cross_entropy(scores[nodes], self.y[nodes], weight=weight)


class WholeClassification(NodeClassification):
    """The task of learning from every labelled node, when all has been chosen and tested: nothing is held out.

    Args:
        task: the task that the choice was made by.
        balanced: whether every class weighs the same in the loss.
    """

    def __init__(self, task: NodeClassification, *, balanced: bool = False) -> None:
        super().__init__(task.data, task.split)
        self._train = (self.y >= 0).nonzero().flatten()
        self.weight = class_weights(self.y[self._train], self.classes) if balanced else None

    @property
    def nodes(self) -> int:
        """The number of nodes that it learns from."""
        return self._train.numel()

    def evaluate(self, model: "GraphModel") -> dict[str, float]:
        """Return the cross-entropy on the nodes that are learned from."""
        return {"train_loss": float(self._entropy(model.scores(self.data), self._train))}

    def rank(self, metrics: Mapping[str, float]) -> tuple[float, ...]:
        """Keep the last state: there is nothing left to choose by."""
        return ()


def split_of(graph: "Data", objective: ClassifyObjective, seed: int) -> "Split":
    """Return the split that the objective names; unless it says which, ``seed`` chooses the draw."""
    from gyroformer.data.splits import SPLITS, make_split

    stratified = objective.stratified
    first = make_split(
        graph,
        objective.split,
        seed=objective.split_seed,
        index=objective.split_index,
        stratified=stratified,
    )
    takes = SPLITS[first.name].takes
    if takes == "seed" and objective.split_seed is None and first.name != "legacy":
        return make_split(graph, first.name, seed=seed, stratified=stratified)
    if takes == "index" and objective.split_index is None:
        return make_split(graph, first.name, index=seed % STORED_SPLITS)
    return first


def count_classes(y: "Tensor") -> int:
    """Return the number of classes, at least 2."""
    classes = int(y.max()) + 1
    if classes < 2:
        raise DataError("all nodes have the same label: there is nothing to learn")
    return classes


def class_weights(y: "Tensor", classes: int) -> "Tensor":
    """Return a weight for each class, inverse to its number of nodes; a class without any weighs 0."""
    counts = y.bincount(minlength=classes).double()
    present = counts > 0
    return (y.numel() / (present.sum() * counts.clamp(min=1))).where(present, 0.0)


def confusion(scores: "Tensor", y: "Tensor", nodes: "Tensor", classes: int) -> list[list[int]]:
    """Return how many of ``nodes`` of each true class (rows) are given each class (columns)."""
    place = y[nodes] * classes + scores[nodes].argmax(-1)
    found: list[list[int]] = place.bincount(minlength=classes * classes).reshape(classes, classes).tolist()
    return found


def class_scores(matrix: Sequence[Sequence[int]]) -> list[dict[str, float | int | None]]:
    """Return of a confusion matrix nodes, precision, recall and F1 of each class, in percent; None where undefined."""
    given = [sum(row[label] for row in matrix) for label in range(len(matrix))]
    found: list[dict[str, float | int | None]] = []
    for label, row in enumerate(matrix):
        right, true = row[label], sum(row)
        found.append(
            {
                "nodes": true,
                "precision": _percent(right, given[label]),
                "recall": _percent(right, true),
                "f1": _percent(2 * right, given[label] + true),
            }
        )
    return found


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def classification_metrics(scores: "Tensor", y: "Tensor", nodes: "Tensor") -> dict[str, float]:
    """Return micro-F1, accuracy (the same, asked for under both names) and macro-F1 of ``nodes``, in percent."""
    truth, found = y[nodes], scores[nodes].argmax(-1)
    right = truth == found
    of_class, given, both = (
        part.bincount(minlength=scores.shape[-1]) for part in (truth, found, truth[right])
    )
    macro = (
        2 * both.double() / (of_class + given)
    )  # not a number for a class that no node has and none is given
    accuracy = 100 * float(right.double().mean())
    return {"f1": accuracy, "accuracy": accuracy, "macro_f1": 100 * float(macro.nanmean())}
