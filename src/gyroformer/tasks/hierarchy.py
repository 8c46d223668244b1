r"""A hierarchy: the ancestors of a node come before all other nodes, its descendants among them.

.. math:: L = \sum_{(u,a)} \log\Bigl(1 + e^{-s(u,a)} \sum_{w\ \text{no ancestor of}\ u} e^{s(u,w)}\Bigr)

over all pairs of a node u and an ancestor a, with the score s of :mod:`gyroformer.tasks.scores`. The sum runs over all
other nodes but the ancestors of u, and counts 1 for u itself.

Metrics are those of Nickel and Kiela: each ancestor of u is ranked by its score among the nodes that are no ancestors
of u. ``hierarchy_map`` is the mean average precision, ``mean_rank`` the mean rank over all pairs, ``direction`` the
share of pairs whose upper end is told from the lower one, ``map`` the mean average precision by distance alone with
ancestors and descendants as neighbours.
"""

import dataclasses as dc
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from gyroformer.errors import DataError, UsageError
from gyroformer.tasks.embed import (
    PLANE,
    chosen_map_nodes,
    chosen_negatives,
    drawn_nodes,
    loss_error,
    notes_of,
)
from gyroformer.tasks.embed_objective import FAR, NEAR, EmbedObjective
from gyroformer.tasks.task import Task

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

    from gyroformer.graphs.adjacency import IntArray
    from gyroformer.graphs.hierarchy import End
    from gyroformer.graphs.tree_layout import TreeLayout
    from gyroformer.models.base import GraphModel
    from gyroformer.ops.neighbours import Neighbours
    from gyroformer.ops.positions import Positions
    from gyroformer.tasks.negatives import Negatives
    from gyroformer.tasks.scores import PairScore
    from gyroformer.tasks.task import Ready

#: nodes of a cycle that an error names
SHOWN_CYCLE = 8
#: weight of the depth in the score, by the radius of a layout: ancestors of a leaf, up to the root, then come before
#: its siblings (docs/log.md)
DEPTH_BY_RADIUS = 1.25


@dc.dataclass(frozen=True)
class Order:
    """Who is above whom.

    Attributes:
        ancestors: of each node.
        train: pairs of a node and an ancestor to learn from, ``(2, M)``.
        held_out: pairs that follow from others and are kept for the test, ``(2, K)``.
        about: what is reported of it.
        notes: what the user should know.
        layout: where the nodes are to start, if not in disorder.
    """

    ancestors: "Neighbours"
    train: "Tensor"
    held_out: "Tensor"
    about: dict[str, Any]
    notes: tuple[str, ...]
    layout: "TreeLayout | None" = None


