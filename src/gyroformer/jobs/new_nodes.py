"""Nodes that were not there when a run was trained, added by their edges.

A model that takes node features is asked about the graph with the new nodes. One that learned a vector for each node
has none for a new one: the new node is placed by its edges (:mod:`gyroformer.ops.placing`). Nothing known moves, but
for nodes that had no edge in the run's graph, of which the run could not know where they belong.
"""

import copy
import dataclasses as dc
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gyroformer.data.load import load
from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.adjacency import simple_adjacency, upper_edges
from gyroformer.graphs.build import graph_from_edges
from gyroformer.graphs.reading.attributes import read_features
from gyroformer.graphs.reading.read import existing_file
from gyroformer.jobs.restore import Restored, restore
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.placing import place_nodes, rounds
from gyroformer.ops.positions import Positions, StereographicPositions

if TYPE_CHECKING:
    from torch_geometric.data import Data

_log = logging.getLogger(__name__)

#: what is said of a run in whose space nearness is not what counts
NO_HIERARCHY = "new nodes cannot be placed in a hierarchy yet: train it on the whole graph"
#: the same of a run whose edges lead one way
NO_DIRECTION = "new nodes cannot be added to a directed run yet: train it on the whole graph"
#: ids that an error names
NAMED = 3
#: nodes up to which all pairs say how crowded a place is; beyond, so many drawn ones stand for all
CROWD_NODES = 8192


@dc.dataclass(frozen=True)
class Grown:
    """A graph with more nodes.

    Attributes:
        graph: all nodes, the known ones first and in their order, with all edges; features are not set.
        known: number of known nodes.
        edges: the added edges, both directions, ``(2, E)``.
    """

    graph: "Data"
    known: int
    edges: Tensor

    @property
    def new_ids(self) -> list[Any]:
        """The ids of the new nodes."""
        return list(self.graph.ids[self.known :])


def grown(graph: "Data", added: "Data") -> Grown:
    """Return ``graph`` with the nodes and edges of another; ids are compared as text.

    Raises:
        UsageError: there is no new node.
        DataError: a new node has no path to a known one.
    """
    index = {str(name): number for number, name in enumerate(graph.ids)}
    known = len(index)
    new = [name for name in added.ids if str(name) not in index]
    if not new:
        raise UsageError(
            f"all {len(added.ids)} nodes that are to be added are known already: name new ones, or give the whole "
            "graph in the place of additions"
        )
    index |= {str(name): known + number for number, name in enumerate(new)}
    moved = torch.tensor([index[str(name)] for name in added.ids], dtype=torch.int64)
    edges = moved[added.edge_index.cpu()]
    edges = torch.cat((edges, edges.flip(0)), 1).unique(dim=1)
    both = torch.cat((graph.edge_index.cpu(), edges), 1).numpy()
    weight = None
    if "edge_weight" in graph:  # an added edge counts as much as the others do on average
        usual = graph.edge_weight.mean().expand(edges.size(1))
        weight = torch.cat((graph.edge_weight, usual)).cpu().numpy()
    whole = graph_from_edges(both[0], both[1], num_nodes=len(index), ids=[*graph.ids, *new], weight=weight)
    _check_paths(edges, known, whole.ids)
    inside = int((edges < known).all(0).sum()) // 2
    if inside:
        _log.warning("%d of the added edges are between known nodes, which stay where they are", inside)
    if "edge_weight" in added:
        _log.warning("weights of added edges are not used: each counts alike")
    return Grown(whole, known, edges)


def _check_paths(edges: Tensor, known: int, ids: list[Any]) -> None:
    placed = torch.arange(len(ids)) < known
    new = edges[:, edges[0] >= known]
    for ready in rounds(placed.clone(), *new):
        placed[ready] = True
    lost = (~placed).nonzero().flatten().tolist()
    if lost:
        names = ", ".join(repr(ids[node]) for node in lost[:NAMED]) + (", …" if len(lost) > NAMED else "")
        raise DataError(
            f"{len(lost)} new nodes have no edge or path to a known node, so that nothing says where they belong "
            f"({names}): add an edge for each, or leave them out"
        )


@torch.no_grad()
def placed(positions: Positions, grown: Grown, seen: Tensor) -> StereographicPositions:
    """Return where all nodes are.

    Args:
        positions: of the known nodes.
        grown: the graph with the new ones.
        seen: the edges that the run was trained on, ``(2, E)``.
    """
    if not isinstance(positions, StereographicPositions):
        raise UsageError(
            "new nodes can be placed in products of hyperbolic, flat and spherical spaces only, and this model has "
            "another: train it on the whole graph"
        )
    more, neighbours = len(grown.new_ids), Neighbours.of(seen.cpu(), grown.known)
    crowd = _crowd(positions, neighbours)
    crowd = torch.cat((crowd, crowd.median().expand(more)))  # a new node counts as a usual one
    sine = torch.cat((positions.sine, positions.sine.new_zeros(more, *positions.sine.shape[1:])))
    cosine = torch.cat((positions.cosine, positions.cosine.new_ones(more, *positions.cosine.shape[1:])))
    found = StereographicPositions(sine.detach(), cosine.detach(), positions.k.detach())
    named = torch.zeros(len(found), dtype=torch.bool)
    named[grown.edges.flatten()] = True
    settled = torch.ones(len(found), dtype=torch.bool)
    settled[grown.known :] = False
    # no edge said where they belong: they are placed like new ones
    settled[: grown.known] = (neighbours.degree > 0) | ~named[: grown.known]
    if not bool((settled & named).any()):
        raise DataError(
            "the added edges lead to nodes without any edge of their own only: nothing says where they are"
        )
    edges = grown.edges[:, ~settled[grown.edges[0]]]
    for ready in rounds(settled.clone(), *edges):
        mine = edges[:, torch.isin(edges[0], ready)]
        found = place_nodes(found, ready, mine[0], mine[1], settled, crowd)
        settled[ready] = True
    return found


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
) -> Restored:
    """Return a finished run that knows more nodes than it was trained on.

    Args:
        path: the run folder.
        added: a file of edges, or a graph: the new nodes with their edges, to known nodes and to each other.
        features: a file of features of the new nodes, for a model that takes features.
        reading: how the file of edges is to be read: arguments of :func:`gyroformer.load`.
    """
    run = restore(path)
    if run.hierarchy is not None:
        raise UsageError(f"{path}: {NO_HIERARCHY}")
    if run.job.graph.directed:
        raise UsageError(f"{path}: {NO_DIRECTION}")
    more = load(added, **(reading or {})) if isinstance(added, (str, Path)) else added
    whole = grown(run.run.graph, more)
    if run.model.options.in_features:
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
    joined = simple_adjacency(whole.graph.edge_index, len(whole.graph.ids))
    decoder = run.decoder
    if decoder is not None:  # counts the degrees of the run's training edges and of those that were added
        all_edges = torch.cat((run.data.edge_index.cpu(), whole.edges), 1)
        upper = upper_edges(simple_adjacency(all_edges, len(whole.graph.ids)))
        decoder = copy.deepcopy(decoder).know(torch.from_numpy(np.stack(upper)), len(whole.graph.ids))
    return dc.replace(
        run,
        data=whole.graph,
        joined=joined,
        decoder=decoder,
        same=False,
        placed=placed(run.positions(), whole, run.data.edge_index),
        added=len(whole.new_ids),
    )


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
