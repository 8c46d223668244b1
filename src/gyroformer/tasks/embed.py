r"""Graph reconstruction: neighbours close, all others far.

.. math:: L = -\sum_{(u,v) \in E} \log \frac{e^{-d(u,v)^2}}{\sum_{w \notin N(u)} e^{-d(u,w)^2}}

over both directions of each edge. The sum runs over all nodes that are not neighbours of u, u itself among them:
without that term the loss has no lower bound. In other words

.. math:: L = \sum_{(u,v) \in E} d(u,v)^2 + \sum_u \deg(u) \log S_u .

The term of an edge with a weight counts so many times: :math:`\sum w_{uv} d(u,v)^2 + \sum_u (\sum_v w_{uv}) \log S_u`.

With the inner product s in the place of −d² this would have no lower bound, so there the neighbour stands in the sum
too: :math:`L = \sum_{(u,v) \in E} \log(1 + e^{-s(u,v)} S_u)`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gyroformer.data.registry import DATASETS
from gyroformer.errors import DataError
from gyroformer.tasks.embed_objective import ALL_PAIRS_NODES, EXACT_MAP_NODES, FAR, NEAR, EmbedObjective
from gyroformer.tasks.task import Task

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

    from gyroformer.models.base import GraphModel
    from gyroformer.ops.positions import Positions
    from gyroformer.tasks.hierarchy import Hierarchy
    from gyroformer.tasks.negatives import Negatives
    from gyroformer.tasks.scores import ScoreKind
    from gyroformer.tasks.task import Ready

#: nodes that mAP is taken over where it is not exact
SAMPLED_MAP_NODES = 2_000
#: fraction by which the loss of a graph of the user's own must fall over 50 epochs: chosen on two graphs, docs/log.md
CONVERGED = 1e-2
#: dimensions of a plane, and the models whose hierarchies start there as a drawn tree (docs/log.md)
PLANE = 2
LAID_OUT = ("fpst", "points")
#: models whose nodes may start along a tree of the graph, and the distance of a node from its parent (docs/log.md)
STARTS_ALONG_TREE = ("fpst", "tokengt", "points")
TREE_STEP = 0.7


class Reconstruction(Task):
    """The task of placing a graph's nodes so that its edges can be read from the distances.

    Args:
        data: the graph.
        squared: whether the exponent holds the squared distance.
        score: what neighbours are ranked by, ``"distance"`` or ``"dot"``.
        negatives: ``"near"`` for near nodes and drawn ones, or a number of nodes drawn anew in each step to stand for
            all others, instead of all pairs.
        near: nodes on a near list.
        far: nodes drawn for all that are not listed.
        map_nodes: number of nodes over which the mean average precision is taken, drawn once; all by default.
        along_tree: whether nodes start along a tree of the graph instead of in disorder.
        seed: of the draw of these nodes, and of the directions of that tree.
    """

    name = "embed"
    title = "embedding"
    help = """Embed a graph: train a model to reconstruct it, write the embeddings, print the mAP.

    mAP is the mean average precision, in percent: how well the nodes nearest to a node are its neighbours. A curvature
    says how a space is bent: below 0 hyperbolic, for trees and hubs; 0 flat; above 0 a sphere. A graph of your own is
    trained until its loss has converged; --thorough takes the full length.

    With --hierarchy the edges have a direction, and a node's ancestors are to come before all others.

    Example: gyroformer embed web-edu --dim 16 --heads 2 --out runs/web-edu
    """
    Objective = EmbedObjective
    run_flags = ("thorough",)
    uses_weights = True
    shown = ("map", "map_interval", "loss_error")
    judged_by = "map"
    shares_loss = True

    def __init__(
        self,
        data: "Data",
        *,
        squared: bool = True,
        score: "ScoreKind" = "distance",
        negatives: int | str | None = None,
        near: int = NEAR,
        far: int = FAR,
        map_nodes: int | None = None,
        along_tree: bool = False,
        seed: int = 0,
    ) -> None:
        import torch

        from gyroformer.ops.neighbours import Neighbours
        from gyroformer.tasks.negatives import NearNegatives, make_negatives
        from gyroformer.tasks.scores import PairScore

        nodes, device = int(data.num_nodes or 0), data.edge_index.device
        self.data, self.squared, self.score = data, squared, PairScore(score)
        self.along_tree, self.seed = along_tree, seed
        self.neighbours = Neighbours.of(data.edge_index, nodes)
        self.degree = self.neighbours.degree
        if not bool(self.degree.any()):
            raise DataError("the graph has no edge: there is nothing to reconstruct")
        self.negatives = make_negatives(negatives, self.neighbours, near=near, far=far)
        self.kept = self.negatives if isinstance(self.negatives, NearNegatives) else None
        source = torch.repeat_interleave(torch.arange(nodes, device=device), self.degree)
        once = source < self.neighbours.indices
        self.source, self.target = source[once], self.neighbours.indices[once]
        #: weights of these edges and their sum at each node; None where all edges count alike
        self.weight, self.strength = None, self.degree
        if "edge_weight" in data:
            self.weight, self.strength = _edge_weights(data, once)
        drawn = drawn_nodes(nodes, map_nodes, seed)
        self.map_nodes = None if drawn is None else drawn.to(device)

    @classmethod
    def from_graph(
        cls, graph: "Data", objective: EmbedObjective, ready: "Ready", *, seed: int, **given: Any
    ) -> "Task":
        """Return the task; large graphs get near negatives and a sampled mAP unless the objective says."""
        if objective.use_features and graph.x is None:
            raise DataError(
                "the graph has no features to use: leave the option out, or give a file of features"
            )
        if objective.hierarchy:
            return cls.kind(objective).from_graph(graph, objective, ready, seed=seed, **given)
        nodes = int(graph.num_nodes or 0)
        negatives, map_nodes = (
            chosen_negatives(objective.negatives, nodes),
            chosen_map_nodes(objective, nodes),
        )
        data = ready(graph, objective.use_features)
        task = cls(
            data,
            squared=objective.squared,
            score=objective.score,
            negatives=negatives,
            near=objective.near,
            far=objective.far,
            map_nodes=map_nodes,
            along_tree=objective.start == "tree",
            seed=seed,
        )
        task.notes = notes_of(objective, nodes, "mAP is the mean")
        if objective.score == "dot":
            task.notes += ("neighbours are ranked by the inner product; predict and report go by distance",)
        return task

    def start(self, model: "GraphModel") -> None:
        """Put the nodes along a tree of the graph, if the objective asks for it."""
        import torch

        from gyroformer.graphs.adjacency import simple_adjacency
        from gyroformer.graphs.tree_walk import tree_walk

        if self.along_tree:
            device, nodes = self.data.edge_index.device, len(self.degree)
            # a tangent vector of a stereographic space is half as long as its geodesic
            places = tree_walk(
                simple_adjacency(self.data.edge_index, nodes),
                model.config["dim"],
                step=TREE_STEP / 2,
                seed=self.seed,
            )
            model.start_at(torch.as_tensor(places, device=device))

    def loss(self, model: "GraphModel") -> "Tensor":
        """Return the loss, summed over both directions of all edges: this process's edges and nodes."""
        return self.loss_at(model.positions(self.data))

    def loss_at(self, positions: "Positions", negatives: "Negatives | None" = None) -> "Tensor":
        """Return the loss of nodes at ``positions``, with the task's own negatives or others."""
        from gyroformer.processes.tensors import share
        from gyroformer.tasks.decoders import plain_distance

        edges, rows = share(self.source.numel()), share(len(positions))
        ends = self.source[edges], self.target[edges]
        negatives, bias = negatives or self.negatives, self.score.bias(positions)
        partition = negatives.log_partition(positions, squared=self.squared, bias=bias)
        if self.score.kind == "dot":
            terms = self._bounded_terms(partition, self.score.pairs(positions, *ends), ends)
            return (terms if self.weight is None else self.weight[edges] * terms).sum()
        distances = positions.pair_squared_dist(*ends)
        if not self.squared:
            distances = plain_distance(distances)
        near = distances if self.weight is None else self.weight[edges] * distances
        return 2 * near.sum() + (self.strength * partition)[rows].sum()

    def _bounded_terms(
        self, partition: "Tensor", scores: "Tensor", ends: "tuple[Tensor, Tensor]"
    ) -> "Tensor":
        """Return the loss of each edge, of both its directions, with the neighbour in the sum."""
        from torch.nn.functional import softplus

        return softplus(partition[ends[0]] - scores) + softplus(partition[ends[1]] - scores)

    def evaluate(self, model: "GraphModel") -> dict[str, float]:
        """Return the mean average precision in percent, on the graph itself."""
        from gyroformer.tasks.average_precision import precision_of

        positions = model.positions(self.data)
        found = precision_of(
            lambda rows: self.score.costs(positions, rows),
            self.neighbours,
            nodes=self.map_nodes,
            heard=self.heard,
        )
        return {"map": 100 * found.mean, **found.interval_as("map_interval")}

    def results(self, model: "GraphModel", metrics: Mapping[str, float]) -> dict[str, Any]:
        """Return the metrics of the last evaluation (there is nothing held out) and how well the loss was estimated."""
        return {**metrics, **loss_error(self, model)}

    def results_so_far(self, model: "GraphModel", metrics: Mapping[str, float]) -> dict[str, Any]:
        """Return the metrics of the last evaluation."""
        return dict(metrics)

    @classmethod
    def uses_features(cls, objective: EmbedObjective) -> bool:
        """Return whether the objective asks for features; by default each node has a vector of its own."""
        return objective.use_features

    @classmethod
    def usual(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """A graph of the user's own is trained until it has converged, unless epochs or a schedule are given.

        It starts along a tree, as does a large one, which would else need many more epochs. The small data sets start
        as their kept results did. A hierarchy has a start of its own, and is trained to the end: its loss falls to 0
        when all is learned, and by leaps before.
        """
        training, source = values.get("training", {}), values.get("graph", {}).get("source", "")
        if values.get("objective", {}).get("hierarchy"):
            return {}
        own = source not in DATASETS
        found: dict[str, Any] = {}
        if own and not {"epochs", "schedule"} & training.keys():
            found["training"] = {"converged": CONVERGED}
        large = not own and DATASETS[source].nodes > ALL_PAIRS_NODES
        if (own or large) and cls._can_start_along_tree(values):
            found["objective"] = {"start": "tree"}
        return found

    @classmethod
    def _can_start_along_tree(cls, values: Mapping[str, Any]) -> bool:
        """Return whether the model has a vector for each node that may be put anywhere, and distances to rank by.

        In a plane there are too few directions, and the steps of a tree end on top of each other.
        """
        objective, graph, model = values.get("objective", {}), values.get("graph", {}), values["model"]
        features = objective.get("use_features") or graph.get("features")
        by_distance = objective.get("rank_by", "auto") != "dot"
        plane = model.get("options", {}).get("dim") == PLANE
        return not features and by_distance and not plane and model["name"] in STARTS_ALONG_TREE

    @classmethod
    def implied(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """A file of features is given to be used; the edges of a hierarchy have a direction."""
        features = bool(values.get("graph", {}).get("features"))
        directed = bool(values.get("objective", {}).get("hierarchy"))
        return {
            **({"objective": {"use_features": True}} if features else {}),
            **({"graph": {"directed": True}} if directed else {}),
        }

    @classmethod
    def own_recipe(cls, values: Mapping[str, Any]) -> str | None:
        """Return the recipe of hierarchies for one, and that of planes where it is to lie in two dimensions."""
        objective, model = values.get("objective", {}), values["model"]
        if not objective.get("hierarchy"):
            return None
        by_depth = objective.get("rank_by", "auto") in ("auto", "depth")
        planar = model.get("options", {}).get("dim") == PLANE and model["name"] in LAID_OUT
        return "plane" if planar and by_depth and objective.get("start") != "random" else "hierarchy"

    @classmethod
    def kind(cls, objective: EmbedObjective) -> type[Task]:
        """Return the task of hierarchies for one."""
        from gyroformer.tasks.hierarchy import Hierarchy

        return Hierarchy if objective.hierarchy else cls


def chosen_negatives(choice: str | int, nodes: int) -> int | str | None:
    """Return the kind of negatives by the option ``negatives``: ``"near"``, a number of sampled ones, None for all."""
    if choice == "auto":
        return None if nodes <= ALL_PAIRS_NODES else "near"
    return None if choice == "all" else choice


def chosen_map_nodes(objective: EmbedObjective, nodes: int) -> int | None:
    """Return over how many nodes the metrics are taken; None for all."""
    return objective.map_nodes or (SAMPLED_MAP_NODES if nodes > EXACT_MAP_NODES else None)


def notes_of(objective: EmbedObjective, nodes: int, metrics: str) -> tuple[str, ...]:
    """Return what the user should know of estimates; ``metrics`` begins the sentence on those."""
    notes = []
    chosen, taken_over = chosen_negatives(objective.negatives, nodes), chosen_map_nodes(objective, nodes)
    if chosen == "near" and objective.negatives == "auto":
        notes.append(
            f"above {ALL_PAIRS_NODES:,} nodes the loss is exact for the {objective.near} nearest nodes and estimated "
            "for the rest; --negatives all takes every pair"
        )
    elif isinstance(chosen, int):
        notes.append(
            f"{chosen:,} of {nodes:,} nodes stand for all others in each step, which costs mAP "
            "(docs/tasks.md); --negatives near costs less time and hardly any mAP"
        )
    if taken_over is not None and taken_over < nodes:
        notes.append(f"{metrics} over {taken_over:,} of {nodes:,} nodes")
    return tuple(notes)


def loss_error(task: "Reconstruction | Hierarchy", model: "GraphModel") -> dict[str, float]:
    """Return the share of pairs that near negatives look at, and their loss beside the exact one where that is quick.

    ``loss_error`` is the difference in percent of the exact loss. Random generators are left as they were.
    """
    import torch

    from gyroformer.processes.tensors import sum_numbers
    from gyroformer.tasks.negatives import AllNegatives, NearNegatives

    near = task.kept
    if not isinstance(near, NearNegatives):
        return {}
    found = {"pairs_share": 100 * near.share}
    if near.exact_is_quick:
        near.eval()
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            positions = model.positions(task.data)
            losses = [task.loss_at(positions, of) for of in (near, AllNegatives(near.neighbours))]
        near.train()
        estimate, exact = sum_numbers([float(loss) for loss in losses])
        error = 100 * abs(estimate - exact) / max(abs(exact), 1e-30)
        found |= {"loss": estimate, "loss_exact": exact, "loss_error": error}
    return found


def _edge_weights(data: "Data", once: "Tensor") -> "tuple[Tensor, Tensor]":
    """Return the weights of the edges that ``once`` selects from all directions, and their sum at each node."""
    import torch

    from gyroformer.graphs.adjacency import simple_adjacency

    nodes = int(data.num_nodes or 0)
    matrix = simple_adjacency(data.edge_index, nodes, data.edge_weight)
    device, dtype = data.edge_index.device, torch.float32
    weight = torch.from_numpy(matrix.data).to(device=device, dtype=dtype)
    strength = weight.new_zeros(nodes).index_add(
        0, torch.from_numpy(matrix.indices).to(device, torch.int64), weight
    )
    return weight[once], strength


def drawn_nodes(nodes: int, count: int | None, seed: int) -> "Tensor | None":
    """Return ``count`` nodes drawn by a seed, ascending; None for all."""
    import torch

    if count is None or count >= nodes:
        return None
    generator = torch.Generator().manual_seed(seed)
    return torch.randperm(nodes, generator=generator)[:count].sort().values
