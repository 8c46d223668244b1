"""Nodes that were not there when a run was trained, added by their edges.

A model that takes node features is asked about the graph with the new nodes. One that learned a vector for each node
has none for a new one: the new node is placed by its edges (:mod:`gyroformer.ops.placing`), and where these have a
direction by the loss that the run was trained with (:mod:`gyroformer.jobs.settle`). Nothing known moves, but for nodes
that had no edge in the run's graph, of which the run could not know where they belong, and for nodes around new ones if
the user lets them.
"""

import copy
import dataclasses as dc
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gyroformer.data.load import load
from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.non_edges import directed_edges, undirected_edges
from gyroformer.graphs.reading.attributes import read_features
from gyroformer.graphs.reading.read import existing_file
from gyroformer.jobs.grown import Grown, grown
from gyroformer.jobs.plan import ready_for, relative_weights
from gyroformer.jobs.restore import Restored, joined_by, restore
from gyroformer.jobs.settle import adjusted, around, settle
from gyroformer.ops import placing
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.positions import Positions, StereographicPositions
from gyroformer.settings import JobSettings

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gyroformer.tasks.decoders import LinkDecoder
    from gyroformer.tasks.hierarchy import Hierarchy
    from gyroformer.tasks.link import LinkPrediction

#: what is said of a model that is in no space where a new node could be put
OTHER_SPACE = (
    "new nodes can be placed in products of hyperbolic, flat and spherical spaces only, and this model has another: "
    "train it on the whole graph"
)
#: what is said of a run whose neighbours are not the nearest nodes
OTHER_SCORE = (
    "new nodes are placed by distance, and this run ranks neighbours by the inner product: "
    "train it on the whole graph"
)
#: steps of new nodes by the loss of the run, and the size of the first
STEPS, RATE = 100, 0.1
#: steps that new nodes take once the known ones around them have given way
LAST_STEPS = 32
#: nodes up to which all pairs say how crowded a place is; beyond, so many drawn ones stand for all
CROWD_NODES = 8192


@torch.no_grad()
def placed(
    positions: Positions,
    grown: Grown,
    seen: Tensor,
    *,
    adjust: bool = False,
    steps: int = placing.STEPS,
    spread: float = placing.SPREAD,
) -> StereographicPositions:
    """Return where all nodes are, the new ones near their neighbours.

    Args:
        positions: of the known nodes.
        grown: the graph with the new ones.
        seen: the edges that the run was trained on, ``(2, E)``.
        adjust: whether known nodes around the new ones move too, by the loss of reconstruction.
        steps: of the new nodes; 0 for where they begin.
        spread: how far from the midpoints of their neighbours that is.
    """
    start = _Start(positions, grown, seen)
    if not adjust:
        return start.placed(steps, spread)
    found = adjusted(start.placed(0), grown.graph, grown.new)
    known = StereographicPositions(found.sine[: grown.known], found.cosine[: grown.known], found.k)
    return _Start(known, grown, seen).placed(LAST_STEPS)


class _Start:
    """Known nodes at their places, and what has to get one."""

    def __init__(self, positions: Positions, grown: Grown, seen: Tensor) -> None:
        if not isinstance(positions, StereographicPositions):
            raise UsageError(OTHER_SPACE)
        self.known, self.more = positions, len(grown.new_ids)
        self.neighbours = Neighbours.of(seen.cpu(), grown.known)
        nodes = grown.known + self.more
        named = torch.zeros(nodes, dtype=torch.bool)
        named[grown.edges.flatten()] = True
        self.settled = torch.ones(nodes, dtype=torch.bool)
        self.settled[grown.known :] = False
        # no edge said where they belong: they are placed like new ones
        self.settled[: grown.known] = (self.neighbours.degree > 0) | ~named[: grown.known]
        if not bool((self.settled & named).any()):
            raise DataError(
                "the added edges lead to nodes without any edge of their own only: nothing says where they are"
            )
        self.edges = grown.both[:, ~self.settled[grown.both[0]]]

    @property
    def moving(self) -> Tensor:
        """The nodes that have no place yet."""
        return (~self.settled).nonzero().flatten()

    def placed(self, steps: int, spread: float = placing.SPREAD) -> StereographicPositions:
        """Return where all nodes are; the arguments are those of :func:`placed`."""
        crowd = _crowd(self.known, self.neighbours)
        crowd = torch.cat((crowd, crowd.median().expand(self.more)))  # a new node counts as a usual one
        sine = torch.cat((self.known.sine, self.known.sine.new_zeros(self.more, *self.known.sine.shape[1:])))
        cosine = torch.cat(
            (self.known.cosine, self.known.cosine.new_ones(self.more, *self.known.cosine.shape[1:]))
        )
        found = StereographicPositions(sine.detach(), cosine.detach(), self.known.k.detach())
        settled = self.settled.clone()
        for ready in placing.rounds(settled.clone(), *self.edges):
            mine = self.edges[:, torch.isin(self.edges[0], ready)]
            found = placing.place_nodes(
                found, ready, mine[0], mine[1], settled, crowd, steps=steps, spread=spread
            )
            settled[ready] = True
        return found