class Hierarchy(Task):
    """The task of placing nodes so that their ancestors can be read from the score.

    Args:
        data: the graph that the model sees.
        order: who is above whom.
        score: from positions to scores.
        negatives: ``"near"`` for near nodes and drawn ones, or a number of nodes drawn anew in each step to stand for
            all others, instead of all.
        near: nodes on a near list.
        far: nodes drawn for all that are not listed.
        map_nodes: number of nodes over which the metrics are taken, drawn once; all by default.
        seed: of that draw.
    """

    name = "embed"
    title = "hierarchy"
    help = ""
    Objective = EmbedObjective
    shown = (
        "hierarchy_map",
        "hierarchy_map_interval",
        "mean_rank",
        "direction",
        "map",
        "test_map",
        "test_auc",
        "loss_error",
    )
    judged_by = "hierarchy_map"
    shares_loss = True
    uses_direction = True

    def __init__(
        self,
        data: "Data",
        order: Order,
        score: "PairScore",
        *,
        negatives: int | str | None = None,
        near: int = NEAR,
        far: int = FAR,
        map_nodes: int | None = None,
        seed: int = 0,
    ) -> None:
        from torch import nn

        from gyroformer.ops.neighbours import Neighbours
        from gyroformer.tasks.negatives import NearNegatives, make_negatives

        device, nodes = data.edge_index.device, int(data.num_nodes or 0)
        self.data, self.order, self.seed = data, order, seed
        self.ancestors = order.ancestors.to(device)
        self.negatives = make_negatives(negatives, self.ancestors, near=near, far=far)
        self.kept = self.negatives if isinstance(self.negatives, NearNegatives) else None
        self.below, self.above = order.train.to(device)
        self.score = score.to(device)
        self.module = nn.ModuleDict({"score": self.score})
        pairs = [self.ancestors.source, self.ancestors.indices]
        self.related = Neighbours.of(_stacked(pairs), nodes)
        drawn = drawn_nodes(nodes, map_nodes, seed)
        self.map_nodes = None if drawn is None else drawn.to(device)

    @classmethod
    def from_graph(
        cls, graph: "Data", objective: EmbedObjective, ready: "Ready", *, seed: int, **given: Any
    ) -> Self:
        """Return the task; large graphs get near negatives and sampled metrics unless the objective says."""
        from gyroformer.tasks.scores import PairScore

        order = order_of(graph, objective, seed)
        nodes = int(graph.num_nodes or 0)
        data = ready(graph, objective.use_features)
        task = cls(
            data,
            order,
            PairScore(objective.score),
            negatives=chosen_negatives(objective.negatives, nodes),
            near=objective.near,
            far=objective.far,
            map_nodes=chosen_map_nodes(objective, nodes),
            seed=seed,
        )
        task.notes = (*order.notes, *notes_of(objective, nodes, "the metrics are means"))
        return task

    def start(self, model: "GraphModel") -> None:
        """Lay the nodes out around the roots, if the objective asks for it, in the model's unit of length 1/√|k|."""
        import torch

        if self.order.layout is None:
            return
        if model.curvatures.size(-1) != 1 or model.config["dim"] != PLANE:
            raise UsageError(
                "--start tree lays the nodes out in a plane: add --dim 2 --heads 1, or leave it out"
            )
        curvature = float(model.curvatures[-1, 0].detach())
        unit = abs(curvature) ** -0.5 if curvature else 1.0
        # a tangent vector of a stereographic space is half as long as its geodesic
        places = unit / 2 * self.order.layout.coordinates()
        model.start_at(torch.as_tensor(places, device=self.below.device))
        self.score.weigh_depth(DEPTH_BY_RADIUS * unit * float(self.order.layout.radius.max()))

    def loss(self, model: "GraphModel") -> "Tensor":
        """Return the loss, summed over all pairs of a node and an ancestor: this process's pairs."""
        return self.loss_at(model.positions(self.data))

    def loss_at(self, positions: "Positions", negatives: "Negatives | None" = None) -> "Tensor":
        """Return the loss of nodes at ``positions``, with the task's own negatives or others."""
        from torch.nn.functional import softplus

        from gyroformer.processes.tensors import share

        others = (negatives or self.negatives).log_partition(positions, bias=self.score.bias(positions))
        pairs = share(self.below.numel())
        below, above = self.below[pairs], self.above[pairs]
        return softplus(others[below] - self.score.pairs(positions, below, above)).sum()

    def evaluate(self, model: "GraphModel") -> dict[str, float]:
        """Return the metrics on the hierarchy itself; percentages but for the rank."""
        from gyroformer.tasks.average_precision import precision_of

        positions = model.positions(self.data)
        above = precision_of(
            lambda rows: self.score.costs(positions, rows),
            self.ancestors,
            nodes=self.map_nodes,
            heard=self.heard,
        )
        by_distance = positions.squared_dist_rows
        near = precision_of(by_distance, self.related, nodes=self.map_nodes, heard=self.heard)
        return {
            "hierarchy_map": 100 * above.mean,
            **above.interval_as("hierarchy_map_interval"),
            "mean_rank": above.rank,
            "direction": self._direction(positions),
            "map": 100 * near.mean,
        }

    def results(self, model: "GraphModel", metrics: Mapping[str, float]) -> dict[str, Any]:
        """Return the metrics of the last evaluation and, for pairs that were held out, those of the test."""
        test = self._test(model) if self.order.held_out.numel() else {}
        return {**test, **self.results_so_far(model, metrics), **loss_error(self, model)}

    def results_so_far(self, model: "GraphModel", metrics: Mapping[str, float]) -> dict[str, Any]:
        """Return the metrics of the last evaluation, the score, and what they were taken on."""
        weight = self.score.weight
        about = {"kind": self.score.kind, "weight": None if weight is None else float(weight.detach())}
        return {**metrics, "score": about, "hierarchy": self.order.about}

    @classmethod
    def uses_features(cls, objective: EmbedObjective) -> bool:
        """Return whether the objective asks for features; by default each node has a vector of its own."""
        return objective.use_features

    def _direction(self, positions: "Positions") -> float:
        height = self.score.height(positions)
        return 100 * float((height[self.ancestors.indices] > height[self.ancestors.source]).float().mean())

    def _test(self, model: "GraphModel") -> dict[str, float]:
        """Return MAP and AUC of the pairs held out, against nodes that are no ancestors."""
        import torch

        from gyroformer.ops.neighbours import Neighbours
        from gyroformer.tasks.average_precision import mean_precision_and_rank
        from gyroformer.tasks.ranking import ranking_metrics

        positions, pairs = model.positions(self.data), self.order.held_out.to(self.below.device)
        held = Neighbours.directed(pairs, len(positions))

        def costs(rows: "Tensor") -> "Tensor":
            # the ancestors that were learned from count neither way: nobody would ask for them
            found = self.score.costs(positions, rows)
            known = self.ancestors.adjacent(rows) & ~held.adjacent(rows)
            return found.masked_fill(known, float(torch.finfo(found.dtype).max))

        precision, _ = mean_precision_and_rank(costs, held)
        others = _no_ancestors(pairs, self.ancestors, self.seed)
        scores = [
            self.score.pairs(positions, *ends).detach().double().cpu().numpy() for ends in (pairs, others)
        ]
        return {"test_map": 100 * precision, "test_auc": ranking_metrics(*scores)["auc"]}


