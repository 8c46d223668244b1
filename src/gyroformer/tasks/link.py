r"""Link prediction: edges that were held out are to be told from pairs that are no edge.

.. math:: L = \frac1{|E|} \sum_{(u,v) \in E} -\log p_{uv} + \frac1{|E|} \sum_{(u,v) \in S} -\log(1 - p_{uv})

over the training edges E and as many non-edges S, drawn anew in each step; an edge with a weight counts so many times.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from gyroformer.errors import DataError, DivergedError, UsageError
from gyroformer.options import Options, option
from gyroformer.tasks.classify import MAX_SEED
from gyroformer.tasks.task import Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor
    from torch_geometric.data import Data

    from gyroformer.data.link_split import LinkSplit
    from gyroformer.models.base import GraphModel
    from gyroformer.ops.positions import Positions
    from gyroformer.tasks.decoders import LinkDecoder
    from gyroformer.tasks.task import Ready

    Scores = NDArray[np.float64]

#: the numbers of best non-edges of which a found edge must beat the last
HITS = (10, 50, 100)
#: feature sets of data sets that were computed from all edges: with them, the test would be known in training
LEAKING_FEATURES = {("airport", "hgcn"): "hold the degrees that nodes have with all edges"}


class LinkObjective(Options):
    """What ``link`` is to reach."""

    decoder: Literal["fermi-dirac", "distance"] = option(
        "probabilities of edges from squared distances, fermi-dirac, or plain ones, distance",
        default="fermi-dirac",
    )
    radius: float = option("radius of the decoder", default=2.0)
    temperature: float = option("temperature of the decoder", default=1.0, above=0)
    learn_decoder: bool = option("whether training changes radius and temperature too", default=True)
    degrees: bool = option(
        "whether the decoder also counts how many known edges each end has; no for distances alone",
        default=True,
    )
    val_fraction: float = option("fraction of the edges to choose by", default=0.05, above=0, below=1)
    test_fraction: float = option("fraction of the edges to test on", default=0.10, above=0, below=1)
    split_seed: int | None = option(
        "which draw of held-out edges; none for the job's seed", default=None, at_least=0, at_most=MAX_SEED
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.val_fraction + self.test_fraction >= 1:
            raise UsageError(
                f"val_fraction and test_fraction must be below 1 together, got {self.val_fraction} and "
                f"{self.test_fraction}"
            )


class LinkPrediction(Task):
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
    title = "link prediction"
    answer = "new_edges"
    help = """Predict links: hold out edges, train on the others, print how well the held-out ones are found.

    AUC, average precision and Hits@K are in percent, against as many pairs that are no edge of the graph. Then the
    most likely missing edges are printed and written to new_edges.csv in the run folder. With --directed an edge leads
    from its source to its target, and direction says how often a held-out one is likelier than its reverse.

    Example: gyroformer link friends.csv --for Ann
    """
    Objective = LinkObjective
    uses_weights = True
    uses_direction = True
    run_flags = ("new_edges", "for_node")
    shown = (
        "test_auc",
        "test_ap",
        "test_hits@10",
        "test_hits@50",
        "test_hits@100",
        "test_direction",
        "val_auc",
    )
    judged_by = "val_auc"
    shares_loss = True

    def __init__(self, data: "Data", split: "LinkSplit", decoder: "LinkDecoder | None" = None) -> None:
        from torch import nn

        from gyroformer.graphs.non_edges import NonEdges
        from gyroformer.tasks.decoders import LinkDecoder

        self.data, self.split = data, split
        device = data.edge_index.device
        self.edges = split.train.to(device)
        self.weight = edge_weights(data, self.edges) if "edge_weight" in data else None
        self.decoder = (
            (LinkDecoder(directed=split.directed) if decoder is None else decoder)
            .to(device)
            .know(self.edges, split.nodes)
        )
        # edges without an edge back, of those that are known and of those to test on: they have a direction
        self._one_way, self._val_one_way, self._test_one_way = (
            _one_way(edges, split).to(device) if split.directed else None
            for edges in (split.train, split.val, split.test)
        )
        self.module = nn.ModuleDict({"decoder": self.decoder})
        self.non_edges = NonEdges(self.edges, split.nodes, directed=split.directed)
        if not self.non_edges.count:
            raise DataError("the training graph has no pair without an edge: there is nothing to tell apart")
        self._val = [pairs.to(device) for pairs in (split.val, split.val_non)]
        self._test = [pairs.to(device) for pairs in (split.test, split.test_non)]

    @classmethod
    def from_graph(
        cls,
        graph: "Data",
        objective: LinkObjective,
        ready: "Ready",
        *,
        seed: int,
        split: "LinkSplit | None" = None,
        features: str | None = None,
        directed: bool = False,
        **given: Any,
    ) -> Self:
        """Return the task; ``split`` replaces the draw that the objective names.

        Features are mixed over, and the model is prepared with, the training edges only.
        """
        name = str(graph.name) if "name" in graph else ""
        leak = LEAKING_FEATURES.get((name, features or ""))
        if leak:
            raise UsageError(
                f"the features {features!r} of {name} {leak}, the held-out ones among them: leave --features out"
            )
        split = split or link_split_of(graph, objective, seed, directed=directed)
        decoder = decoder_of(objective, directed=split.directed)
        return cls(ready(split.training_graph(graph), True), split, decoder)

    def loss(self, model: "GraphModel") -> "Tensor":
        """Return the mean cross-entropy of the training edges plus that of as many drawn non-edges, or its part of it.

        In a directed graph also that of the training edges turned round: among drawn pairs these hardly ever come.
        """
        return self.loss_at(model.positions(self.data))

    def loss_at(self, positions: "Positions") -> "Tensor":
        """Return the loss of nodes at ``positions``."""
        from torch.nn.functional import softplus

        from gyroformer.processes.tensors import share

        others = self.non_edges.draw(self.edges.size(1))
        edges, non_edges = self.edges.size(1), others.size(1)
        mine = share(edges)
        joined = self.logits(positions, self.edges[:, mine], known=True)
        apart = self.logits(positions, others[:, share(non_edges)])
        weight = None if self.weight is None else self.weight[mine]
        loss = _entropy(joined, apart, weight, of=(edges, non_edges))
        if self._one_way is None or not self._one_way.size(1):
            return loss
        turned = self._one_way.size(1)
        back = self.logits(positions, self._one_way.flip(0)[:, share(turned)])
        return loss + softplus(back).sum() / turned

    def logits(self, positions: "Positions", pairs: "Tensor", *, known: bool = False) -> "Tensor":
        """Return the decoder's logits of pairs ``(2, M)``; ``known`` if they are training edges."""
        return self.decoder.pairs(positions, pairs, known=known)

    def evaluate(self, model: "GraphModel") -> dict[str, float]:
        """Return AUC and average precision in percent, and cross-entropy, on the validation pairs."""
        from gyroformer.tasks.ranking import ranking_metrics

        positions = model.positions(self.data)
        logits = [self.logits(positions, pairs) for pairs in self._val]
        metrics = ranking_metrics(*(_scores(part) for part in logits))
        found = {"val_auc": metrics["auc"], "val_ap": metrics["ap"], "val_loss": float(_entropy(*logits))}
        direction = self._direction(positions, self._val_one_way)
        return found if direction is None else {**found, "val_direction": direction}

    def rank(self, metrics: Mapping[str, float]) -> tuple[float, ...]:
        """Return validation AUC, in a directed graph with the direction, and for ties the lower loss."""
        return (metrics["val_auc"] + metrics.get("val_direction", 0.0), -metrics["val_loss"])

    def _direction(self, positions: "Positions", edges: "Tensor | None") -> float | None:
        """Return how often an edge is likelier than its reverse, in percent; None if there is none with a direction."""
        if edges is None or not edges.size(1):
            return None
        ahead, back = (self.logits(positions, pairs) for pairs in (edges, edges.flip(0)))
        above = (ahead > back).double() + 0.5 * (ahead == back).double()
        return 100 * float(above.mean())

    def test(self, model: "GraphModel") -> dict[str, float | None]:
        """Return the metrics on the test pairs, to be read once, at the end.

        ``test_hits@K`` is None where there are fewer than K test non-edges: every edge would count as found.
        """
        import numpy as np

        from gyroformer.tasks.ranking import hits_at, ranking_metrics

        positions = model.positions(self.data)
        logits = [self.logits(positions, pairs) for pairs in self._test]
        edges, others = (_scores(part) for part in logits)
        if not (np.isfinite(edges).all() and np.isfinite(others).all()):
            raise DivergedError(
                "a distance of test pairs is not finite: try --dtype float64, or a smaller --lr"
            )
        found: dict[str, float | None] = {**ranking_metrics(edges, others)}
        found |= {f"hits@{count}": hits_at(count, edges, others) for count in HITS}
        joined, apart = (self.decoder.calibrated(part).sigmoid() for part in logits)
        found["calibration"] = calibration_error(joined, apart)
        if self.split.directed:
            found["direction"] = self._direction(positions, self._test_one_way)
        return {f"test_{name}": value for name, value in found.items()}

    def results(self, model: "GraphModel", metrics: Mapping[str, float]) -> dict[str, Any]:
        """Return the metrics of the test and of the validation, the decoder, and what they were taken on.

        The decoder is calibrated first, on the validation pairs.
        """
        so_far = self.results_so_far(model, metrics)
        return {**self.test(model), **so_far}

    def results_so_far(self, model: "GraphModel", metrics: Mapping[str, float]) -> dict[str, Any]:
        """Return the same without the test."""
        decoder, positions = self.decoder, model.positions(self.data)
        decoder.calibrate(*(self.logits(positions, pairs) for pairs in self._val))
        return {**metrics, "decoder": decoder.about(), "split": self.split.about()}


