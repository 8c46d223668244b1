"""Search every model's settings for a table, one `gyroformer tune` after the other; searches that are done are skipped.

python scripts/search_recipes.py [table2|links] [--datasets texas,cora] [--models fpst,gcn] [--trials N] [--workers 2]

On a column all models get the same base recipe, splits, epochs, number of trials and runs a trial. The winners are
the recipes ``src/gyroformer/recipes/TASK/DATASET/MODEL.toml``, for a data set's second column (Airport on the paper's
own split) ``…/DATASET/SPLIT/MODEL.toml``, which ``gyroformer reproduce`` and the task itself use.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from gyroformer.models import get_model
from gyroformer.paper.table import Column, Table
from gyroformer.paper.tables import TABLES

RECIPES = Path(__file__).parents[1] / "src" / "gyroformer" / "recipes"
#: runs of each trial: several draws where validation parts are small, or where one cannot tell trials apart
SEEDS = {
    "table2": {"texas": 3, "cornell": 3, "wisconsin": 3, "airport": 3, "airport (legacy)": 3, "citeseer": 3},
    "links": {"cora": 2, "airport": 2},
}
#: epochs where the base recipe's do not suffice; the same for every model
EPOCHS = {"airport": 800}
#: settings tried for each model
TRIALS = 24


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", nargs="?", choices=SEEDS, default="table2")
    parser.add_argument("--datasets", help="with commas between (default: all)")
    parser.add_argument("--models", help="with commas between (default: all)")
    parser.add_argument("--trials", type=int, default=TRIALS, help="of each search")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--dry-run", action="store_true", help="print the searches that are left, and run none"
    )
    asked = parser.parse_args()
    table = TABLES[asked.table]
    columns = {column.name: column for column in table.columns}
    variants = {variant.name: variant for variant in table.variants}
    datasets = asked.datasets.split(",") if asked.datasets else [*columns]
    models = asked.models.split(",") if asked.models else [*variants]
    for given, known in ((datasets, columns), (models, variants)):
        for name in given:
            if name not in known:
                parser.error(f"nothing in {table.name} is called {name!r} (known: {', '.join(known)})")
    for dataset in datasets:
        for model in models:
            path = recipe_file(table, columns[dataset], model)
            if path.exists() or not variants[model].is_for(columns[dataset]):
                continue
            words = search_of(table, columns[dataset], model, asked.trials)
            print(" ".join(["gyroformer", *words]), flush=True)
            if not asked.dry_run:
                more = ["--workers", str(asked.workers), "--threads", "1", "--write", str(path)]
                subprocess.run([sys.executable, "-m", "gyroformer", *words, *more], check=False)


def recipe_file(table: Table, column: Column, model: str) -> Path:
    """Return the recipe that a search is to write."""
    folder = RECIPES / table.task / column.dataset
    # a mark in a column's name says that its data set has another column
    return (folder if column.name == column.dataset else folder / str(column.split)) / f"{model}.toml"


def search_of(table: Table, column: Column, model: str, trials: int) -> list[str]:
    """Return the words of the command that searches a model's settings for a column."""
    words = ["tune", table.task, column.dataset, "--model", model, "--trials", str(trials)]
    words += ["--seeds", str(SEEDS[table.name].get(column.name, 1)), "--recipe", "networks"]
    if column.split is not None:
        words += ["--fix", f"split={column.split}"]
    # the paper's Transformer has edge tokens, without them is an ablation; of links it says nothing
    if table.name == "table2" and get_model(model).tokens:
        words += ["--fix", "edge-tokens=undirected"]
    if column.dataset in EPOCHS:
        words += ["--fix", f"epochs={EPOCHS[column.dataset]}"]
    return words


if __name__ == "__main__":
    main()