def order_of(graph: "Data", objective: EmbedObjective, seed: int) -> Order:
    """Return who is above whom in a graph, as the objective asks.

    Raises:
        DataError: the graph has a cycle, no edge, or every edge in both directions.
    """
    import torch

    from gyroformer.graphs import hierarchy
    from gyroformer.graphs.tree_layout import tree_layout
    from gyroformer.ops.neighbours import Neighbours

    nodes = int(graph.num_nodes or 0)
    edges, end, notes = _upwards(graph, objective)
    pairs, depth = hierarchy.closure(edges, nodes)
    given = edges[0] * nodes + edges[1]
    if not objective.closure:
        missing = pairs.shape[1] - given.size
        if missing:
            follow = "1 that follows" if missing == 1 else f"{missing:,} that follow"
            notes.append(
                f"only the {given.size:,} listed pairs count as ancestors; --closure adds the {follow} from them"
            )
        pairs = edges
    inner = hierarchy.implied(pairs, nodes)
    held = _held_out(inner, objective.hold_out, seed)
    found = torch.from_numpy(pairs.copy())
    roots = int((depth == 0).sum())
    about = {
        "ancestor": end,
        "pairs": int(found.shape[1]),
        "held_out": int(held.sum()),
        "roots": roots,
        "depth": int(depth.max()),
    }
    ancestors = Neighbours.directed(found, nodes)
    layout = tree_layout(edges, depth) if objective.start == "tree" else None
    return Order(ancestors, found[:, ~held], found[:, held], about, tuple(notes), layout)


def _upwards(graph: "Data", objective: EmbedObjective) -> "tuple[IntArray, End, list[str]]":
    """Return the edges from each node to its parent, without cycles, which end that is in the file, and what to say."""
    from gyroformer.graphs import hierarchy

    nodes, notes = int(graph.num_nodes or 0), []
    listed = graph.edge_index.cpu().numpy()
    if not listed.size:
        raise DataError("the graph has no edge: there is no hierarchy in it")
    if hierarchy.has_no_direction(listed, nodes):
        raise DataError(
            "every pair is listed in both directions, so that nothing says which end is the ancestor: list each pair "
            "once, from a node to its ancestor"
        )
    if objective.ancestor == "auto":
        found = hierarchy.upper_end(listed, nodes)
        end: End = found or "target"
        way = "from a node to its ancestor" if end == "target" else "from an ancestor to its descendant"
        other = "source" if end == "target" else "target"
        doubt = "" if found else ", which is a guess: as many nodes have no edge out as no edge in"
        notes.append(f"edges are read {way}{doubt}; --ancestor {other} reads them the other way")
    else:
        end = objective.ancestor
    edges = hierarchy.oriented(listed, end)
    cycle = hierarchy.find_cycle(edges, nodes)
    if cycle is not None and not objective.break_cycles:
        raise DataError(_about_cycle(cycle, list(graph.ids) if "ids" in graph else list(range(nodes))))
    if cycle is not None:
        kept = hierarchy.without_cycles(edges, nodes)
        dropped = edges.shape[1] - kept.shape[1]
        notes.append(f"edges that close a cycle are left out: {dropped:,} of {edges.shape[1]:,}")
        edges = kept
    return edges, end, notes


def _held_out(inner: Any, share: float, seed: int) -> "Tensor":
    """Return which pairs are held out, a share of those that follow from others, drawn by the seed."""
    import torch

    candidates = torch.from_numpy(inner).nonzero().flatten()
    held = torch.zeros(len(inner), dtype=torch.bool)
    if not share:
        return held
    count = round(share * candidates.numel())
    if not count:
        raise DataError(
            f"--hold-out {share}: only {candidates.numel()} pairs follow from others, too few to hold some out; add "
            "--closure, or leave it out"
        )
    generator = torch.Generator().manual_seed(seed)
    held[candidates[torch.randperm(candidates.numel(), generator=generator)[:count]]] = True
    return held


def _about_cycle(cycle: list[int], ids: list[Any]) -> str:
    names = [repr(ids[node]) for node in cycle[:SHOWN_CYCLE]]
    more = "" if len(cycle) <= SHOWN_CYCLE else f" → … ({len(cycle)} nodes)"
    return (
        f"the graph has a cycle, so that a node would be its own ancestor: {' → '.join([*names])}{more} → {names[0]}; "
        "correct the file, or leave out the edges that close cycles with --break-cycles"
    )


def _no_ancestors(pairs: "Tensor", ancestors: "Neighbours", seed: int) -> "Tensor":
    """Return for each pair its lower end with a drawn node that is neither it nor an ancestor of it."""
    import torch

    nodes = ancestors.num_nodes
    known = ancestors.source * nodes + ancestors.indices
    generator = torch.Generator().manual_seed(seed)
    below = pairs[0]
    other = torch.randint(nodes, below.shape, generator=generator).to(below.device)
    for _ in range(1000):
        wrong = torch.isin(below * nodes + other, known) | (other == below)
        if not wrong.any():
            break
        other = other.where(~wrong, torch.randint(nodes, below.shape, generator=generator).to(below.device))
    return torch.stack((below, other))


def _stacked(pairs: "list[Tensor]") -> "Tensor":
    import torch

    return torch.stack(pairs)
