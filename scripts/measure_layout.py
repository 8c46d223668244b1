"""What a drawn tree is worth without any training: MAP over ancestors of the layout, in a curved and in a flat plane.

python scripts/measure_layout.py [--graphs mammals,nouns] [--nodes 500] [--csv results/layout.csv]

The layout is that of ``embed --hierarchy --start tree`` (``gyroformer.graphs.tree_layout``). The weight of the depth in
the score, and in the flat plane the size of the drawing too, are the best of those tried: nothing else is fitted. Each
row says how far float32 is from float64, in the curved plane a question of its own.
"""

import argparse
from pathlib import Path

import torch
from result_file import write_rows

from gyroformer.data.load import load
from gyroformer.ops.positions import StereographicPositions
from gyroformer.tasks.average_precision import precision_of
from gyroformer.tasks.embed import drawn_nodes
from gyroformer.tasks.embed_objective import EmbedObjective
from gyroformer.tasks.hierarchy import order_of
from gyroformer.tasks.scores import PairScore

RESULTS = Path(__file__).parents[1] / "results"
#: weights of the depth, by the radius of the layout
WEIGHTS = (0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0)
#: curvature and sizes of the drawing; in a curved plane the size is the curvature's
SPACES = {"curved": (-1.0, (1.0,)), "flat": (0.0, (0.25, 0.5, 1.0, 2.0, 4.0))}


def measured(order, curvature, size, weight, nodes, dtype):
    """Return MAP in percent, its interval and the mean rank of a layout."""
    vectors = torch.from_numpy(size / 2 * order.layout.coordinates()).to(dtype)[:, None]
    positions = StereographicPositions.from_tangent(vectors, torch.tensor([[curvature]], dtype=dtype))
    score = PairScore("depth").to(dtype)
    score.weigh_depth(weight * size * float(order.layout.radius.max()))
    with torch.no_grad():
        found = precision_of(lambda rows: score.costs(positions, rows), order.ancestors, nodes=nodes)
    return 100 * found.mean, found.interval_as("interval").get("interval"), found.rank


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", default="mammals,nouns")
    parser.add_argument("--nodes", type=int, default=500, help="drawn nodes that the mean is taken over")
    parser.add_argument("--csv", type=Path, default=RESULTS / "layout.csv")
    given = parser.parse_args()
    rows = []
    for name in given.graphs.split(","):
        graph = load(name, directed=True)
        objective = EmbedObjective(hierarchy=True, closure=True, start="tree")
        order = order_of(graph, objective, 0)
        nodes = drawn_nodes(int(graph.num_nodes), min(given.nodes, int(graph.num_nodes)), 0)
        for space, (curvature, sizes) in SPACES.items():
            tried = {
                (size, weight): measured(order, curvature, size, weight, nodes, torch.float64)
                for size in sizes
                for weight in WEIGHTS
            }
            best = max(tried, key=lambda key: tried[key][0])
            single = measured(order, curvature, *best, nodes, torch.float32)
            rows.append(
                {
                    **{"graph": name, "space": space, "size": best[0], "weight_by_radius": best[1]},
                    **{"map": round(tried[best][0], 2), "mean_rank": round(tried[best][2], 2)},
                    **{"map_float32": round(single[0], 2), "drawn_nodes": len(nodes)},
                    "radius": round(float(order.layout.radius.max()), 2),
                }
            )
            print(rows[-1], flush=True)
    write_rows(given.csv, rows)


if __name__ == "__main__":
    main()