@torch.no_grad()
def placed_by(
    task: "Hierarchy | LinkPrediction",
    positions: Positions,
    grown: Grown,
    seen: Tensor,
    *,
    adjust: bool = False,
) -> StereographicPositions:
    """Return where all nodes are, the new ones where the loss of a task on the grown graph is low.

    Args:
        task: the task.
        positions: of the known nodes.
        grown: the graph with the new ones.
        seen: the edges that the run was trained on, ``(2, E)``.
        adjust: whether known nodes around the new ones move too.
    """
    start = _Start(positions, grown, seen)
    moving = around(grown.graph, start.moving) if adjust else start.moving
    return settle(task.loss_at, start.placed(0), moving, steps=STEPS, rate=RATE)


def grown_hierarchy(task: "Hierarchy", job: JobSettings, whole: Grown) -> "Hierarchy":
    """Return the task of a hierarchy on a graph with more nodes, with the score as training left it.

    Edges are read the same way, and none is held out.
    """
    objective = dc.replace(job.objective, ancestor=task.order.about["ancestor"], hold_out=0.0)
    found = type(task).from_graph(whole.graph, objective, ready_for(job), seed=job.seed)
    found.score.load_state_dict(task.score.state_dict())
    found.score.requires_grad_(False)
    return found


def grown_links(decoder: "LinkDecoder", seen: Tensor, whole: Grown) -> "LinkPrediction":
    """Return the task of link prediction on a graph with more nodes, all of whose added edges are known.

    Args:
        decoder: as training left it; a copy of it counts the degrees in all edges below.
        seen: the edges that the run was trained on, ``(2, E)``.
        whole: the graph.
    """
    from gyroformer.data.link_split import LinkSplit
    from gyroformer.tasks.link import LinkPrediction

    nodes = int(whole.graph.num_nodes or 0)
    edges = (directed_edges if whole.directed else undirected_edges)(
        torch.cat((seen.cpu(), whole.edges), 1), nodes
    )
    none = dict.fromkeys(("val", "test", "val_non", "test_non"), edges[:, :0])
    split = LinkSplit(nodes=nodes, seed=0, train=edges, directed=whole.directed, **none)
    data = split.training_graph(whole.graph)
    if "edge_weight" in data:
        data.edge_weight = relative_weights(data)
    return LinkPrediction(data, split, copy.deepcopy(decoder))


def _crowd(positions: StereographicPositions, neighbours: Neighbours) -> Tensor:
    """Return for each node the logarithm of the sum of exp(-d²) over all nodes that are not its neighbours."""
    nodes = len(positions)
    columns, scale = None, 1.0
    if nodes > CROWD_NODES:
        generator = torch.Generator().manual_seed(0)
        columns = torch.randperm(nodes, generator=generator)[:CROWD_NODES].sort().values
        scale = nodes / CROWD_NODES
    sums = positions.log_partition(neighbours, columns=columns, scale=scale).expm1()
    return sums.clamp(min=torch.finfo(sums.dtype).tiny).log()


