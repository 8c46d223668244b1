"""Hide a tenth of a graph's nodes, train without them, place them by their edges: results/new_nodes.csv.

python scripts/measure_new_nodes.py [--graphs mammals,web-edu,power,enron] [--epochs 400] [--keep FOLDER]

Rows for one graph: the run trained on everything, the curved midpoint of the known neighbours, the placing of
gyroformer, and the same where known nodes around the new ones may move (``--adjust``). ``map_new`` is the mAP of the
hidden nodes: all nodes ordered by their distance from the hidden one, its neighbours among the known ones to come first
(its hidden neighbours are left out). ``map_neighbours`` is the other direction: that of the known nodes that have
hidden neighbours, which are to come first with all others. ``seconds`` is CPU time of one thread: of the training on
everything, or of the placing.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from result_file import write_rows
from torch_geometric.data import Data

import gyroformer as gf
from gyroformer.graphs.build import graph_from_edges
from gyroformer.jobs.grown import grown
from gyroformer.jobs.new_nodes import placed
from gyroformer.ops import placing
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.positions import StereographicPositions
from gyroformer.tasks.average_precision import mean_average_precision

TARGET = Path(__file__).parents[1] / "results" / "new_nodes.csv"
HIDDEN = 0.1
#: nodes that the other direction is taken over, at most
SEEN_NODES = 2_000
#: how hidden nodes get their places: arguments of ``placed``
WAYS: dict[str, dict[str, Any]] = {
    "midpoint": {"steps": 0, "spread": 0.0},
    "placed": {},
    "placed, known nodes adjusted": {"adjust": True},
}
#: a distance beyond all others
FAR = 1e30


class Hidden:
    """A graph with its last nodes hidden."""

    def __init__(self, name: str) -> None:
        graph = gf.load(name)
        nodes = int(graph.num_nodes)
        order = torch.from_numpy(np.random.default_rng(0).permutation(nodes))
        moved = torch.empty_like(order)
        moved[order] = torch.arange(nodes)
        edges = moved[graph.edge_index]
        self.name, self.nodes, self.known = name, nodes, nodes - int(HIDDEN * nodes)
        inside, hidden = (edges < self.known).all(0), (edges >= self.known).all(0)
        self.whole = graph_from_edges(*edges.numpy(), num_nodes=nodes)
        self.graph = graph_from_edges(*edges[:, inside].numpy(), num_nodes=self.known)
        added = edges[:, ~inside]
        reached = self._reached(added)
        kept = reached[added].all(0)
        # what the user adds: nodes with a path to a known one, by their ids
        ids = torch.cat((torch.arange(self.known), torch.arange(self.known, nodes)[reached[self.known :]]))
        number = torch.full((nodes,), -1)
        number[ids] = torch.arange(ids.numel())
        self.added = Data(edge_index=number[added[:, kept]], num_nodes=ids.numel(), ids=ids.tolist())
        self.scored = edges[:, ~hidden]
        self.between = edges[:, hidden]

    def _reached(self, added: torch.Tensor) -> torch.Tensor:
        reached = torch.arange(self.nodes) < self.known
        new = added[:, added[0] >= self.known]
        for ready in placing.rounds(reached.clone(), *new):
            reached[ready] = True
        return reached

    def map_new(self, positions: StereographicPositions) -> float:
        """Return the mAP of the hidden nodes, in percent."""
        neighbours = Neighbours.of(self.scored, self.nodes)
        apart = torch.zeros(self.nodes - self.known, self.nodes, dtype=torch.bool)
        apart[self.between[0] - self.known, self.between[1]] = True

        def rows(nodes: torch.Tensor) -> torch.Tensor:
            return positions.squared_dist_rows(nodes).masked_fill(apart[nodes - self.known], FAR)

        hidden = torch.arange(self.known, self.nodes)
        return 100 * mean_average_precision(rows, neighbours, nodes=hidden)

    def map_neighbours(self, positions: StereographicPositions) -> float:
        """Return the mAP of the known nodes that have hidden neighbours, in percent."""
        seen = self.scored[0][self.scored[1] >= self.known].unique()
        seen = seen[torch.randperm(seen.numel(), generator=torch.Generator().manual_seed(0))[:SEEN_NODES]]
        neighbours = Neighbours.of(self.whole.edge_index, self.nodes)
        return 100 * mean_average_precision(positions.squared_dist_rows, neighbours, nodes=seen)


def trained(graph: Data, epochs: int, folder: Path) -> tuple[gf.GraphEmbedder, float]:
    """Return an embedder and the CPU time of its training; one that is kept in ``folder`` is taken from there."""
    times = folder / "cpu_seconds.txt"
    if times.exists():
        return gf.GraphEmbedder.load(folder), float(times.read_text())
    began = time.process_time()
    embedder = gf.GraphEmbedder(epochs=epochs, random_state=0, training={"eval_every": epochs}).fit(graph)
    seconds = time.process_time() - began
    embedder.save(folder)
    times.write_text(str(seconds))
    return embedder, seconds


def in_order(positions: StereographicPositions, ids: list[int], nodes: int) -> StereographicPositions:
    """Return positions by node; a node without a place is at the origin."""
    index = torch.tensor(ids)
    sine = positions.sine.new_zeros(nodes, *positions.sine.shape[1:])
    cosine = positions.cosine.new_ones(nodes, *positions.cosine.shape[1:])
    sine[index], cosine[index] = positions.sine, positions.cosine
    return StereographicPositions(sine, cosine, positions.k)


def measured(name: str, epochs: int, folder: Path) -> list[dict[str, object]]:
    """Return the rows of one graph."""
    hidden = Hidden(name)
    whole, seconds = trained(hidden.whole, epochs, folder / f"{name}-whole")
    known, _ = trained(hidden.graph, epochs, folder / f"{name}-known")
    for adjust in (False, True):  # whatever is loaded at first use
        gf.GraphEmbedder(epochs=1, random_state=0).fit([(0, 1), (1, 2)]).add([(3, 0)], adjust=adjust)
    more = grown(known.graph_, hidden.added)
    rows = []
    for way in ("trained on everything", *WAYS):
        if way == "trained on everything":
            positions, spent = whole._positions, seconds
        else:
            began = time.process_time()
            found = placed(known._positions, more, known.graph_.edge_index, **WAYS[way])
            spent = time.process_time() - began
            positions = in_order(found, more.graph.ids, hidden.nodes)
        rows.append(
            {
                "graph": name,
                "nodes": hidden.nodes,
                "hidden": hidden.nodes - hidden.known,
                "epochs": epochs,
                "way": way,
                "map_new": round(hidden.map_new(positions), 2),
                "map_neighbours": round(hidden.map_neighbours(positions), 2),
                "seconds": round(spent, 2),
            }
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure and write."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--graphs", default="mammals,web-edu,power,enron")
    words.add_argument("--epochs", type=int, default=400)
    words.add_argument("--large-epochs", type=int, default=150, help="of graphs of more than 10,000 nodes")
    words.add_argument("--keep", type=Path, help="a folder for trained runs, to go on from")
    words.add_argument("--out", type=Path, default=TARGET)
    given = words.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in given.graphs.split(","):
            large = int(gf.load(name).num_nodes) > 10_000
            epochs = given.large_epochs if large else given.epochs
            rows += measured(name, epochs, given.keep or Path(folder))
            write_rows(given.out, rows)


if __name__ == "__main__":
    main()