def _entropy(
    joined: "Tensor",
    apart: "Tensor",
    weight: "Tensor | None" = None,
    *,
    of: tuple[int, int] | None = None,
) -> "Tensor":
    """Return the mean cross-entropy of logits of edges, by their weights if these are given, plus that of non-edges.

    ``of`` is of how many edges and non-edges the mean is to be, where these are a part of them.
    """
    from torch.nn.functional import softplus

    edges, others = of or (joined.numel(), apart.numel())
    near = softplus(-joined)
    return (near if weight is None else weight * near).sum() / edges + softplus(apart).sum() / others


def edge_weights(data: "Data", edges: "Tensor") -> "Tensor":
    """Return the weights ``(M,)`` of the edges ``(2, M)`` of a graph, divided by their mean."""
    import numpy as np
    import torch

    from gyroformer.graphs.adjacency import simple_adjacency

    matrix = simple_adjacency(data.edge_index, int(data.num_nodes or 0), data.edge_weight)
    found = np.asarray(matrix[tuple(edges.cpu().numpy())], np.float64).ravel()
    return torch.from_numpy(found / found.mean()).to(edges.device, torch.float32)


def _one_way(edges: "Tensor", split: "LinkSplit") -> "Tensor":
    """Return those of the edges ``(2, M)`` of a directed graph whose reverse is not known as an edge."""
    import torch

    known = split.train if edges is split.train else torch.cat((split.train, split.val, split.test), 1)
    back = torch.isin(split.numbers.of(edges.flip(0)), split.numbers.of(known))
    return edges[:, ~back]


