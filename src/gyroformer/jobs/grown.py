"""A graph with more nodes than a run was trained on, added by their edges."""

import dataclasses as dc
import logging
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.build import graph_from_edges
from gyroformer.ops.placing import rounds

if TYPE_CHECKING:
    from torch_geometric.data import Data

_log = logging.getLogger(__name__)

#: ids that an error names
NAMED = 3


@dc.dataclass(frozen=True)
class Grown:
    """A graph with more nodes.

    Attributes:
        graph: all nodes, the known ones first and in their order, with all edges; features are not set.
        known: number of known nodes.
        edges: the added edges, ``(2, E)``: both directions, or as they were given if ``directed``.
        directed: whether edges lead from their first node to their second.
    """

    graph: "Data"
    known: int
    edges: Tensor
    directed: bool = False

    @property
    def both(self) -> Tensor:
        """The added edges in both directions, ``(2, 2E)``."""
        return torch.cat((self.edges, self.edges.flip(0)), 1).unique(dim=1)

    @property
    def new(self) -> Tensor:
        """The indices of the new nodes."""
        return torch.arange(self.known, int(self.graph.num_nodes or 0))

    @property
    def new_ids(self) -> list[Any]:
        """The ids of the new nodes."""
        return list(self.graph.ids[self.known :])


def grown(graph: "Data", added: "Data", *, directed: bool = False, adjust: bool = False) -> Grown:
    """Return ``graph`` with the nodes and edges of another; ids are compared as text.

    Args:
        graph: the known nodes.
        added: new nodes with their edges.
        directed: whether edges keep their direction.
        adjust: whether known nodes may move: edges between them then count.

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
    if not directed:
        edges = torch.cat((edges, edges.flip(0)), 1).unique(dim=1)
    both = torch.cat((graph.edge_index.cpu(), edges), 1).numpy()
    weight = None
    if "edge_weight" in graph:  # an added edge counts as much as the others do on average
        usual = graph.edge_weight.mean().expand(edges.size(1))
        weight = torch.cat((graph.edge_weight, usual)).cpu().numpy()
    merged = graph_from_edges(
        *both, num_nodes=len(index), ids=[*graph.ids, *new], weight=weight, directed=directed
    )
    whole = Grown(merged, known, edges, directed)
    _check_paths(whole.both, known, whole.graph.ids)
    inside = int((whole.both < known).all(0).sum()) // 2
    if inside and not adjust:
        _log.warning("%d of the added edges are between known nodes, which stay where they are", inside)
    if "edge_weight" in added:
        _log.warning("weights of added edges are not used: each counts alike")
    return whole


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
