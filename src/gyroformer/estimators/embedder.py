"""Graph reconstruction as a transformer of scikit-learn."""

import copy
import dataclasses as dc
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from gyroformer.errors import UsageError
from gyroformer.estimators.base import GraphEstimator, prepared
from gyroformer.estimators.inputs import Ids, graph_of, node_indices
from gyroformer.jobs.flatten import flattened
from gyroformer.jobs.grown import grown
from gyroformer.jobs.new_nodes import check_ranked_by_distance, grown_hierarchy, placed, placed_by
from gyroformer.jobs.plan import Plan
from gyroformer.ops.nearest import nearest_nodes, row_blocks, smallest
from gyroformer.ops.neighbours import Neighbours
from gyroformer.options import Options, option
from gyroformer.options.check import Range, checked
from gyroformer.tasks.average_precision import mean_average_precision
from gyroformer.tasks.embed import Reconstruction
from gyroformer.tasks.hierarchy import Hierarchy


class EmbedderOptions(Options):
    """Parameters of the embedder's own."""

    graph: Any = option(
        "a graph; if given, it is what fit trains on, and X is the indices (n, 1) of the nodes to score, as searches "
        "over parameters need it; none: fit takes the graph",
        default=None,
    )


class GraphEmbedder(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    GraphEstimator,
    task="embed",
    more=EmbedderOptions,
    hidden=("map_nodes",),
):
    """Places a graph's nodes so that neighbours are close and all others far.

    The job of ``gyroformer embed``, with its recipes. None leaves a parameter to the recipe or to the model.

    Example:
        >>> embedder = GraphEmbedder(epochs=200, random_state=0).fit(networkx.karate_club_graph())
        >>> embedder.nearest(33, n=3)

    Attributes:
        embedding_: coordinates ``(N, heads · d)``: tangent vectors at the origin, the heads side by side. Their
            Euclidean distances are not those of the nodes: use ``pairwise_distances``, ``kneighbors`` or ``flatten``.
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
        tags.input_tags.sparse = self.graph is None  # an adjacency matrix
        tags.transformer_tags.preserves_dtype = []  # the parameter dtype decides
        return tags

    def fit(self, graph: object, y: object = None) -> Self:
        """Train on a graph.

        Args:
            graph: a data set's name, a path, a ``torch_geometric`` ``Data``, a NetworkX graph, a square scipy sparse
                matrix, or ``(edge_index, num_nodes)``.
                With the parameter ``graph``: indices of its nodes, which are only checked.
            y: not used.
        """
        if self.graph is None:
            return self._run(*prepared(self, graph))
        data, job = prepared(self, self.graph)
        node_indices(graph, int(data.num_nodes or 0), "X")
        return self._run(data, job)

    def fit_transform(self, graph: object, y: object = None) -> NDArray[Any]:
        """Train on a graph and return ``embedding_``; with the parameter ``graph`` the rows of the given nodes."""
        fitted = self.fit(graph, y)
        return fitted.embedding_ if self.graph is None else fitted.transform(graph)

    def transform(self, graph: object) -> NDArray[Any]:
        """Return the coordinates ``(N, heads · d)`` of a graph's nodes; those of the fitted one are ``embedding_``.

        A model that learned a vector for each node takes a graph with the same ids, whatever its edges. If it has more,
        the new nodes are placed by their edges and the known ones stay where they are, as ``add`` does. A model that
        was fitted with ``use_features=True`` takes any graph with as many feature columns. With the parameter
        ``graph``: indices of nodes. A table of pandas (``set_output(transform="pandas")``) has the ids as its index.
        """
        check_is_fitted(self)
        if self.graph is not None:
            nodes = node_indices(graph, len(self._ids.names), "X")
            return self._framed(self.embedding_[nodes], self.ids_[nodes])
        if graph is not None and self._plan.data.x is None:
            data = graph_of(graph)
            if set(data.ids) > set(self._ids.names):
                more = self.add(data)
                return self._framed(more.embedding_[more._ids.indices(list(data.ids))], data.ids)
        ready = self._ready(graph)
        with torch.no_grad():
            return self._framed(_rows(self.model_.positions(ready).coordinates()), ready.ids)

    def add(self, edges: object, *, adjust: bool = False) -> Self:
        """Return an embedder that knows more nodes, placed by their edges; this one stays as it is.

        The known nodes keep their coordinates, but for those that had no edge. ``ids_``, ``embedding_``, ``distance``,
        ``nearest``, ``kneighbors``, ``pairwise_distances``, ``flatten`` and ``ancestors`` of what comes back know all
        nodes.

        Args:
            edges: the new nodes' edges, to known nodes and to each other: pairs of ids, a file, or any other graph.
                In a hierarchy they lead the way that the fitted ones do.
            adjust: whether known nodes around the new ones may move to make room.
        """
        check_is_fitted(self)
        if self._plan.data.x is not None:
            raise UsageError(
                "this embedder takes node features: give the whole graph with features to transform"
            )
        task, seen = self._plan.task, self._plan.data.edge_index
        directed = isinstance(task, Hierarchy)
        whole = grown(self.graph_, graph_of(edges, directed=directed), directed=directed, adjust=adjust)
        more = copy.copy(self)
        if isinstance(task, Hierarchy):
            grown_task = grown_hierarchy(task, self._plan.job, whole)
            more._plan = dc.replace(self._plan, task=grown_task)
            more._positions = placed_by(grown_task, self._positions, whole, seen, adjust=adjust)
        else:
            check_ranked_by_distance(self._plan.job)
            more._positions = placed(self._positions, whole, seen, adjust=adjust)
        more.graph_, more._ids = whole.graph, Ids(whole.graph.ids)
        more.ids_, more.embedding_ = more._ids.array(), _rows(more._positions.coordinates())
        return more

    def _framed(self, rows: NDArray[Any], ids: Any) -> Any:
        """Return the rows as they are, or with ids as their index where tables of pandas are wanted."""
        if _get_output_config("transform", estimator=self)["dense"] != "pandas":
            return rows
        import pandas

        return pandas.DataFrame(rows, index=pandas.Index(list(ids), name="id"))

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

    def _directed(self) -> bool:
        return bool(self.hierarchy)

    @torch.no_grad()
    def ancestors(self, node: Any, n: int = 10) -> list[tuple[Any, float]]:
        """Return the ``n`` likeliest ancestors of the node with the id ``node``, as ids with scores, likeliest first.

        Only with ``hierarchy=True``.
        """
        check_is_fitted(self)
        task = self._plan.task
        if not isinstance(task, Hierarchy):
            raise UsageError("ancestors() needs hierarchy=True; nearest() gives the nearest nodes")
        n = checked(int, n, "n", Range(at_least=1))
        index = torch.tensor([self._ids.index(node)], device=self._positions.device)
        costs = task.score.costs(self._positions, index)
        costs[0, index] = torch.inf
        values, columns = smallest(costs, min(n, len(self._ids.names) - 1))
        found = zip(columns[0].tolist(), values[0].tolist(), strict=True)
        return [(self._ids.names[other], -cost) for other, cost in found]

    @torch.no_grad()
    def pairwise_distances(self, ids: Any = None) -> NDArray[Any]:
        """Return the distances of all nodes, ``(N, N)``, or among those with the given ids, in their order.

        What scikit-learn takes as ``metric="precomputed"``: symmetric, with zeros on the diagonal.
        """
        check_is_fitted(self)
        count = len(self._ids.names)
        chosen = np.arange(count) if ids is None else self._ids.indices(ids)
        rows = torch.from_numpy(chosen).to(self._positions.device)
        found = np.empty((rows.numel(), rows.numel()), dtype=self.embedding_.dtype)
        start = 0
        for some in row_blocks(rows, count):
            squared = self._positions.squared_dist_rows(some)[:, rows]
            found[start : start + len(squared)] = squared.clamp(min=0).sqrt().cpu().numpy()
            start += len(squared)
        found = np.maximum(found, found.T)  # equal up to rounding
        np.fill_diagonal(found, 0)
        return found

    @torch.no_grad()
    def kneighbors(
        self, ids: Any = None, n_neighbors: int = 5, return_distance: bool = True
    ) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]:
        """Return the nearest nodes of each node in scikit-learn's form: distances and row numbers ``(n, n_neighbors)``.

        Args:
            ids: of the nodes that are asked about; None for all, as the rows of ``embedding_``.
            n_neighbors: how many; a node is not its own neighbour.
            return_distance: False for the row numbers alone. ``ids_[rows]`` are their ids.
        """
        check_is_fitted(self)
        if not 1 <= n_neighbors < len(self._ids.names):
            raise UsageError(f"n_neighbors must be from 1 to {len(self._ids.names) - 1}, got {n_neighbors}")
        chosen = np.arange(len(self._ids.names)) if ids is None else self._ids.indices(ids)
        columns, squared = nearest_nodes(self._positions, torch.from_numpy(chosen), n_neighbors)
        rows = columns.cpu().numpy()
        return (squared.clamp(min=0).sqrt().cpu().numpy(), rows) if return_distance else rows

    def flatten(self, dim: int | None = None) -> NDArray[np.float32]:
        """Return flat vectors ``(N, dim)`` for tools that know Euclidean distances only.

        They are as wide as the model by default. ``flat_map_`` keeps how much of the mAP is left by them, in percent.
        """
        check_is_fitted(self)
        width = self.embedding_.shape[1] if dim is None else dim
        if width < 1:
            raise UsageError(f"dim must be at least 1, got {dim}")
        neighbours = Neighbours.of(self.graph_.edge_index, len(self._ids.names))
        found = flattened(self._positions, neighbours, width)
        self.flat_map_ = found.map
        return found.vectors

    def score(self, graph: object = None, y: object = None) -> float:
        """Return the mean average precision, from 0 to 1, of a graph's edges read from the distances.

        With ``hierarchy=True``: that of the ancestors of the fitted graph's nodes, read from the scores.

        Args:
            graph: a graph with the fitted one's nodes, or with ``use_features=True`` any; None: the fitted one. With
                the parameter ``graph``: indices of the nodes over which the mean is taken.
            y: not used.
        """
        check_is_fitted(self)
        task = self._plan.task
        if isinstance(task, Hierarchy):
            if graph is not None:
                raise UsageError(
                    "the score of a hierarchy is that of the fitted graph: leave the argument out"
                )
            return task.evaluate(self.model_)["hierarchy_map"] / 100
        assert isinstance(task, Reconstruction)
        if self.graph is not None and graph is not None:
            chosen = torch.from_numpy(node_indices(graph, len(self._ids.names), "X")).to(
                self._positions.device
            )
            distances = self._positions.squared_dist_rows
            return float(mean_average_precision(distances, task.neighbours, nodes=chosen))
        ready = self._ready(graph)
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
