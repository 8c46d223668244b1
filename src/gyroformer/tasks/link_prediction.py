r"""Link prediction: edges that were held out are to be told from pairs that are no edge.

.. math:: L = \frac1{|E|} \sum_{(u,v) \in E} -\log p_{uv} + \frac1{|E|} \sum_{(u,v) \in S} -\log(1 - p_{uv})

over the training edges E and as many non-edges S, drawn anew in each step.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from gyroformer.data.link_split import LinkSplit
from gyroformer.errors import DataError, DivergedError
from gyroformer.graphs.non_edges import NonEdges
from gyroformer.models.base import GraphModel
from gyroformer.ops.positions import Positions
from gyroformer.tasks.decoders import LinkDecoder

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: the numbers of best non-edges of which a found edge must beat the last
HITS = (10, 50, 100)


class LinkPrediction(nn.Module):
    """The task of finding edges that were held out.

    The model sees ``data``, which must be the training graph: everything that it knows of edges comes from there.

    The pairs drawn as negatives in training are non-edges of the training graph. Among them are, rarely, held-out
    edges. To spare these would be to use them: the model could learn where they are from never being pushed there.

    Args:
        data: the training graph (``LinkSplit.training_graph``), on the model's device.
        split: which edges and non-edges are for what.
        decoder: from distances to probabilities.
    """

    name = "link"

    def __init__(self, data: "Data", split: LinkSplit, decoder: LinkDecoder | None = None) -> None:
        super().__init__()
        self.data, self.split = data, split
        self.decoder = LinkDecoder() if decoder is None else decoder
        device = data.edge_index.device
        self.edges = split.train.to(device)
        self.non_edges = NonEdges(self.edges, split.nodes)
        if not self.non_edges.count:
            raise DataError("the training graph has no pair without an edge: there is nothing to tell apart")
        self._val = [pairs.to(device) for pairs in (split.val, split.val_non)]
        self._test = [pairs.to(device) for pairs in (split.test, split.test_non)]

    def loss(self, model: GraphModel) -> Tensor:
        """Return the mean cross-entropy of the training edges plus that of as many drawn non-edges."""
        return self._entropy(model.positions(self.data), self.edges, self.non_edges.draw(self.edges.size(1)))

    def evaluate(self, model: GraphModel) -> dict[str, float]:
        """Return AUC and average precision in percent, and cross-entropy, on the validation pairs."""
        positions = model.positions(self.data)
        entropy = float(self._entropy(positions, *self._val))
        figures = ranking_figures(*(nearness(positions, pairs) for pairs in self._val))
        return {"val_auc": figures["auc"], "val_ap": figures["ap"], "val_loss": entropy}

    def rank(self, metrics: Mapping[str, float]) -> tuple[float, ...]:
        """Return validation AUC and, for ties, the lower validation loss."""
        return (metrics["val_auc"], -metrics["val_loss"])

    def test(self, model: GraphModel) -> dict[str, float | None]:
        """Return the figures on the test pairs, to be read once, at the end.

        ``test_hits@K`` is None where there are fewer than K test non-edges: every edge would count as found.
        """
        edges, others = (nearness(model.positions(self.data), pairs) for pairs in self._test)
        if not (np.isfinite(edges).all() and np.isfinite(others).all()):
            raise DivergedError(
                "a distance of test pairs is not finite: try --dtype float64, or a smaller --lr"
            )
        found: dict[str, float | None] = {**ranking_figures(edges, others)}
        found |= {f"hits@{count}": hits_at(count, edges, others) for count in HITS}
        return {f"test_{name}": value for name, value in found.items()}

    def _entropy(self, positions: Positions, edges: Tensor, others: Tensor) -> Tensor:
        joined, apart = (self.decoder(positions.pair_squared_dist(*pairs)) for pairs in (edges, others))
        return functional.softplus(-joined).mean() + functional.softplus(apart).mean()


def nearness(positions: Positions, pairs: Tensor) -> NDArray[np.float64]:
    """Return what pairs are ranked by, larger is likelier: the negative squared distance.

    Every decoder falls with the distance, so this is the order of its probabilities, without the ties that rounding
    brings where these come near 0 or 1.
    """
    with torch.no_grad():
        return -positions.pair_squared_dist(*pairs).double().cpu().numpy()


def ranking_figures(edges: NDArray[np.float64], others: NDArray[np.float64]) -> dict[str, float]:
    """Return AUC and average precision in percent of edges against non-edges; NaN if a score is not finite."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    scores = np.concatenate((edges, others))
    if not np.isfinite(scores).all():
        return {"auc": float("nan"), "ap": float("nan")}
    truth = np.repeat([1, 0], [edges.size, others.size])
    return {
        "auc": 100 * float(roc_auc_score(truth, scores)),
        "ap": 100 * float(average_precision_score(truth, scores)),
    }


def hits_at(count: int, edges: NDArray[np.float64], others: NDArray[np.float64]) -> float | None:
    """Return the percentage of edges that score strictly above the non-edge of rank ``count``.

    That is the definition of the Open Graph Benchmark; None if there are fewer non-edges.
    """
    if others.size < count:
        return None
    border = np.partition(others, others.size - count)[others.size - count]
    return 100 * float((edges > border).mean())
