"""Run jobs over graphs, models and seeds with their recipes, and write every run as a row of a CSV file.

A run that is finished is not run again, so the command continues where it was stopped; rows of other graphs,
models and seeds stay in the file:

    python scripts/run_table.py classify --graphs cora texas --models fpst tokengt --seeds 10 --csv results/classify.csv
"""

import argparse
import csv
import io
import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path

import torch

from gyroformer.durable import write_durably
from gyroformer.errors import GyroformerError
from gyroformer.jobs.seeds import run_seeds
from gyroformer.models import MODELS
from gyroformer.runs.spread import interval
from gyroformer.settings import make_job

#: what a row says of a run, beside the figures of its task
COLUMNS = (
    *("graph", "model", "seed", "recipe", "parameters", "epochs", "best_epoch", "seconds"),
    *("rate_lowered", "curvatures", "split"),
)
FIGURES = {
    "embed": ("map",),
    "classify": ("test_f1", "test_macro_f1", "val_f1", "val_loss"),
    "link": ("test_auc", "test_ap", "val_auc"),
}


def main() -> None:
    options = arguments()
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    torch.set_num_threads(options.threads)
    rows, failed = [], []
    for graph in options.graphs:
        for model in options.models:
            try:
                rows += one(options, graph, model)
            except GyroformerError as error:
                failed.append(f"{graph} {model}: {error}")
                print(failed[-1], file=sys.stderr, flush=True)
            if rows:
                write(options.csv, options.task, rows)
    sys.exit(1 if failed else 0)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("task", choices=list(FIGURES))
    parser.add_argument("--graphs", nargs="+", required=True)
    parser.add_argument("--models", nargs="+", default=["fpst"], help="names, or 'all'")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, help="instead of the recipe's")
    parser.add_argument("--recipe", help="instead of the usual one")
    parser.add_argument("--split", help="instead of the recipe's, for classify")
    parser.add_argument("--negatives", type=int, help="sampled instead of all, for embed")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=Path, default=Path("runs/table"), help="folder of the runs")
    parser.add_argument("--csv", type=Path, required=True)
    options = parser.parse_args()
    if options.models == ["all"]:
        options.models = list(MODELS)
    return options


def one(options: argparse.Namespace, graph: str, model: str) -> list[dict[str, object]]:
    values = {"graph": {"source": graph}, "model": {"name": model}}
    parts = [options.task, graph, model]
    if options.epochs:
        values["training"] = {"epochs": options.epochs}
        parts.append(f"{options.epochs}-epochs")
    if options.split:
        values["objective"] = {"split": options.split}
        parts.append(options.split)
    if options.negatives:
        values["objective"] = {"negatives": options.negatives}
        parts.append(f"{options.negatives}-negatives")
    if options.recipe:
        parts.append(options.recipe)
    job = make_job(options.task, recipe=options.recipe, dataset=graph, **values)
    found = run_seeds(job, options.seeds, out=options.runs / "-".join(parts), resume=True)
    key = FIGURES[options.task][0]
    mean, half = interval([run[key] for run in found["runs"]])
    spread = "" if half is None else f" ± {half:.2f}"
    print(f"{graph} {model}: {key} {mean:.2f}{spread} over {len(found['runs'])} runs", flush=True)
    return found["runs"]


def write(path: Path, task: str, rows: list[dict[str, object]]) -> None:
    """Put the rows into the file, in the place of earlier rows of the same graph, model and seed."""
    names = (*COLUMNS[:3], *FIGURES[task], *COLUMNS[3:])
    table = {key(row): row for row in earlier(path)}
    for row in rows:
        cells = {name: cell(row.get(name)) for name in names}
        table[key(cells)] = cells
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.values())
    path.parent.mkdir(parents=True, exist_ok=True)
    write_durably(path, text.getvalue().encode())


def earlier(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def key(row: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in COLUMNS[:3])


def cell(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, dict):  # a split: its name, which one, and its sum
        which = next((f" {key} {value[key]}" for key in ("seed", "index") if value.get(key) is not None), "")
        return f"{value.get('name', '')}{which} {value['sha256'][:12]}".strip()
    if isinstance(value, list):
        rounded = [[round(k, 4) for k in layer] for layer in value]
        return json.dumps(rounded)
    return value


if __name__ == "__main__":
    main()
