"""Link prediction as an estimator of scikit-learn."""

from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gyroformer.errors import UsageError
from gyroformer.estimators.base import GraphEstimator, prepared
from gyroformer.estimators.inputs import Ids, array_of, graph_of
from gyroformer.graphs.build import graph_from_edges
from gyroformer.graphs.non_edges import NonEdges, directed_edges, undirected_edges
from gyroformer.jobs.plan import Plan
from gyroformer.jobs.restore import joined_by
from gyroformer.ops.nearest import nearest_pairs
from gyroformer.options import Options, option
from gyroformer.settings import JobSettings
from gyroformer.tasks.link import LinkPrediction


class PredictorOptions(Options):
    """Parameters of the predictor's own."""

    graph: Any = option(
        "a graph; if given, it says which nodes there are, with their features, and fit takes pairs of ids (n, 2) as X "
        "and 1 or 0 as y: it learns from the pairs that are edges and sees no other, as cross-validation needs it; "
        "none: fit takes the graph",
        default=None,
    )
    directed: bool = option("whether an edge leads from its first node to its second", default=False)


class LinkPredictor(GraphEstimator, task="link", more=PredictorOptions, hidden=("split_seed",)):
    """Says how likely an edge joins two nodes, learning from most of a graph's edges and tested on the others.

    The job of ``gyroformer link``, with its recipes. None leaves a parameter to the recipe or to the model.

    Example:
        >>> predictor = LinkPredictor(random_state=0).fit(networkx.karate_club_graph())
        >>> predictor.score()                                # AUC of the edges that were held out
        >>> predictor.predict_proba([(0, 33), (4, 10)])[:, 1]
        >>> predictor.new_edges(3, node=33)

    Attributes:
        classes_: ``[0, 1]``: no edge, an edge.
        split_: the edges and non-edges that were learned from, chosen on and tested on.
        curvatures_: ``(layers, heads)``; empty for a model without any.
        ids_: the nodes' ids.
        history_: a row for each epoch.
        model_: the trained model.
        graph_: the clean graph, with all its edges.
        results_: all results of the run: AUC, average precision and hits of the test edges.
        seed_: the seed that was used.
        n_features_in_: number of feature columns of the graph, if it has features.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.graph is None  # an adjacency matrix
        tags.target_tags.required = self.graph is not None
        return tags

    def _directed(self) -> bool:
        return bool(self.directed)

    @classmethod
    def _parameters(cls, job: JobSettings) -> dict[str, Any]:
        return {**super()._parameters(job), "directed": job.graph.directed}

    @staticmethod
    def samples(
        graph: object, random_state: int = 0, *, directed: bool = False
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return all edges of a graph and as many pairs that are none, as ids ``(n, 2)``, with 1 and 0 for each.

        They come in a drawn order, so that every fold of a cross-validation has both.
        What cross-validation takes: ``cross_val_score(LinkPredictor(graph=graph), *LinkPredictor.samples(graph))``.
        """
        data = graph_of(graph, directed=directed)
        nodes = int(data.num_nodes or 0)
        edges = (directed_edges if directed else undirected_edges)(data.edge_index, nodes)
        others = NonEdges(edges, nodes, directed=directed)
        count = min(edges.size(1), others.count)
        stream = np.random.default_rng(random_state)
        chosen = stream.choice(others.count, count, replace=False)
        pairs = torch.cat((edges, others.at(torch.from_numpy(chosen))), 1)
        names, order = Ids(data.ids).array(), stream.permutation(pairs.size(1))
        truth = np.repeat([1, 0], [edges.size(1), count])
        return names[pairs.mT.numpy()[order]], truth[order].astype(np.int64)

    def fit(self, graph: object, y: object = None) -> Self:
        """Hold edges out, train on the others and test.

        Args:
            graph: a data set's name, a path, a ``torch_geometric`` ``Data``, a NetworkX graph, a square scipy sparse
                matrix, or ``(edge_index, num_nodes)``.
                With the parameter ``graph``: pairs ``(n, 2)`` of ids.
            y: with the parameter ``graph``: 1 for each pair that is an edge, else 0.
        """
        if self.graph is None:
            return self._run(*prepared(self, graph))
        return self._fit_pairs(graph, y)

    def _fit_pairs(self, pairs: object, y: object) -> Self:
        """Learn from the pairs that are edges; no other edge of the parameter ``graph`` is seen."""
        data, job = prepared(self, self.graph)
        if y is None:
            raise UsageError("fit requires y to be passed, but the target y is None: 1 for an edge, else 0")
        ends = _pair_indices(pairs, Ids(data.ids)).numpy()
        truth = array_of(y)
        if truth.shape != (ends.shape[1],) or not set(np.unique(truth).tolist()) <= {0, 1}:
            raise UsageError(f"y must hold 1 or 0 for each of the {ends.shape[1]} pairs")
        known = ends[:, truth == 1]
        nodes = {"num_nodes": int(data.num_nodes or 0), "ids": data.ids, "x": data.x}
        return self._run(graph_from_edges(*known, **nodes, directed=self._directed()), job)

    @torch.no_grad()
    def decision_function(self, pairs: object) -> NDArray[np.float64]:
        """Return the log odds ``(n,)`` of an edge for pairs ``(n, 2)`` of ids."""
        check_is_fitted(self)
        indices = self._indices(pairs)
        odds = self._decoder.calibrated(self._decoder.pairs(self._positions, indices).double())
        found: NDArray[np.float64] = odds.cpu().numpy()
        return found

    @torch.no_grad()
    def new_edges(self, n: int = 10, node: Any = None) -> list[tuple[Any, Any, float]]:
        """Return the ``n`` pairs of nodes without an edge that are likeliest to have one, likeliest first.

        Args:
            n: how many; fewer come back if there are no more.
            node: the id of a node that is to be the first of each pair; None for all nodes.

        Returns:
            Two ids and the probability for each pair, as ``predict_proba`` has it.
        """
        check_is_fitted(self)
        if n < 1:
            raise UsageError(f"n must be at least 1, got {n}")
        joined = joined_by(self._plan.job, self.graph_.edge_index, len(self._ids.names))
        pairs, cost = nearest_pairs(
            self._positions,
            joined,
            n,
            cost=lambda rows: -self._decoder.rows(self._positions, rows),
            node=None if node is None else self._ids.index(node),
            directed=self._decoder.directed,
        )
        chances = self._decoder.calibrated(-cost.double()).sigmoid().tolist()
        names = self._ids.names
        return [(names[u], names[v], p) for (u, v), p in zip(pairs.mT.tolist(), chances, strict=True)]

    def predict_proba(self, pairs: object) -> NDArray[np.float64]:
        """Return the probabilities ``(n, 2)`` of no edge and of an edge for pairs ``(n, 2)`` of ids.

        They are calibrated for pairs of which half are edges, as those that the model is tested on.
        """
        odds = torch.from_numpy(self.decision_function(pairs))
        return torch.stack((torch.sigmoid(-odds), torch.sigmoid(odds)), 1).numpy()

    def predict(self, pairs: object) -> NDArray[np.int64]:
        """Return 1 for the pairs of ids that an edge joins rather than not, else 0."""
        return (self.decision_function(pairs) > 0).astype(np.int64)

    def score(self, pairs: object = None, y: object = None) -> float:
        """Return the area under the ROC curve, from 0 to 1.

        Args:
            pairs: pairs ``(n, 2)`` of ids; None: the edges that were held out to test on, and as many non-edges.
            y: 1 for each pair that is an edge, else 0.
        """
        from sklearn.metrics import roc_auc_score

        check_is_fitted(self)
        if pairs is None:
            return float(self.results_["test_auc"]) / 100
        if y is None:
            raise UsageError("score needs y: 1 for each pair that is an edge, else 0")
        truth = array_of(y)
        if not set(np.unique(truth).tolist()) == {0, 1}:
            raise UsageError(
                "y must hold ones for edges and zeros for pairs that are none, both at least once"
            )
        return float(roc_auc_score(truth, self.decision_function(pairs)))

    def _indices(self, pairs: Any) -> torch.Tensor:
        return _pair_indices(pairs, self._ids).to(self._positions.device)

    def _take_plan(self, plan: Plan) -> None:
        assert isinstance(plan.task, LinkPrediction)
        self.classes_ = np.array([0, 1])
        self.split_ = plan.task.split
        self._decoder = plan.task.decoder
        self._positions = plan.model.positions(plan.data)


def _pair_indices(pairs: Any, ids: Ids) -> torch.Tensor:
    """Return the indices ``(2, n)`` of pairs of ids ``(n, 2)``."""
    rows = pairs.tolist() if isinstance(pairs, (np.ndarray, torch.Tensor)) else list(pairs)
    if any(not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2 for pair in rows):
        raise UsageError("pairs must be (n, 2): two ids for each pair")
    return torch.from_numpy(np.stack([ids.indices([pair[side] for pair in rows]) for side in (0, 1)]))
