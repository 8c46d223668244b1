"""Graph reconstruction as a transformer of scikit-learn."""

from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gyroformer.errors import UsageError
from gyroformer.estimators.base import GraphEstimator, prepared
from gyroformer.jobs.plan import Plan
from gyroformer.ops.nearest import nearest_nodes
from gyroformer.ops.neighbours import Neighbours
from gyroformer.options.check import Range, checked
from gyroformer.tasks.average_precision import mean_average_precision
from gyroformer.tasks.embed import Reconstruction


class GraphEmbedder(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    GraphEstimator,
    task="embed",
    hidden=("map_nodes",),
):
    """Places a graph's nodes so that neighbours are close and all others far.

    The job of ``gyroformer embed``, with its recipes. None leaves a parameter to the recipe or to the model.

    Example:
        >>> embedder = GraphEmbedder(epochs=200, random_state=0).fit(networkx.karate_club_graph())
        >>> embedder.nearest(33, n=3)

    Attributes:
        embedding_: coordinates ``(N, heads · d)``: tangent vectors at the origin, the heads side by side.
        curvatures_: ``(layers, heads)``; empty for a model without any.
        ids_: the nodes' ids, in the order of the rows.
        map_: mean average precision on the graph, in percent.
        history_: a row for each epoch.
        model_: the trained model.
        graph_: the clean graph.
        results_: all results of the run.
        seed_: the seed that was used.
        n_features_in_: number of feature columns, if features were used.
    """

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
        source, target = (torch.from_numpy(self._ids.indices(ids)) for ids in (a, b))
        if len(source) != len(target) and 1 not in (len(source), len(target)):
            raise UsageError(f"{len(source)} nodes and {len(target)} nodes make no pairs: give equally many")
        ends = torch.stack(torch.broadcast_tensors(source, target)).to(self._positions.device)
        found = self._positions.pair_squared_dist(*ends).clamp(min=0).sqrt().cpu().numpy()
        single = not any(isinstance(ids, (list, tuple, np.ndarray, torch.Tensor)) for ids in (a, b))
        return float(found[0]) if single else found

    @torch.no_grad()
    def nearest(self, node: Any, n: int = 10) -> list[tuple[Any, float]]:
        """Return the ``n`` nodes nearest to the node with the id ``node``, as ids with distances, nearest first."""
        check_is_fitted(self)
        n = checked(int, n, "n", Range(at_least=1))
        index = torch.tensor([self._ids.index(node)])
        others, squared = nearest_nodes(self._positions, index, min(n, len(self._ids.names) - 1))
        found = zip(others[0].tolist(), squared[0].clamp(min=0).sqrt().tolist(), strict=True)
        return [(self._ids.names[other], distance) for other, distance in found]

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

    def _take_plan(self, plan: Plan) -> None:
        self._positions = plan.model.positions(plan.data)
        self.embedding_ = _rows(self._positions.coordinates())
        self.map_ = float(self.results_["map"])
        self._n_features_out = self.embedding_.shape[1]


def _rows(coordinates: torch.Tensor) -> NDArray[Any]:
    """Return the coordinates ``(N, heads, d)`` as a table with the heads side by side."""
    return coordinates.flatten(1).cpu().numpy()