def restore_with(
    path: str | Path,
    added: "str | Path | Data",
    *,
    features: str | None = None,
    reading: Mapping[str, Any] | None = None,
    adjust: bool = False,
) -> Restored:
    """Return a finished run that knows more nodes than it was trained on.

    Args:
        path: the run folder.
        added: a file of edges, or a graph: the new nodes with their edges, to known nodes and to each other.
        features: a file of features of the new nodes, for a model that takes features.
        reading: how the file of edges is to be read: arguments of :func:`gyroformer.load`.
        adjust: whether known nodes around the new ones may move.
    """
    run = restore(path)
    directed = run.hierarchy is not None or run.job.graph.directed
    more = load(added, directed=directed, **(reading or {})) if isinstance(added, (str, Path)) else added
    whole = grown(run.run.graph, more, directed=directed, adjust=adjust)
    if run.model.options.in_features:
        if adjust:
            raise UsageError(
                f"--adjust has no effect on {path}: its model takes features and says itself where all nodes are"
            )
        return _by_features(run, whole, features, path)
    if features is not None:
        raise UsageError(
            "--features: the model of this run takes no features; new nodes are placed by their edges"
        )
    if run.model.classes is not None:
        raise UsageError(
            f"{path}: a classify run without node features cannot label new nodes: train one with features, or on the "
            "whole graph"
        )
    found = dc.replace(
        run,
        data=whole.graph,
        joined=joined_by(run.job, whole.graph.edge_index, len(whole.graph.ids)),
        same=False,
        added=len(whole.new_ids),
    )
    return _placed_run(run, found, whole, adjust)


def check_ranked_by_distance(job: JobSettings) -> None:
    """Raise if the neighbours of a run of ``embed`` are not its nearest nodes."""
    if job.objective.score == "dot":
        raise UsageError(OTHER_SCORE)


def _placed_run(run: Restored, found: Restored, whole: Grown, adjust: bool) -> Restored:
    """Return the run on the whole graph with all nodes at their places."""
    positions, seen = run.positions(), run.data.edge_index
    if run.hierarchy is not None:
        hierarchy = grown_hierarchy(run.hierarchy, run.job, whole)
        where = placed_by(hierarchy, positions, whole, seen, adjust=adjust)
        found = dc.replace(found, hierarchy=hierarchy)
    elif run.decoder is not None:
        links = grown_links(run.decoder, seen, whole)
        # without directions an order of distances says more than the loss does, where known nodes cannot give way
        by_order = not (adjust or whole.directed)
        where = (
            placed(positions, whole, seen)
            if by_order
            else placed_by(links, positions, whole, seen, adjust=adjust)
        )
        found = dc.replace(found, decoder=links.decoder)
    else:
        check_ranked_by_distance(run.job)
        where = placed(positions, whole, seen, adjust=adjust)
    return dc.replace(found, placed=where, moved=moved_nodes(positions, where))


def moved_nodes(before: Positions, after: StereographicPositions) -> int:
    """Return how many of the nodes that had a place have another."""
    assert isinstance(before, StereographicPositions)
    changed = (after.sine[: len(before)] != before.sine).flatten(1).any(1)
    return int(changed.sum())


def _by_features(run: Restored, whole: Grown, features: str | None, path: str | Path) -> Restored:
    """Return the run on the whole graph, with the features of the new nodes from a file."""
    if features is None:
        raise UsageError(
            f"{path}: its model takes node features: give those of the new nodes with --features FILE"
        )
    file = existing_file(features)
    names, rows = read_features(file)
    if names is None:
        raise DataError(f"{file}: has no ids: the first column must name the nodes")
    x = run.run.graph.x
    if rows.shape[1] != x.size(1):
        raise DataError(
            f"{file}: has {rows.shape[1]} feature columns, the run's graph has {x.size(1)}: give the same"
        )
    index = {name: row for row, name in enumerate(names)}
    lacking = [name for name in whole.new_ids if str(name) not in index]
    if lacking:
        raise DataError(f"{file}: no row for the new node {lacking[0]!r} ({len(lacking)} have none)")
    new = torch.from_numpy(rows[[index[str(name)] for name in whole.new_ids]]).to(x.dtype)
    graph = whole.graph
    graph.x = torch.cat((x, new))
    return dc.replace(restore(path, graph), added=len(whole.new_ids))
