"""A division of a graph's edges into those that a model sees and those it has to find."""

import dataclasses as dc
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gyroformer.data.split import check_draw, parts_sha256
from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.non_edges import NonEdges, PairNumbers, directed_edges, undirected_edges

if TYPE_CHECKING:
    from torch_geometric.data import Data

PARTS = ("train", "val", "test", "val_non", "test_non")
#: what a graph may carry into training beside its edges; anything else may have been computed from all edges
CARRIED = ("x", "y", "ids", "name", "label_names", "summary")
#: attributes of edges, of which those of training edges are carried
EDGE_VALUES = ("edge_weight", "edge_attr")


@dc.dataclass(frozen=True, kw_only=True, eq=False)
class LinkSplit:
    """Which edges are learned from, chosen on and tested on, with as many non-edges for the latter two.

    Every part is ``(2, M)``, with ``u < v`` unless the graph is directed.

    Attributes:
        nodes: number of nodes of the graph.
        seed: seed of the draw.
        directed: whether a pair leads from its first node to its second.
        train: edges that the model sees, sorted.
        val: edges to choose by.
        test: edges to test on.
        val_non: pairs that are no edge of the whole graph, to choose by.
        test_non: others, to test on.
    """

    nodes: int
    seed: int
    train: Tensor
    val: Tensor
    test: Tensor
    val_non: Tensor
    test_non: Tensor
    directed: bool = False

    @property
    def numbers(self) -> PairNumbers:
        """The numbers of the pairs."""
        return PairNumbers(self.nodes, self.directed)

    @property
    def sha256(self) -> str:
        """Checksum of all parts, in hexadecimal; the order of the pairs of a part does not matter."""
        parts = {part: self.numbers.of(getattr(self, part)).sort().values for part in PARTS}
        directed = " directed" if self.directed else ""
        return parts_sha256(f"gyroformer link split 1 {self.nodes}{directed}", parts)

    def training_graph(self, data: "Data") -> "Data":
        """Return the graph that has only the training edges.

        Beside them it carries node features, labels and ids. Whatever else ``data`` holds (eigenvectors, tokens) may
        come from all edges, and is left out. Edges keep their order, direction, weights and features.
        """
        from gyroformer.graphs.pyg import Data

        edge_index = data.edge_index
        train = self.train.to(edge_index.device)
        seen = torch.isin(self.numbers.of(edge_index), self.numbers.of(train)) & (
            edge_index[0] != edge_index[1]
        )
        kept: dict[str, Any] = {key: data[key] for key in CARRIED if key in data}
        kept |= {key: data[key][seen] for key in EDGE_VALUES if key in data}
        return Data(edge_index=edge_index[:, seen], num_nodes=self.nodes, **kept)

    def about(self) -> dict[str, Any]:
        """Return the seed, the sizes and the checksum, for ``results.json``."""
        sizes = {part: getattr(self, part).size(1) for part in PARTS}
        about = {"name": "edges", "seed": self.seed, "index": None, "directed": self.directed}
        return {**about, **sizes, "sha256": self.sha256, "leaks": 0}


def draw_link_split(
    data: "Data",
    *,
    val_fraction: float = 0.05,
    test_fraction: float = 0.10,
    seed: int = 0,
    directed: bool = False,
) -> LinkSplit:
    """Draw a division of the edges of ``data``.

    The draw has a generator of its own: it depends on the graph and the seed alone and disturbs no other.

    Args:
        data: a graph; repetitions and self-loops do not matter.
        val_fraction: fraction of the edges to choose by, at least one edge.
        test_fraction: fraction of the edges to test on, at least one edge.
        seed: which draw.
        directed: whether the direction of an edge matters.

    Raises:
        DataError: the graph has too few edges, or too few non-edges, for such parts.
    """
    if not (val_fraction > 0 and test_fraction > 0 and val_fraction + test_fraction < 1):
        raise UsageError(
            f"the fractions held out must be positive and add up to less than 1, got {val_fraction} and {test_fraction}"
        )
    check_draw("seed", seed)
    nodes = int(data.num_nodes or 0)
    edges = (directed_edges if directed else undirected_edges)(data.edge_index, nodes)
    count = edges.size(1)
    val, test = (max(1, int(fraction * count + 0.5)) for fraction in (val_fraction, test_fraction))
    if count - val - test < 1:
        raise DataError(
            f"the graph has {count} edges: too few to hold out {val} for validation and {test} for testing; "
            "use a larger graph"
        )
    non_edges = NonEdges(edges, nodes, directed=directed)
    if non_edges.count < val + test:
        raise DataError(
            f"the graph has {non_edges.count} pairs of nodes without an edge, {val + test} are needed beside the "
            f"held-out edges: hold out smaller fractions (now {val_fraction} and {test_fraction})"
        )
    stream = np.random.Generator(np.random.PCG64(seed))
    order = torch.from_numpy(stream.permutation(count))
    others = non_edges.at(torch.from_numpy(stream.choice(non_edges.count, val + test, replace=False)))
    return LinkSplit(
        nodes=nodes,
        seed=seed,
        train=edges[:, order[val + test :].sort().values],
        val=edges[:, order[:val]],
        test=edges[:, order[val : val + test]],
        val_non=others[:, :val],
        test_non=others[:, val:],
        directed=directed,
    )
