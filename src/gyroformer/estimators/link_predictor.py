"""Link prediction as an estimator of scikit-learn."""

from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gyroformer.errors import UsageError
from gyroformer.estimators.base import GraphEstimator, prepared
from gyroformer.estimators.inputs import array_of
from gyroformer.jobs.plan import Plan
from gyroformer.tasks.link_prediction import LinkPrediction

#: parameters of the task, by the names that a job's objective gives them
OBJECTIVE = ("decoder", "radius", "temperature", "learn_decoder", "val_share", "test_share")


class LinkPredictor(GraphEstimator):
    """Says how likely an edge joins two nodes, learning from most of a graph's edges and tested on the others.

    The job of ``gyroformer link``, with its recipes. None leaves a parameter to the recipe or to the model.

    Example:
        >>> predictor = LinkPredictor(random_state=0).fit(networkx.karate_club_graph())
        >>> predictor.score()                                # AUC of the edges that were held out
        >>> predictor.predict_proba([(0, 33), (4, 10)])[:, 1]

    Args:
        model: a name that ``gyroformer.MODELS`` lists.
        dim: width, all heads together.
        heads: number of heads.
        layers: number of layers.
        epochs: number of steps, each on the whole graph.
        lr: rate of Adam.
        curvature_lr: its rate for curvatures.
        weight_decay: the L2 term, not on curvatures.
        recipe: named settings to start from; None: the usual ones.
        model_options: further arguments of the model.
        feature_settings: fields of ``gyroformer.graphs.features.FeatureSettings``.
        training: further fields of ``gyroformer.train.settings.TrainSettings``.
        decoder: probabilities from squared distances, ``"fermi-dirac"``, or plain ones, ``"distance"``.
        radius: the decoder's radius.
        temperature: its temperature.
        learn_decoder: whether training changes the two.
        val_share: share of the edges held out to choose the best epoch by.
        test_share: share of the edges held out to test on.
        random_state: an integer, a ``RandomState``, or None for a seed that is drawn and kept as ``seed_``; it decides
            which edges are held out too.
        device: where to compute; ``"auto"`` takes the fastest.
        dtype: ``"float32"`` or ``"float64"``.
        ignore_memory: whether to start even if the memory is estimated not to suffice.
        verbose: whether to print some lines over the run.
        out: a folder for the run; nothing is kept without one.

    Attributes:
        classes_: ``[0, 1]``: no edge, an edge.
        split_: the edges and non-edges that were learned from, chosen on and tested on.
        curvatures_: ``(layers, heads)``; empty for a model without any.
        ids_: the nodes' ids.
        history_: a row for each epoch.
        model_: the trained model.
        graph_: the clean graph, with all its edges.
        results_: all figures of the run: AUC, average precision and hits of the test edges.
        seed_: the seed that was used.
        n_features_in_: number of feature columns of the graph, if it has features.
    """

    _task = "link"

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
        decoder: str | None = None,
        radius: float | None = None,
        temperature: float | None = None,
        learn_decoder: bool | None = None,
        val_share: float | None = None,
        test_share: float | None = None,
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
        self.decoder = decoder
        self.radius = radius
        self.temperature = temperature
        self.learn_decoder = learn_decoder
        self.val_share = val_share
        self.test_share = test_share
        self.random_state = random_state
        self.device = device
        self.dtype = dtype
        self.ignore_memory = ignore_memory
        self.verbose = verbose
        self.out = out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # an adjacency matrix
        return tags

    def fit(self, graph: object, y: object = None) -> Self:
        """Hold edges out, train on the others and test.

        Args:
            graph: a data set's name, a path, a ``torch_geometric`` ``Data``, a NetworkX graph, a square scipy sparse
                matrix, or ``(edge_index, num_nodes)``.
            y: not used.
        """
        return self._run(*prepared(self, graph))

    @torch.no_grad()
    def decision_function(self, pairs: object) -> NDArray[np.float64]:
        """Return the log odds ``(n,)`` of an edge for pairs ``(n, 2)`` of ids."""
        check_is_fitted(self)
        squared = self._positions.pair_squared_dist(*self._places(pairs)).double()
        found: NDArray[np.float64] = self._decoder(squared).cpu().numpy()
        return found

    def predict_proba(self, pairs: object) -> NDArray[np.float64]:
        """Return the probabilities ``(n, 2)`` of no edge and of an edge for pairs ``(n, 2)`` of ids."""
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

    def _places(self, pairs: Any) -> torch.Tensor:
        rows = pairs.tolist() if isinstance(pairs, (np.ndarray, torch.Tensor)) else list(pairs)
        if any(not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2 for pair in rows):
            raise UsageError("pairs must be (n, 2): two ids for each pair")
        places = [self._ids.places([pair[side] for pair in rows]) for side in (0, 1)]
        return torch.from_numpy(np.stack(places)).to(self._plan.job.device)

    def _objective(self) -> dict[str, Any]:
        return {key: getattr(self, key) for key in OBJECTIVE if getattr(self, key) is not None}

    @classmethod
    def _from_objective(cls, objective: dict[str, Any]) -> dict[str, Any]:
        return {key: objective[key] for key in OBJECTIVE}

    def _take_plan(self, plan: Plan) -> None:
        assert isinstance(plan.task, LinkPrediction)
        self.classes_ = np.array([0, 1])
        self.split_ = plan.task.split
        self._decoder = plan.task.decoder
        self._positions = plan.model.positions(plan.data)
