"""Node classification: cross-entropy on some nodes, chosen on others, tested on the rest."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from gyroformer.data.split import Split
from gyroformer.errors import DataError
from gyroformer.models.base import GraphModel

if TYPE_CHECKING:
    from torch_geometric.data import Data


class NodeClassification:
    """The task of labelling a graph's nodes.

    Args:
        data: the graph, with class numbers ``y``.
        split: which nodes are learned from, chosen on and tested on.
        balanced: whether every class weighs the same in the loss, however many nodes it has.
    """

    name = "classify"

    def __init__(self, data: "Data", split: Split, *, balanced: bool = False) -> None:
        self.data, self.split = data, split
        self.y = data.y
        self.classes = count_classes(self.y)
        self.weight = class_weights(self.y[split.train], self.classes) if balanced else None

    def loss(self, model: GraphModel) -> Tensor:
        """Return the mean cross-entropy over the training nodes."""
        return self._entropy(model.scores(self.data), self.split.train)

    def evaluate(self, model: GraphModel) -> dict[str, float]:
        """Return micro-F1 in percent and cross-entropy on the validation nodes."""
        scores, nodes = model.scores(self.data), self.split.val
        # with one label a node, micro-F1 is the accuracy
        right = (scores[nodes].argmax(-1) == self.y[nodes]).double().mean()
        return {"val_f1": 100 * float(right), "val_loss": float(self._entropy(scores, nodes))}

    def rank(self, metrics: Mapping[str, float]) -> tuple[float, ...]:
        """Return validation F1 and, for ties, the lower validation loss."""
        return (metrics["val_f1"], -metrics["val_loss"])

    def test(self, model: GraphModel) -> dict[str, float]:
        """Return the figures on the test nodes, to be read once, at the end; none if there are no test nodes."""
        if not self.split.test.numel():
            return {}
        figures = classification_figures(model.scores(self.data), self.y, self.split.test)
        return {f"test_{name}": value for name, value in figures.items()}

    def _entropy(self, scores: Tensor, nodes: Tensor) -> Tensor:
        weight = None if self.weight is None else self.weight.to(scores)
        return functional.cross_entropy(scores[nodes], self.y[nodes], weight=weight)


def count_classes(y: Tensor) -> int:
    """Return the number of classes, at least 2."""
    classes = int(y.max()) + 1
    if classes < 2:
        raise DataError("all nodes have the same label: there is nothing to learn")
    return classes


def class_weights(y: Tensor, classes: int) -> Tensor:
    """Return a weight for each class, inverse to its number of nodes; a class without any weighs 0."""
    counts = y.bincount(minlength=classes).double()
    present = counts > 0
    return torch.where(present, y.numel() / (present.sum() * counts.clamp(min=1)), 0.0)


def classification_figures(scores: Tensor, y: Tensor, nodes: Tensor) -> dict[str, float]:
    """Return micro-F1, accuracy (the same, asked for under both names) and macro-F1 of ``nodes``, in percent."""
    from sklearn.metrics import accuracy_score, f1_score

    truth, found = y[nodes].cpu().numpy(), scores[nodes].argmax(-1).cpu().numpy()
    return {
        "f1": 100 * float(f1_score(truth, found, average="micro")),
        "accuracy": 100 * float(accuracy_score(truth, found)),
        "macro_f1": 100 * float(f1_score(truth, found, average="macro", zero_division=0.0)),
    }
