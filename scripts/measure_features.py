"""Time a training step on features that are nearly all zero, as sparse rows and as a dense table: results/features.csv.

python scripts/measure_features.py [--graph citeseer] [--models fpst,mlp] [--rounds 9] [--out FILE]

One row is a model with its usual options, forward and backward with dropout. ``sparse_ms`` and ``dense_ms`` are the
least processor times of one thread, the two in turns; ``difference`` is the largest difference of class scores without
dropout, relative to the largest score.
"""

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from result_file import write_rows

from gyroformer.__main__ import LARGE_PAGES

os.environ.setdefault(LARGE_PAGES, "1")  # as the command does, before torch is imported

if TYPE_CHECKING:
    from torch_geometric.data import Data

TARGET = Path(__file__).parents[1] / "results" / "features.csv"


def row_of(name: str, data: "Data", classes: int, rounds: int) -> dict[str, Any]:
    """Measure one model."""
    import torch

    import gyroformer as gf
    from gyroformer.nn import sparse_features

    torch.manual_seed(0)
    model = gf.MODELS[name].make(data.x.shape[1], classes=classes)
    model.prepare(data)
    sizes = {"sparse": sparse_features.LEAST, "dense": data.x.numel() + 1}
    scores, seconds = {}, dict[str, list[float]]()
    for turn in range(rounds):
        for form, least in sizes.items():
            sparse_features.LEAST = least
            if turn == 0:
                scores[form] = model.eval()(data).detach()
            model.train().zero_grad()
            begun = time.process_time()
            model(data).square().mean().backward()
            seconds.setdefault(form, []).append(time.process_time() - begun)
    sparse_features.LEAST = sizes["sparse"]
    apart = (scores["sparse"] - scores["dense"]).abs().max() / scores["dense"].abs().max()
    least_ms = {f"{form}_ms": f"{1e3 * min(values):.1f}" for form, values in seconds.items()}
    return {"model": name, **least_ms, "difference": f"{apart:.0e}"}


def main() -> None:
    import torch

    import gyroformer as gf

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", default="citeseer")
    parser.add_argument("--models", default=",".join(name for name in gf.MODELS if name != "points"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, default=TARGET)
    given = parser.parse_args()
    torch.set_num_threads(1)
    data = gf.load(given.graph)
    about = {
        "graph": given.graph,
        "nodes": data.num_nodes,
        "features": data.x.shape[1],
        "filled_percent": f"{100 * float((data.x != 0).double().mean()):.2f}",
    }
    rows = []
    for name in given.models.split(","):
        rows.append(about | row_of(name, data, int(data.y.max()) + 1, given.rounds))
        print(rows[-1], flush=True)
    write_rows(given.out, rows)


if __name__ == "__main__":
    main()
