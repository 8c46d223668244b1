"""What another reading of "60/20/20" does to the figures of Actor and the web pages: results/class_split.csv.

python scripts/measure_class_split.py [--datasets actor] [--models fpst,mlp] [--seeds 10] [--out FILE]

Much published work trains on as many nodes of every class, 60 % of all nodes divided by the number of classes, and
leaves a fifth of all nodes for validation and the rest for the test. A class that is smaller than its share has then no
test node at all. One row is a run by the recipe of table 2; nothing is chosen on this split.
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from result_file import write_rows

TARGET = Path(__file__).parents[1] / "results" / "class_split.csv"


def main() -> None:
    import gyroformer as gf

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default="texas,cornell,wisconsin,actor")
    parser.add_argument("--models", default="fpst,mlp")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=TARGET)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for dataset in given.datasets.split(","):
        y = gf.load(dataset).y
        for model in given.models.split(","):
            for seed in range(given.seeds):
                split = by_class(y, seed)
                recipe = f"{dataset}/{model}"
                classifier = gf.NodeClassifier(model=model, recipe=recipe, split=split, random_state=seed)
                f1 = 100 * classifier.fit(dataset).score()
                rows.append(
                    {
                        "dataset": dataset,
                        "model": model,
                        "seed": seed,
                        "test_f1": f"{f1:.2f}",
                        **about(y, split),
                    }
                )
                print(rows[-1], flush=True)
        write_rows(given.out, rows)


def by_class(y: torch.Tensor, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the nodes to learn from, as many of every class as there are, to choose by, and to test on."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(y), generator=generator)
    share, held = round(0.6 * len(y) / (int(y.max()) + 1)), round(0.2 * len(y))
    train = torch.cat([order[y[order] == label][:share] for label in y.unique()])
    rest = order[~torch.isin(order, train)]
    return train, rest[:held], rest[held:]


def about(y: torch.Tensor, split: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> dict[str, Any]:
    """Return what there is to be told apart in a test, and how often guessing the largest class is right."""
    counts = y[split[2]].bincount(minlength=int(y.max()) + 1)
    largest = 100 * counts.max().item() / counts.sum().item()
    return {
        "classes": len(counts),
        "classes_tested": int((counts > 0).sum()),
        "test_nodes": int(counts.sum()),
        "largest_class": f"{largest:.2f}",
    }


if __name__ == "__main__":
    main()
