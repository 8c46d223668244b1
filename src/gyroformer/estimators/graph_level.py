"""Classification and regression of whole graphs as estimators of scikit-learn."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from gyroformer.errors import DataError, UsageError
from gyroformer.estimators.graph_level_base import GraphLevelEstimator, GraphLevelOptions
from gyroformer.tasks.whole_graphs import GraphClassification, GraphRegression, WholeGraphs

if TYPE_CHECKING:
    from torch_geometric.data import Data


class GraphClassifier(ClassifierMixin, GraphLevelEstimator):  # type: ignore[misc]
    """Labels whole graphs, learning from graphs whose label is known.

    Example:
        >>> classifier = GraphClassifier(features=["kind"], random_state=0).fit(graphs, labels)
        >>> classifier.predict(others), classifier.predict_proba(others)

    Attributes:
        classes_: the labels, sorted.
        validation_: indices of the graphs that the best pass was chosen on.
        curvatures_: ``(layers, heads)``.
        history_: a row for each pass, with its metrics.
        results_: metrics of the best pass, number of parameters, passes, seconds.
        model_: the trained model.
        seed_: the seed that was used.
    """

    _kind = "graph classifier"

    def predict(self, graphs: Sequence[object]) -> NDArray[Any]:
        """Return the likeliest label of each graph."""
        chances = self.predict_proba(graphs)
        return self.classes_[chances.argmax(1)]

    def predict_proba(self, graphs: Sequence[object]) -> NDArray[np.float64]:
        """Return the probabilities ``(n, classes)``."""
        return self._asked(graphs, lambda model, batch: model.scores(batch).double().softmax(-1))

    def _classes(self) -> int | None:
        return len(self.classes_)

    def _strata(self, targets: NDArray[Any]) -> NDArray[Any] | None:
        return targets

    def _targets(self, y: NDArray[Any], count: int) -> NDArray[Any]:
        _check_count(y, count)
        y = y.reshape(-1) if y.shape == (count, 1) else y
        if y.ndim != 1:
            raise UsageError(f"y must hold one label for each graph, got the shape {y.shape}")
        gaps = [i for i, one in enumerate(y) if one is None or one != one]
        if gaps:
            raise DataError(f"graph {gaps[0]} has no label: leave it out")
        if y.dtype.kind == "f" and not (y == np.floor(y)).all():
            raise UsageError("Unknown label type: continuous numbers are no classes; see GraphRegressor")
        try:
            self.classes_, codes = np.unique(y, return_inverse=True)
        except TypeError:
            raise UsageError("labels are numbers and text at once: make them one kind") from None
        if len(self.classes_) < 2:
            raise DataError(f"all labels are {self.classes_[0]}: nothing can be learned with 1 class")
        return codes

    def _target_tensor(self, targets: NDArray[Any], train: int, dtype: torch.dtype) -> Tensor:
        return torch.from_numpy(targets.astype(np.int64))

    def _task(
        self, train: "list[Data]", val: "list[Data]", y: Tensor, options: GraphLevelOptions
    ) -> WholeGraphs:
        return GraphClassification(train, val, y, options.batch_size)

    def _saved(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist()}

    def _restore(self, about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        self.classes_, self._module = np.array(about["classes"]), None


class GraphRegressor(RegressorMixin, GraphLevelEstimator):  # type: ignore[misc]
    """Tells a number of whole graphs, or several, learning from graphs where it is known.

    ``score`` is scikit-learn's coefficient of determination, R². Attributes as those of :class:`GraphClassifier`.

    Example:
        >>> regressor = GraphRegressor(random_state=0).fit(graphs, numbers)
        >>> regressor.predict(others)
    """

    _kind = "graph regressor"

    def predict(self, graphs: Sequence[object]) -> NDArray[np.float64]:
        """Return the number of each graph, ``(n,)``, or as many columns as were fitted."""
        check_is_fitted(self, "model_")
        module = self._module
        assert module is not None
        told = self._asked(
            graphs, lambda model, b: module(model.positions(b).coordinates().flatten(1)).double()
        )
        told = told * self._scale + self._offset
        return told[:, 0] if self._single else told

    def _targets(self, y: NDArray[Any], count: int) -> NDArray[Any]:
        _check_count(y, count)
        if y.dtype.kind not in "iufb" or not np.isfinite(y.astype(np.float64)).all():
            raise DataError("y must hold a finite number for each graph")
        self._single = y.ndim == 1
        return y.astype(np.float64).reshape(count, -1)

    def _target_tensor(self, targets: NDArray[Any], train: int, dtype: torch.dtype) -> Tensor:
        self._offset, self._scale = targets[:train].mean(0), targets[:train].std(0)
        self._scale = np.where(self._scale > 0, self._scale, 1.0)
        return torch.from_numpy((targets - self._offset) / self._scale).to(dtype)

    def _task(
        self, train: "list[Data]", val: "list[Data]", y: Tensor, options: GraphLevelOptions
    ) -> WholeGraphs:
        return GraphRegression(train, val, y, options.batch_size, nn.Linear(options.dim, y.size(1)))

    def _saved(self) -> dict[str, Any]:
        return {
            "offset": self._offset.tolist(),
            "scale": self._scale.tolist(),
            "single": self._single,
        }

    def _restore(self, about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        self._offset, self._scale = np.array(about["offset"]), np.array(about["scale"])
        self._single = bool(about["single"])
        module = nn.Linear(tensors["weight"].size(1), tensors["weight"].size(0))
        module.to(tensors["weight"].dtype).load_state_dict(tensors)
        self._module = module


def _check_count(y: NDArray[Any], count: int) -> None:
    if y.ndim == 0 or len(y) != count:
        raise UsageError(f"y must hold a target for each of the {count} graphs, got the shape {y.shape}")
