"""Node classification as a classifier of scikit-learn."""

import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from gyroformer.data.split import Split
from gyroformer.errors import DataError, UsageError
from gyroformer.estimators.base import GraphEstimator, prepared
from gyroformer.estimators.inputs import Ids, Int, array_of, node_indices
from gyroformer.estimators.labels import encoded, labels_of_nodes, missing, own_labels
from gyroformer.estimators.node_split import chosen_split, given_split
from gyroformer.graphs.check import UNLABELLED
from gyroformer.graphs.reading.convert import to_graph
from gyroformer.jobs.plan import Plan
from gyroformer.options import Options, option
from gyroformer.settings import JobSettings
from gyroformer.tasks.classify import NodeClassification, count_classes

if TYPE_CHECKING:
    from torch_geometric.data import Data


class ClassifierOptions(Options):
    """Parameters of the classifier's own."""

    graph: Any = option(
        "a graph; if given, samples are its nodes and X is their indices (n, 1), as cross-validation and searches over "
        "parameters need it; none: fit takes the graph",
        default=None,
    )
    split: Any = option(
        "which labelled nodes to learn from: the name of a split, a Split, or masks (or indices) (train, val) or "
        "(train, val, test); none for the graph's own split if labels are its own, else all",
        default=None,
    )
    validation_fraction: float = option(
        "fraction of each class held out to choose the best epoch by, where the split names none", default=0.2
    )


