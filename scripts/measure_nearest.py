"""Measure the index of nearest nodes against comparing with all, and re-ranked flat vectors: results/nearest*.csv.

python scripts/measure_nearest.py index --csv results/nearest.csv
python scripts/measure_nearest.py rerank --csv results/nearest_rerank.csv

``index``: points are drawn, normal tangent vectors of length about ``SIZE`` in one space of curvature -1 or 0, for the
index does not see where points come from; ``same`` is 1 if both ways gave the same nodes. ``rerank``: nodes of trained
runs; the candidates are the largest inner products of exported flat vectors, and ``recall`` is the share of the 10
truly nearest nodes among the 10 nearest candidates by true distance. Seconds are CPU time of one thread.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from result_file import write_rows

import gyroformer as gf
from gyroformer.ops.flatten import flat_vectors
from gyroformer.ops.nearest import compared_with_all
from gyroformer.ops.nearest_index import NearestIndex
from gyroformer.ops.pairs import squared_dist_lists
from gyroformer.ops.positions import StereographicPositions

NODES, WIDTHS, CURVATURES, SIZE = (82_115, 300_000), (2, 5, 10, 16), (-1.0, 0.0), 1.0
#: nodes that are asked about, of the index and of the comparison with all
ASKED, COMPARED, COUNT = 2_000, 50, 10
GRAPHS, EPOCHS = ("web-edu", "power"), 150
FLAT, CANDIDATES, RERANKED = 32, (10, 50, 200), 1_000


def timed(rows: int, nodes: int, width: int, curvature: float) -> dict[str, object]:
    """Return queries a second both ways."""
    generator = torch.Generator().manual_seed(0)
    u = SIZE * torch.randn(nodes, 1, width, generator=generator) / width**0.5
    positions = StereographicPositions.from_tangent(u, torch.tensor([[curvature]]))
    asked = torch.randperm(nodes, generator=generator)[:rows]
    began = time.process_time()
    index = NearestIndex(positions.sine, positions.cosine, positions.k)
    built = time.process_time() - began
    began = time.process_time()
    found, _, unsure = index.query(asked, COUNT)
    if bool(unsure.any()):
        found[unsure] = compared_with_all(positions, asked[unsure], COUNT)[0]
    by_index = time.process_time() - began
    few = asked[:COMPARED]
    began = time.process_time()
    expected, _ = compared_with_all(positions, few, COUNT)
    by_all = time.process_time() - began
    return {
        "nodes": nodes,
        "width": width,
        "curvature": curvature,
        "points": "drawn",
        "queries": rows,
        "build_seconds": round(built, 2),
        "index_queries_per_second": round(rows / by_index, 1),
        "all_queries_per_second": round(COMPARED / by_all, 1),
        "left_to_all": round(float(unsure.double().mean()), 3),
        "same": int(torch.equal(found[:COMPARED], expected)),
    }


def measure_index(path: Path) -> None:
    """Write a row for each size, width and curvature."""
    rows: list[dict[str, object]] = []
    for nodes in NODES:
        for width in WIDTHS:
            for curvature in CURVATURES:
                # where nothing is passed over a query costs what a comparison does: fewer are enough
                asked = ASKED if width <= 5 else COMPARED
                rows.append(timed(asked, nodes, width, curvature))
                print(rows[-1], flush=True)
                write_rows(path, rows)


def measure_rerank(path: Path) -> None:
    """Write a row for each graph and number of candidates."""
    rows: list[dict[str, object]] = []
    for name in GRAPHS:
        graph = gf.load(name)
        embedder = gf.GraphEmbedder(epochs=EPOCHS, random_state=0, training={"eval_every": EPOCHS}).fit(graph)
        positions = embedder._positions
        nodes = len(positions)
        asked = torch.randperm(nodes, generator=torch.Generator().manual_seed(0))[:RERANKED]
        true = compared_with_all(positions, asked, COUNT)[0].numpy()
        flat = flat_vectors(positions, FLAT).float()
        # |x - y|² = |x|² + |y|² - 2 x·y: with the column -|y|²/2 the largest inner product is the nearest vector
        stored = torch.cat((flat, -0.5 * flat.square().sum(1, keepdim=True)), 1)
        query = torch.cat((flat[asked], torch.ones(len(asked), 1)), 1)
        scores = query @ stored.mT
        scores[torch.arange(len(asked)), asked] = -torch.inf
        for many in CANDIDATES:
            lists = scores.topk(many, 1).indices.sort(1).values
            far = squared_dist_lists(positions.sine, positions.cosine, positions.k, asked, lists)
            best = lists.gather(1, far.argsort(dim=1, stable=True)[:, :COUNT]).numpy()
            recall = np.mean(
                [len(set(a) & set(b)) / COUNT for a, b in zip(true.tolist(), best.tolist(), strict=True)]
            )
            rows.append(
                {
                    "graph": name,
                    "nodes": nodes,
                    "columns": FLAT + 1,
                    "candidates": many,
                    "recall_at_10": round(100 * float(recall), 2),
                }
            )
            print(rows[-1], flush=True)
        write_rows(path, rows)


def main() -> None:
    """Measure one of the two."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("what", choices=("index", "rerank"))
    words.add_argument("--csv", type=Path, required=True)
    given = words.parse_args()
    torch.set_num_threads(1)
    {"index": measure_index, "rerank": measure_rerank}[given.what](given.csv)


if __name__ == "__main__":
    main()
