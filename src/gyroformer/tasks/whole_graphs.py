"""Many graphs, each with one label or number: losses on batches, chosen on graphs that are held out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gyroformer.tasks.task import Trainable

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch_geometric.data import Data

    from gyroformer.models.base import GraphModel


def batches(graphs: "Sequence[Data]", size: int) -> "Iterator[Data]":
    """Yield the graphs in their order, ``size`` at a time, as batches."""
    from gyroformer.graphs.pyg import Batch

    for start in range(0, len(graphs), size):
        yield Batch.from_data_list(list(graphs[start : start + size]))


class WholeGraphs(Trainable):
    """Training on many graphs.

    Args:
        train: graphs to learn from, prepared for the model, on its device.
        val: graphs to choose the best state on.
        y: targets of both, training first.
        batch_size: graphs in a step.
    """

    def __init__(self, train: "Sequence[Data]", val: "Sequence[Data]", y: "Tensor", batch_size: int) -> None:
        self.train, self.val, self.batch_size = list(train), list(val), batch_size
        self.y_train, self.y_val = y[: len(self.train)], y[len(self.train) :]
        self._left: list[int] = []
        self._val_batches = list(batches(self.val, batch_size))

    @property
    def steps(self) -> int:
        """Steps of one pass over the training graphs."""
        return -(-len(self.train) // self.batch_size)

    def outputs(self, model: "GraphModel", batch: "Data") -> "Tensor":
        """Return the model's answer for each graph of a batch."""
        raise NotImplementedError

    def error(self, outputs: "Tensor", y: "Tensor") -> "Tensor":
        """Return the mean loss of answers."""
        raise NotImplementedError

    def loss(self, model: "GraphModel") -> "Tensor":
        """Return the loss of the next batch; after the last one the graphs are put in a new order."""
        import torch

        from gyroformer.graphs.pyg import Batch

        if not self._left:
            self._left = torch.randperm(len(self.train)).tolist()
        chosen, self._left = self._left[: self.batch_size], self._left[self.batch_size :]
        batch = Batch.from_data_list([self.train[i] for i in chosen])
        return self.error(self.outputs(model, batch), self.y_train[chosen])

    def answers(self, model: "GraphModel") -> "Tensor":
        """Return the answers for the held-out graphs."""
        import torch

        return torch.cat([self.outputs(model, batch) for batch in self._val_batches])


class GraphClassification(WholeGraphs):
    """The task of labelling graphs; targets are class numbers."""

    name = "graph classification"

    def outputs(self, model: "GraphModel", batch: "Data") -> "Tensor":
        """Return class scores."""
        return model.scores(batch)

    def error(self, outputs: "Tensor", y: "Tensor") -> "Tensor":
        """Return the cross-entropy."""
        from torch.nn import functional

        return functional.cross_entropy(outputs, y)

    def evaluate(self, model: "GraphModel") -> dict[str, float]:
        """Return accuracy, from 0 to 1, and cross-entropy on the held-out graphs."""
        scores = self.answers(model)
        right = (scores.argmax(-1) == self.y_val).double().mean()
        return {"val_accuracy": float(right), "val_loss": float(self.error(scores, self.y_val))}

    def rank(self, metrics: Mapping[str, float]) -> tuple[float, ...]:
        """Return the accuracy and, for ties, the lower loss."""
        return (metrics["val_accuracy"], -metrics["val_loss"])


class GraphRegression(WholeGraphs):
    """The task of telling numbers of graphs; targets ``(n, t)`` have mean 0 and deviation 1.

    Args:
        train: as in :class:`WholeGraphs`.
        val: likewise.
        y: likewise.
        batch_size: likewise.
        module: from a graph's tangent vector, all heads side by side, to its ``t`` numbers.
    """

    name = "graph regression"
    module: "nn.Module"

    def __init__(
        self,
        train: "Sequence[Data]",
        val: "Sequence[Data]",
        y: "Tensor",
        batch_size: int,
        module: "nn.Module",
    ) -> None:
        super().__init__(train, val, y, batch_size)
        self.module = module

    def outputs(self, model: "GraphModel", batch: "Data") -> "Tensor":
        """Return the numbers ``(n, t)``."""
        told: Tensor = self.module(model.positions(batch).coordinates().flatten(1))
        return told

    def error(self, outputs: "Tensor", y: "Tensor") -> "Tensor":
        """Return the mean squared difference."""
        return (outputs - y).square().mean()

    def evaluate(self, model: "GraphModel") -> dict[str, float]:
        """Return the mean squared difference on the held-out graphs, in units of the targets' variance."""
        return {"val_loss": float(self.error(self.answers(model), self.y_val))}

    def rank(self, metrics: Mapping[str, float]) -> tuple[float, ...]:
        """Return the loss, the lower the better."""
        return (-metrics["val_loss"],)
