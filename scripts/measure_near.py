"""Near negatives beside all pairs, and large graphs to the end: results/near.csv and results/large.csv.

python scripts/measure_near.py small [--graphs web-edu,power,facebook,bio-worm] [--seeds 3] [--near 48]
python scripts/measure_near.py large [--graphs enron,nouns] [--epochs 300] [--words "--dim 5 --model points"]

One row is one run of ``gyroformer embed`` in a process of its own. In ``small`` each near run stands beside the run
over all pairs with the same settings: one of Table 1 if it is there (``results/table1.csv``), else a new one. A run
that is finished is not run again; rows of other runs stay in the file. ``cpu_seconds`` and ``peak_gb`` are of the
process, and only of its last part if it was stopped in between.
"""

import argparse
import csv
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from result_file import write_rows

from gyroformer.tasks.embed_objective import NEAR

RESULTS = Path(__file__).parents[1] / "results"
COLUMNS = {
    "small": (
        *(
            "graph",
            "seed",
            "negatives",
            "near",
            "epochs",
            "nodes",
            "edges",
            "pairs_share",
            "map",
            "loss_error",
        ),
        *("seconds", "cpu_seconds", "peak_gb"),
    ),
    "large": (
        *("graph", "seed", "words", "epochs", "nodes", "edges", "pairs_share", "map", "map_interval"),
        *("hierarchy_map", "hierarchy_map_interval", "mean_rank", "direction", "loss_error", "curvatures"),
        *("seconds", "cpu_seconds", "peak_gb"),
    ),
}
#: what makes a row one of its own
KEYS = {
    "small": ("graph", "seed", "negatives", "near", "epochs"),
    "large": ("graph", "seed", "words", "epochs"),
}
HIERARCHIES = ("nouns", "mammals")


def run(words: Sequence[str], out: Path) -> dict[str, Any]:
    """Return the results of a run of ``gyroformer embed`` with what its process took."""
    measured = out / "process.json"
    if measured.exists():
        return json.loads(measured.read_text())
    command = [sys.executable, "-m", "gyroformer", "embed", *words, "--out", str(out), "--resume", "--json"]
    print(shlex.join(command), file=sys.stderr, flush=True)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"exit status {os.waitstatus_to_exitcode(status)}: {shlex.join(command)}")
    found = json.loads(said) | {
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_gb": round(usage.ru_maxrss / 1e6, 2),
    }
    measured.write_text(json.dumps(found))
    return found


def of_table1(path: Path, graph: str) -> dict[int, dict[str, Any]]:
    """Return by seed the runs over all pairs that Table 1 has of a graph, those of most epochs."""
    with path.open(newline="", encoding="utf-8") as file:
        found = [row for row in csv.DictReader(file) if (row["dataset"], row["variant"]) == (graph, "fpst")]
    if not found:
        sys.exit(
            f"{path} has no run of fpst on {graph}: gyroformer reproduce table1 --datasets {graph} makes them"
        )
    epochs = max(int(row["epochs"]) for row in found)
    return {
        int(row["seed"]): {"map": float(row["value"]), "seconds": float(row["seconds"]), "epochs": epochs}
        for row in found
        if int(row["epochs"]) == epochs
    }


def small(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Run near negatives over graphs and seeds, as long as the runs over all pairs of Table 1, and put both down."""
    rows: list[dict[str, Any]] = []
    for seed in range(given.first_seed, given.seeds):
        for graph in given.graphs.split(","):
            all_pairs = of_table1(given.table1, graph)
            epochs = given.epochs or next(iter(all_pairs.values()))["epochs"]
            words = [graph, "--negatives", "near", "--near", str(given.near)]
            words += ["--epochs", str(epochs), "--seed", str(seed), *shlex.split(given.words)]
            near = run(words, given.runs / f"{graph}-near-{given.near}-{epochs}-{seed}")
            about = {"graph": graph, "seed": seed}
            rows.append({**near, **about, "negatives": "near", "near": given.near})
            if seed in all_pairs and all_pairs[seed]["epochs"] == epochs:
                rows.append({**all_pairs[seed], **about, "negatives": "all"})
            write(given.out or RESULTS / "near.csv", "small", rows)
    return rows


def large(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Run large graphs with their default negatives."""
    rows: list[dict[str, Any]] = []
    for graph in given.graphs.split(","):
        kind = ["--hierarchy", "--closure"] if graph in HIERARCHIES else []
        words = [*kind, *shlex.split(given.words)]
        name = "-".join([Path(graph).stem, *(word.strip("-") for word in words), str(given.epochs)])
        command = [graph, *words, "--epochs", str(given.epochs), "--seed", str(given.first_seed)]
        found = run(command, given.runs / name)
        rows.append({**found, "graph": Path(graph).stem, "words": shlex.join(words)})
        write(given.out or RESULTS / "large.csv", "large", rows)
    return rows


def write(path: Path, kind: str, rows: list[dict[str, Any]]) -> None:
    """Put rows into the file, in the place of earlier ones of the same run."""
    table = {}
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            table = {tuple(row[name] for name in KEYS[kind]): row for row in csv.DictReader(file)}
    for row in rows:
        cells = {name: cell(row.get(name)) for name in COLUMNS[kind]}
        table[tuple(cells[name] for name in KEYS[kind])] = cells
    write_rows(path, list(table.values()))


def cell(value: object) -> str:
    """Return a value as it stands in the file."""
    if isinstance(value, float):
        return f"{value:.5g}" if abs(value) < 1e5 else f"{value:.0f}"
    return "" if value is None else json.dumps(value) if isinstance(value, list) else str(value)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("kind", choices=list(COLUMNS))
    parser.add_argument("--graphs", help="with commas between; a name or a file")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each small graph")
    parser.add_argument("--near", type=int, default=NEAR, help="nodes on a near list of the small graphs")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, help="of large graphs; small ones take those of Table 1")
    parser.add_argument("--table1", type=Path, default=RESULTS / "table1.csv", help="the runs over all pairs")
    parser.add_argument("--words", default="--threads 1", help="further words for gyroformer embed")
    parser.add_argument("--runs", type=Path, default=Path("runs/near"), help="folder of the runs")
    parser.add_argument("--out", type=Path, help="the file of rows, if not that of results/")
    given = parser.parse_args()
    given.graphs = (
        given.graphs or {"small": "web-edu,power,facebook,bio-worm", "large": "enron,nouns"}[given.kind]
    )
    {"small": small, "large": large}[given.kind](given)


if __name__ == "__main__":
    main()