class NodeClassifier(
    ClassifierMixin,  # type: ignore[misc]
    GraphEstimator,
    task="classify",
    more=ClassifierOptions,
    hidden=("split_seed", "split_index", "stratified"),
):
    """Labels a graph's nodes, learning from those whose label is known.

    The job of ``gyroformer classify``, with its recipes. None leaves a parameter to the recipe or to the model.

    Example:
        >>> classifier = NodeClassifier(random_state=0).fit("cora")   # its public split
        >>> classifier.score()                                        # on the test nodes
        >>> nodes = numpy.arange(2708).reshape(-1, 1)                 # or over folds of the nodes:
        >>> cross_val_score(NodeClassifier(graph="cora"), nodes, labels)

    Attributes:
        classes_: the labels, sorted.
        split_: the nodes that were learned from, chosen on and tested on.
        curvatures_: ``(layers, heads)``; empty for a model without any.
        ids_: the nodes' ids, in the order of the rows.
        history_: a row for each epoch.
        model_: the trained model.
        graph_: the clean graph; its ``y`` holds indices into ``classes_``, −1 for a node without a label.
        results_: all results of the run.
        seed_: the seed that was used.
        n_features_in_: number of feature columns of the graph, if it has features.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.graph is None  # an adjacency matrix
        tags.target_tags.required = self.graph is not None  # else the graph may bring its labels
        return tags

    def fit(self, X: object, y: object = None, train: object = None, val: object = None) -> Self:
        """Train on a graph, or on nodes of the graph that the constructor was given.

        Args:
            X: the graph: a data set's name, a path, a ``torch_geometric`` ``Data``, a NetworkX graph, a square scipy
                sparse matrix, or ``(edge_index, num_nodes)``. With the parameter ``graph``: indices ``(n, 1)``.
            y: a label for each node (for each row of ``X``), a mapping from ids to labels, a pandas ``Series`` with
                ids as its index, or the name of an attribute of the nodes of a NetworkX or igraph graph; −1 among
                numbers, and None, NaN or empty text among others, mean no label. None: the graph's own labels.
            train: a mask of the nodes to learn from, or their indices; by default as ``split`` says.
            val: likewise the nodes to choose the best epoch by.
        """
        if self.graph is not None:
            if train is not None or val is not None or self.split is not None:
                raise UsageError(
                    "with the parameter 'graph', X says which nodes to learn from: give no split"
                )
            return self._fit_nodes(X, y)
        if isinstance(y, str):
            X, y = to_graph(X, labels=y), None
        data, job = prepared(self, X)
        own = y is None
        y = own_labels(data) if own else y
        if y is None:
            raise DataError(
                "the graph has no labels: give them as y (requires y to be passed, but it is None)"
            )
        classes, codes = encoded(labels_of_nodes(y, Ids(data.ids)))
        if self.split is not None and (train is not None or val is not None):
            raise UsageError("nodes to learn from are given twice, to fit and as the parameter 'split'")
        named = self.split if val is None and train is None else (train, val)
        split = chosen_split(named, data, job, codes, own=own, fraction=self.validation_fraction)
        return self._fit(data, job, classes, codes, split)

    def _fit_nodes(self, X: object, y: object) -> Self:
        """Learn from some nodes of the parameter ``graph``; no other label is seen."""
        if y is None:
            raise UsageError(
                "fit requires y to be passed, but the target y is None: give a label for each row"
            )
        data, job = prepared(self, self.graph)
        nodes = node_indices(X, int(data.num_nodes or 0), "X")
        labels = array_of(y)
        if labels.shape != nodes.shape:
            raise UsageError(
                f"y must hold a label for each of the {len(nodes)} nodes, got shape {labels.shape}"
            )
        if len(np.unique(nodes)) < len(nodes):
            raise UsageError("X names a node twice: a node has one label")
        classes, of_rows = encoded(labels)
        codes = np.full(int(data.num_nodes or 0), UNLABELLED, dtype=np.int64)
        codes[nodes] = of_rows
        split = given_split((nodes,), codes, self.validation_fraction, job.seed)
        return self._fit(data, job, classes, codes, split)

    def _fit(self, data: "Data", job: JobSettings, classes: NDArray[Any], codes: Int, split: Split) -> Self:
        data = copy.copy(data)
        data.y = torch.from_numpy(codes)
        # class numbers that are not the labels themselves have names, so that a run folder can tell what they mean
        if "label_names" in data:
            del data.label_names
        if classes.dtype.kind not in "iu" or not np.array_equal(classes, np.arange(len(classes))):
            data.label_names = [str(label) for label in classes]
        self.classes_ = classes
        return self._run(data, job, split=split)

    def predict(self, X: object = None) -> NDArray[Any]:
        """Return the likeliest label of each node.

        Args:
            X: a graph with as many feature columns as the fitted one (without features: with the same nodes); None:
                the fitted one. A list of ids: these nodes of the fitted one. With the parameter ``graph``: indices of
                nodes; None: all.
        """
        chances = self.predict_proba(X)
        return self.classes_[chances.argmax(1)]

    def predict_proba(self, X: object = None) -> NDArray[np.float64]:
        """Return the probabilities ``(n, classes)``; ``X`` as in ``predict``."""
        check_is_fitted(self)
        nodes: Any = slice(None)
        if self.graph is not None and X is not None:
            nodes, X = node_indices(X, len(self._ids.names), "X"), None
        elif _is_list_of_ids(X):
            nodes, X = self._ids.indices(X), None
        ready = self._ready(X)
        with torch.no_grad():
            # in float64, so that rows sum to 1 as closely as scikit-learn's metrics expect
            chances: NDArray[np.float64] = self.model_.scores(ready).double().softmax(-1).cpu().numpy()
        return chances[nodes]

    def score(self, X: object = None, y: object = None, nodes: object = None) -> float:
        """Return the fraction of nodes whose label is found.

        Args:
            X: as in ``predict``.
            y: labels, as in ``fit``; None: those of the fitted graph.
            nodes: a mask of the nodes that count, or their indices; None: the labelled ones of ``y``, or of the
                fitted graph its test nodes.
        """
        check_is_fitted(self)
        found = self.predict(X)
        if self.graph is not None and X is not None:
            truth = array_of(y)
            if truth.shape != found.shape:
                raise UsageError(f"y must hold a label for each of the {len(found)} nodes, got {truth.shape}")
        elif y is not None:
            truth = labels_of_nodes(y, Ids(self._ready(X).ids))
        elif X is None:
            codes = self.graph_.y.numpy()
            truth = self.classes_[codes].astype(object)
            truth[codes == UNLABELLED] = None
            nodes = self.split_.test.numpy() if nodes is None else nodes
        else:
            raise UsageError("score needs y, the labels of the graph")
        return _accuracy(found, truth, nodes)

    def _objective(self) -> dict[str, Any]:
        name = {"split": self.split} if isinstance(self.split, str) else {}
        return {**super()._objective(), **name}

    def _kept(self) -> dict[str, Any]:
        return {"classes_": self.classes_, "by_nodes": np.array(self.graph is not None)}

    def _restore(self, arrays: dict[str, Any], data: "Data") -> None:
        if arrays:
            self.classes_ = arrays["classes_"]
            self.graph = data if arrays["by_nodes"] else None
        else:  # the command line numbers classes as the graph does
            names = getattr(data, "label_names", None)
            self.classes_ = np.arange(count_classes(data.y)) if names is None else np.asarray(names)

    def _take_plan(self, plan: Plan) -> None:
        assert isinstance(plan.task, NodeClassification)
        self.split_ = plan.task.split


def _accuracy(found: NDArray[Any], truth: NDArray[Any], nodes: object) -> float:
    chosen = np.flatnonzero(~missing(truth))
    if nodes is not None:
        chosen = np.intersect1d(chosen, node_indices(nodes, len(found), "nodes"))
    if not len(chosen):
        raise UsageError("there is no labelled node to score: give y and the nodes that count")
    return float(np.mean(found[chosen] == truth[chosen]))


def _is_list_of_ids(X: object) -> bool:
    """Return whether ``X`` lists nodes: integers or text, one after the other."""
    if isinstance(X, np.ndarray):
        return X.ndim == 1
    return isinstance(X, list) and bool(X) and all(isinstance(one, (int, str, np.generic)) for one in X)
