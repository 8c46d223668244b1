"""Search every model's settings for table 2, one `gyroformer tune` after the other; searches that are done are skipped.

python scripts/search_table2.py [--datasets texas,cora] [--models fpst,gcn] [--trials 12] [--workers 2]

All models get the same base recipe, splits, epochs, number of trials and runs a trial. The winners are the recipes
``src/gyroformer/recipes/classify/DATASET/MODEL.toml``, which ``gyroformer reproduce table2`` and ``classify`` use.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from gyroformer.models import MODELS
from gyroformer.paper.tables import TABLES

RECIPES = Path(__file__).parents[1] / "src" / "gyroformer" / "recipes" / "classify"
#: runs of each trial: the mean over several draws where a validation part has a few dozen nodes
SEEDS = {"texas": 3, "cornell": 3, "wisconsin": 3}
#: epochs where the base recipe's do not suffice; the same for every model
EPOCHS = {"airport": 800}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default=",".join(TABLES["table2"].datasets))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    for dataset in asked.datasets.split(","):
        for model in asked.models.split(","):
            path = RECIPES / dataset / f"{model}.toml"
            if not path.exists():
                search(dataset, model, path, asked.trials, asked.workers)


def search(dataset: str, model: str, path: Path, trials: int, workers: int) -> None:
    words = ["tune", "classify", dataset, "--model", model, "--trials", str(trials)]
    words += ["--seeds", str(SEEDS.get(dataset, 1)), "--recipe", "networks"]
    words += ["--fix", f"split={TABLES['table2'].splits[dataset]}"]
    if dataset in EPOCHS:
        words += ["--fix", f"epochs={EPOCHS[dataset]}"]
    print(" ".join(["gyroformer", *words]), flush=True)
    more = ["--workers", str(workers), "--threads", "1", "--write", str(path)]
    subprocess.run([sys.executable, "-m", "gyroformer", *words, *more], check=False)


if __name__ == "__main__":
    main()
