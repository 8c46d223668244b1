"""Graph reconstruction as a transformer of scikit-learn."""

from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gyroformer.errors import UsageError
from gyroformer.estimators.base import GraphEstimator, prepared
from gyroformer.jobs.plan import Plan
from gyroformer.ops.neighbours import Neighbours
from gyroformer.tasks.average_precision import mean_average_precision
from gyroformer.tasks.reconstruction import Reconstruction


class GraphEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GraphEstimator):  # type: ignore[misc]
    """Places a graph's nodes so that neighbours are close and all others far.

    The job of ``gyroformer embed``, with its recipes. None leaves a parameter to the recipe or to the model.

    Example:
        >>> embedder = GraphEmbedder(epochs=200, random_state=0).fit(networkx.karate_club_graph())
        >>> embedder.nearest(33, n=3)

    Args:
        model: a name that ``gyroformer.MODELS`` lists.
        dim: width, all heads together.
        heads: number of heads.
        layers: number of layers.
        epochs: number of steps, each on the whole graph.
        lr: rate of Adam.
        curvature_lr: its rate for curvatures.
        weight_decay: the L2 term, not on curvatures.
        recipe: named settings to start from: ``"default"``, ``"paper"``, …; None: the usual ones.
        model_options: further arguments of the model.
        feature_settings: fields of ``gyroformer.graphs.features.FeatureSettings``.
        training: further fields of ``gyroformer.train.settings.TrainSettings``.
        negatives: ``"all"`` non-neighbours, a number of sampled ones, or ``"auto"``: all up to a size.
        squared: whether the loss holds squared distances.
        use_features: whether the graph's features are used; by default each node has a vector of its own.
        random_state: an integer, a ``RandomState``, or None for a seed that is drawn and kept as ``seed_``.
        device: where to compute; ``"auto"`` takes the fastest.
        dtype: ``"float32"`` or ``"float64"``.
        ignore_memory: whether to start even if the memory is estimated not to suffice.
        verbose: whether to print some lines over the run.
        out: a folder for the run; nothing is kept without one.

    Attributes:
        embedding_: coordinates ``(N, heads · d)``: tangent vectors at the origin, the heads side by side.
        curvatures_: ``(layers, heads)``; empty for a model without any.
        ids_: the nodes' ids, in the order of the rows.
        map_: mean average precision on the graph, in percent.
        history_: a row for each epoch.
        model_: the trained model.
        graph_: the clean graph.
        results_: all figures of the run.
        seed_: the seed that was used.
        n_features_in_: number of feature columns, if features were used.
    """

    _task = "embed"

    def __init__(
        self,
        *,
        model: str = "fpst",
        dim: int | None = None,
        heads: int | None = None,
        layers: int | None = None,
        epochs: int | None = None,
        lr: float | None = None,
        curvature_lr: float | None = None,
        weight_decay: float | None = None,
        recipe: str | None = None,
        model_options: dict[str, Any] | None = None,
        feature_settings: dict[str, Any] | None = None,
        training: dict[str, Any] | None = None,
        negatives: str | int = "auto",
        squared: bool = True,
        use_features: bool = False,
        random_state: Any = None,
        device: str = "cpu",
        dtype: str = "float32",
        ignore_memory: bool = False,
        verbose: bool = False,
        out: str | Path | None = None,
    ) -> None:
        self.model = model
        self.dim = dim
        self.heads = heads
        self.layers = layers
        self.epochs = epochs
        self.lr = lr
        self.curvature_lr = curvature_lr
        self.weight_decay = weight_decay
        self.recipe = recipe
        self.model_options = model_options
        self.feature_settings = feature_settings
        self.training = training
        self.negatives = negatives
        self.squared = squared
        self.use_features = use_features
        self.random_state = random_state
        self.device = device
        self.dtype = dtype
        self.ignore_memory = ignore_memory
        self.verbose = verbose
        self.out = out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # an adjacency matrix
        tags.transformer_tags.preserves_dtype = []  # the parameter dtype decides
        return tags

    def fit(self, graph: object, y: object = None) -> Self:
        """Train on a graph.

        Args:
            graph: a data set's name, a path, a ``torch_geometric`` ``Data``, a NetworkX graph, a square scipy sparse
                matrix, or ``(edge_index, num_nodes)``.
            y: not used.
        """
        return self._run(*prepared(self, graph))

    def fit_transform(self, graph: object, y: object = None) -> NDArray[Any]:
        """Train on a graph and return ``embedding_``."""
        return self.fit(graph, y).embedding_

    def transform(self, graph: object) -> NDArray[Any]:
        """Return the coordinates ``(N, heads · d)`` of a graph's nodes; those of the fitted one are ``embedding_``.

        A model that learned a vector for each node takes a graph with the same ids only, whatever its edges; one that
        was fitted with ``use_features=True`` takes any graph with as many feature columns.
        """
        ready = self._ready(graph)
        with torch.no_grad():
            return _rows(self.model_.positions(ready).coordinates())

    @torch.no_grad()
    def distance(self, a: Any, b: Any) -> Any:
        """Return the distance of two nodes given by their ids; with lists of ids, of each pair ``a[i], b[i]``."""
        check_is_fitted(self)
        source, target = (torch.from_numpy(self._ids.places(ids)) for ids in (a, b))
        if len(source) != len(target) and 1 not in (len(source), len(target)):
            raise UsageError(f"{len(source)} nodes and {len(target)} nodes make no pairs: give equally many")
        source, target = torch.broadcast_tensors(source, target)
        found = self._positions.pair_squared_dist(source, target).clamp(min=0).sqrt().cpu().numpy()
        single = not any(isinstance(ids, (list, tuple, np.ndarray, torch.Tensor)) for ids in (a, b))
        return float(found[0]) if single else found

    @torch.no_grad()
    def nearest(self, node: Any, n: int = 10) -> list[tuple[Any, float]]:
        """Return the ``n`` nodes nearest to the node with the id ``node``, as ids with distances, nearest first."""
        check_is_fitted(self)
        if n < 1:
            raise UsageError(f"n must be at least 1, got {n}")
        place = self._ids.place(node)
        row = self._positions.squared_dist_rows(torch.tensor([place]))[0].cpu().numpy()
        row[place] = np.inf  # a node is not its own neighbour
        order = np.argsort(row, kind="stable")[: min(n, len(row) - 1)]
        return [(self._ids.names[other], float(np.sqrt(max(row[other], 0)))) for other in order]

    def score(self, graph: object = None, y: object = None) -> float:
        """Return the mean average precision, from 0 to 1, of a graph's edges read from the distances.

        Args:
            graph: a graph with the fitted one's nodes, or with ``use_features=True`` any; None: the fitted one.
            y: not used.
        """
        ready = self._ready(graph)
        task = self._plan.task
        assert isinstance(task, Reconstruction)
        with torch.no_grad():
            if graph is None:
                return task.evaluate(self.model_)["map"] / 100
            positions = self.model_.positions(ready)
            nodes = task.map_nodes if len(positions) == len(self._ids.names) else None
            neighbours = Neighbours.of(ready.edge_index, len(positions))
            return float(mean_average_precision(positions.squared_dist_rows, neighbours, nodes=nodes))

    def _objective(self) -> dict[str, Any]:
        return {"negatives": self.negatives, "squared": self.squared, "use_features": self.use_features}

    @classmethod
    def _from_objective(cls, objective: dict[str, Any]) -> dict[str, Any]:
        return {key: objective[key] for key in ("negatives", "squared", "use_features")}

    def _take_plan(self, plan: Plan) -> None:
        self._positions = plan.model.positions(plan.data)
        self.embedding_ = _rows(self._positions.coordinates())
        self.map_ = float(self.results_["map"])
        self._n_features_out = self.embedding_.shape[1]


def _rows(coordinates: torch.Tensor) -> NDArray[Any]:
    """Return the coordinates ``(N, heads, d)`` as a table with the heads side by side."""
    return coordinates.flatten(1).cpu().numpy()