def link_split_of(
    graph: "Data", objective: LinkObjective, seed: int, *, directed: bool = False
) -> "LinkSplit":
    """Return the split that the objective names; unless it says which, ``seed`` chooses the draw."""
    from gyroformer.data.link_split import draw_link_split

    chosen = seed if objective.split_seed is None else objective.split_seed
    fractions = {"val_fraction": objective.val_fraction, "test_fraction": objective.test_fraction}
    return draw_link_split(graph, **fractions, seed=chosen, directed=directed)


def decoder_of(objective: LinkObjective, *, directed: bool = False) -> "LinkDecoder":
    """Return the decoder that the objective names, not yet trained."""
    from gyroformer.tasks.decoders import LinkDecoder

    return LinkDecoder(
        objective.decoder,
        radius=objective.radius,
        temperature=objective.temperature,
        learn=objective.learn_decoder,
        degrees=objective.degrees,
        directed=directed,
    )


def _scores(logits: "Tensor") -> "Scores":
    """Return logits as what pairs are ranked by."""
    found: Scores = logits.detach().double().cpu().numpy()
    return found


def calibration_error(edges: "Tensor", others: "Tensor", bins: int = 10) -> float:
    """Return by how many points probabilities of edges and of non-edges are off on average, in percent.

    The expected calibration error: pairs in bins of equal width by their probability, the difference of the mean
    probability and the fraction of edges in each bin, averaged by the bins' sizes.
    """
    import torch

    probability = torch.cat((edges, others)).double()
    truth = torch.cat((torch.ones_like(edges), torch.zeros_like(others))).double()
    index = (probability * bins).long().clamp(max=bins - 1)
    off = torch.zeros(bins, dtype=torch.float64, device=index.device).index_add(0, index, probability - truth)
    return 100 * float(off.abs().sum()) / probability.numel()
