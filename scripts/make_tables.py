"""Rewrite the tables of the README and the pages of docs/ from the files in results/ and from the declared options.

python scripts/make_tables.py [--check]

A table, or several with their headings, stands between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``. ``--check``
changes nothing and fails if a page differs from what the results and the options give.
"""

import argparse
import csv
import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from gyroformer.cli.job_flags import RunOptions
from gyroformer.models import MODELS
from gyroformer.options import Option, options_of
from gyroformer.options.check import described
from gyroformer.options.constructor import shown
from gyroformer.options.features import FeatureOptions
from gyroformer.options.layers import CurvatureOptions
from gyroformer.options.models import NodeModelOptions, TokenOptions
from gyroformer.options.training import TrainOptions
from gyroformer.paper.costs import read_costs
from gyroformer.paper.rows import Rows, read_rows
from gyroformer.paper.summary import collected, differences
from gyroformer.paper.tables import SHOWN
from gyroformer.paper.tables import TABLES as PAPER_TABLES
from gyroformer.runs.spread import interval
from gyroformer.settings import GraphOptions, JobSettings
from gyroformer.tasks import TASKS
from gyroformer.testing.exactness import Cell, read_csv
from gyroformer.testing.regimes import REGIMES

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "RESULTS.md",
    "docs/geometry.md",
    "docs/graphs.md",
    "docs/structure.md",
    "docs/model.md",
    "docs/tasks.md",
    "docs/models.md",
    "docs/predict.md",
    "docs/options.md",
    "docs/report.md",
)


def cells(name: str, dtype: str) -> list[Cell]:
    return [cell for cell in read_csv(ROOT / "results" / f"exactness_{name}.csv") if cell.dtype == dtype]


def worst(some: list[Cell], what: str) -> str:
    # a NaN never wins: not finite samples are counted in a row of their own
    return f"{max(value for cell in some if (value := getattr(cell, what)) == value):.0e}"


def markdown(head: list[str], rows: list[list[str]], *, text: int = 1) -> str:
    """Return a table whose first ``text`` columns are words, the rest numbers."""
    lines = [head, ["---"] * text + ["---:"] * (len(head) - text), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def summary() -> str:
    """Return the README's table: what float32 users get."""
    sides = [cells(name, "float32") for name in ("gyroformer", "geoopt")]
    usual = [[cell for cell in side if cell.regime == "ordinary"] for side in sides]
    lines = {
        "value, ordinary radius": [worst(side, "value") for side in usual],
        "gradient in k, ordinary radius": [worst(side, "grad_k") for side in usual],
        "value, origin to edge": [worst(side, "value") for side in sides],
        "gradient in k, origin to edge": [worst(side, "grad_k") for side in sides],
        "cells whose gradient in k is off by over 1 %": [
            str(sum(not cell.grad_k <= 0.01 for cell in side)) for side in sides
        ],
        "cells with a wrong sign of it": [str(sum(cell.wrong_sign > 0 for cell in side)) for side in sides],
        "cells with NaN or Inf": [str(sum(cell.not_finite > 0 for cell in side)) for side in sides],
    }
    head = [f"largest relative error, float32, {len(sides[0])} cells", "gyroformer", "geoopt 0.5.1"]
    return markdown(head, [[name, *values] for name, values in lines.items()])


def exactness() -> str:
    """Return the page's table: largest errors by radius regime and dtype."""
    rows = []
    for regime in REGIMES:
        row = [regime]
        for dtype in ("float32", "float64"):
            for name in ("gyroformer", "geoopt"):
                some = [cell for cell in cells(name, dtype) if cell.regime == regime]
                row.append(" / ".join(worst(some, what) for what in ("value", "grad_x", "grad_k")))
        rows.append(row)
    head = ["value / ∂x / ∂k", "float32: gyroformer", "geoopt", "float64: gyroformer", "geoopt"]
    return markdown(head, rows)


def cost() -> str:
    """Return the page's table: what the wide dtype costs."""
    with (ROOT / "results" / "geometry_seconds.csv").open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    rows = []
    for name in dict.fromkeys(row["operation"] for row in found):
        ratios = [f"{float(row['ratio']):.1f}" for row in found if row["operation"] == name]
        rows.append([f"`{name}`", *ratios])
    head = ["seconds, gyroformer / geoopt", *(f"k = {k}" for k in dict.fromkeys(row["k"] for row in found))]
    return markdown(head, rows)


def speed() -> str:
    """Return the table of ratios that ``gyroformer bench`` measured."""
    found = json.loads((ROOT / "results" / "speed.json").read_text(encoding="utf-8"))
    sizes = {row["case"]: row for row in found["rows"]}
    rows = []
    for ratio in found["ratios"]:
        size = sizes[ratio["case"]]
        about = f"{size['tokens']:,} tokens, width {size['width']}, {ratio['pass']}"
        values = [value for key, value in ratio.items() if key not in ("case", "pass")]
        rows.append([ratio["case"], about, *("–" if value is None else f"{value:.2f}" for value in values)])
    head = ["case", "size", "ours/flat", "eager", "geoopt/ours", "eager", "memory ours/flat", "eager"]
    return markdown(head, rows)


#: what the paper prints for FPS-T and for TokenGT, in percent (its tables 1 and 2)
PAPER = {
    "embed": {
        "web-edu": (99.00, 89.56),
        "power": (99.18, 99.08),
        "facebook": (86.06, 84.62),
        "bio-worm": (97.90, 97.75),
    },
    "classify": {
        "texas": (89.19, 88.65),
        "cornell": (72.16, 71.62),
        "wisconsin": (83.60, 83.00),
        "actor": (39.61, 36.59),
        "airport": (96.01, 95.90),
        "citeseer": (70.03, 71.23),
        "pubmed": (78.52, 78.93),
        "cora": (82.32, 81.42),
    },
}


def runs(name: str) -> list[dict[str, str]]:
    with (ROOT / "results" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def spread(some: list[dict[str, str]], metric: str) -> str:
    """Return a metric's mean over runs with half its 95 % interval."""
    values = [float(row[metric]) for row in some]
    if not values:
        return "–"
    mean, half = interval(values)
    return f"{mean:.2f}" + ("" if half is None else f" ± {half:.2f}")


def compared(task: str, file: str, metric: str) -> str:
    """Return the table of FPS-T and its flat twin on the paper's graphs, with what the paper prints."""
    found, rows = runs(file), []
    for graph, paper in PAPER[task].items():
        sides = [
            [row for row in found if row["graph"] == graph and row["model"] == m] for m in ("fpst", "tokengt")
        ]
        if not any(sides):
            continue
        split = (sides[0] or sides[1])[0].get("split") or ""
        curved = ", ".join(sorted({row["curvatures"].strip("[]") for row in sides[0][:1]}))
        row = [graph, str(max(len(side) for side in sides))]
        row += [split.split()[0]] if task == "classify" else [curved]
        rows.append([*row, *(spread(side, metric) for side in sides), *(f"{value:.2f}" for value in paper)])
    third = "split" if task == "classify" else "curvatures, first seed"
    return markdown(["graph", "runs", third, "FPS-T", "TokenGT", "paper: FPS-T", "TokenGT"], rows)


def embed() -> str:
    """Return the table of reconstruction."""
    return compared("embed", "embed.csv", "map")


def sampled() -> str:
    """Return what sampled negatives cost on Web-Edu."""
    whole = [row for row in runs("embed.csv") if (row["graph"], row["model"]) == ("web-edu", "fpst")]
    drawn = runs("embed_sampled.csv")
    rows = [["all", spread(whole[:1], "map")], ["512, drawn anew in each step", spread(drawn[:1], "map")]]
    return markdown(["non-neighbours in the loss (Web-Edu, seed 0, equal epochs)", "mAP"], rows)


def classify() -> str:
    """Return the table of node classification."""
    return compared("classify", "classify.csv", "test_f1")


def link() -> str:
    """Return the table of link prediction."""
    found, rows = runs("link.csv"), []
    for graph in dict.fromkeys(row["graph"] for row in found):
        some = [row for row in found if row["graph"] == graph]
        metrics = [spread(some, metric) for metric in ("test_auc", "test_ap", "val_auc")]
        rows.append([graph, some[0]["recipe"], str(len(some)), *metrics])
    return markdown(["graph", "recipe", "runs", "test AUC", "test AP", "validation AUC"], rows, text=2)


def models() -> str:
    """Return every model by name, with its metrics on Cora and on Web-Edu."""
    cora, web = runs("models_cora.csv"), runs("models_web_edu.csv")
    rows = []
    for name, spec in MODELS.items():
        sides = [[row for row in found if row["model"] == name] for found in (cora, web)]
        rows.append([f"`{name}`", spec.about, spread(sides[0], "test_f1"), spread(sides[1], "map")])
    return markdown(["model", "what it is", "Cora, test F1", "Web-Edu, mAP"], rows, text=2)


def paper_table(name: str) -> str:
    """Return a table of the paper, its rows so far: ours with the interval over seeds, and the printed one."""
    rows = []
    for row in collected(PAPER_TABLES[name].cells(), paper_rows()):
        half = "" if row["low"] is None else f" ± {row['mean'] - row['low']:.2f}"
        paper = "–" if row["paper"] is None else f"{row['paper']:.2f} ± {row['paper_std']:.2f}"
        size = [str(row["seeds"]), str(row["width"]), f"{row['parameters']:,}"]
        rows.append([row["dataset"], f"`{row['model']}`", f"{row['mean']:.2f}{half}", paper, *size])
    if not rows:
        return "No runs yet."
    return markdown(["data set", "model", "ours", "paper", "seeds", "width", "parameters"], rows, text=2)


def paper_rows() -> Rows:
    """Return the rows of all tables: some runs belong to several."""
    files = [read_rows(ROOT / "results" / f"{name}.csv") for name in PAPER_TABLES]
    return {key: row for file in files for key, row in file.items()}


def paper_differences(name: str) -> str:
    """Return how FPS-T differs from the other rows of a table, paired by seed."""
    rows = []
    for row in differences(PAPER_TABLES[name].cells(), paper_rows()):
        half = "" if row["half"] is None else f" ± {row['half']:.2f}"
        tests = ["–" if p is None else f"{p:.2g}" for p in (row["t"], row.get("holm"), row["wilcoxon"])]
        rows.append(
            [row["dataset"], f"`{row['model']}`", f"{row['mean']:+.2f}{half}", str(row["pairs"]), *tests]
        )
    if not rows:
        return "No pairs yet."
    head = ["data set", "FPS-T minus", "difference", "pairs", "t-test, p", "by Holm", "Wilcoxon, p"]
    return markdown(head, rows, text=2)


def paper_costs() -> str:
    """Return what a pass of each model costs."""
    rows = [
        [
            row["dataset"],
            f"`{row['model']}`",
            row["part"],
            f"{row['milliseconds']:.1f}",
            "–" if row["ratio"] is None else f"{row['ratio']:.2f}",
            "–" if row["megabytes"] is None else f"{row['megabytes']:.0f}",
        ]
        for row in read_costs(ROOT / "results" / "costs.csv")
    ]
    if not rows:
        return "Not measured yet."
    return markdown(["data set", "model", "pass", "ms", "of `tokengt`'s", "MB"], rows, text=3)


def pairs() -> str:
    """Return the times of the loss over all pairs."""
    found = runs("pairs.csv")
    head = ["graph, nodes summed over", *dict.fromkeys(row["form"] for row in found)]
    rows = {}
    for row in found:
        # the processor's own time: the clock's depends on what else the machine does
        cell = f"{float(row['processor_milliseconds']):.0f}"
        rows.setdefault(f"{row['data']}, {row['columns']}", []).append(cell)
    return markdown(head, [[name, *values] for name, values in rows.items()])


def curvature_rows(*, seconds: bool) -> str:
    """Return how curved the graphs are, or what it took to find out."""
    rows = []
    for row in runs("curvature.csv"):
        name = f"{row['graph']}, {row['samples']} nodes drawn" if row["samples"] else row["graph"]
        error = f" ± {row['standard_error']}" if row["standard_error"] else ""
        triples = f"{int(row['triples']):,}"
        if seconds:
            size = [f"{int(row[key]):,}" for key in ("nodes", "edges")]
            rows.append([name, *size, triples, row["processor_seconds"], f"{row['curvature']}{error}"])
        elif not row["samples"]:
            rows.append([name, row["reading"], row["curvature"], triples, f"{row['negative_percent']} %"])
    if seconds:
        return markdown(["graph", "nodes", "edges", "triples", "seconds", "curvature"], rows)
    return markdown(["graph", "", "curvature", "triples", "negative"], rows, text=2)


def measured(file: str, columns: dict[str, str], *, text: int = 1) -> str:
    """Return the columns of a file of results under other headings."""
    return markdown(list(columns.values()), [[row[key] for key in columns] for row in runs(file)], text=text)


EXPLORER = {
    "nodes": "nodes",
    "edges": "edges",
    "megabytes": "MB",
    "first_picture_seconds": "first picture, s",
    "head": "head",
    "frames_per_second": "frames a second",
    "edges_in_motion": "edges in motion",
    "load": "load",
}
READER = {
    "file": "file",
    "megabytes": "size, MB",
    "processor_seconds": "processor seconds",
    "peak_megabytes": "peak memory, MB",
    "before_megabytes": "before reading, MB",
}
LAPLACIAN = {
    "graph": "graph",
    "scope": "scope",
    "methods": "methods",
    "nodes": "nodes",
    "edges": "edges",
    "processor_seconds": "seconds",
    "residual": "largest residual",
}
MARGINS = {
    "margin": "margin",
    "float32_error": "float32: largest error (radius 1)",
    "float64_error": "float64",
    "float32_reach": "farthest from the origin ($k = -1$): float32",
    "float64_reach": "float64",
}


def option_cells(one: Option) -> list[str]:
    """Return an option as the cells of a row: name, values, default, meaning."""
    flag = "" if one.flag is None else f" (`--{one.flag.replace('/', '`, `')}`)"
    values = described(one.hint, one.range).replace("true or false", "yes or no")
    # a list as it is typed
    default = json.dumps(one.default) if isinstance(one.default, tuple) else shown(one.default) or "empty"
    return [f"`{one.name}`{flag}", values, default, one.help]


def option_table(some: Iterable[Option]) -> str:
    """Return a table with a row for each option."""
    return markdown(["option", "values", "default", "meaning"], [option_cells(one) for one in some], text=4)


def graph_options() -> str:
    """Return the table of the graph's options, with the commands that have a flag for each."""
    rows = []
    for one in options_of(GraphOptions):
        having = [f"`{name}`" for name, task in TASKS.items() if one.name in task.graph_flags]
        rows.append([*option_cells(one), "the argument GRAPH" if one.name == "source" else ", ".join(having)])
    return markdown(["option", "values", "default", "meaning", "flag of"], rows, text=5)


def transformer_options() -> str:
    """Return the tables of FPS-T's options: encoder, tokens, curvature."""
    groups: dict[str, list[Option]] = {"encoder": [], "tokens": [], "curvature": []}
    names = {
        "tokens": {one.name for one in options_of(TokenOptions)},
        "curvature": {one.name for one in options_of(CurvatureOptions)},
    }
    for one in MODELS["fpst"].choices():
        groups[next((group for group, known in names.items() if one.name in known), "encoder")].append(one)
    return "\n\n".join(f"### {group}\n\n{option_table(some)}" for group, some in groups.items())


def network_options() -> str:
    """Return the tables of the networks' options: those that all share, then what each has or changes."""
    shared = list(options_of(NodeModelOptions))
    parts = []
    for name, spec in MODELS.items():
        if not issubclass(spec.options, NodeModelOptions):
            continue
        own = [one for one in spec.choices() if one not in shared]
        about = (
            f"{spec.about[0].upper()}{spec.about[1:]}. Dropout with classes: {spec.options.usual_dropout:g}."
        )
        parts.append(f"### {name}\n\n{about}" + (f"\n\n{option_table(own)}" if own else ""))
    common = [one for one in MODELS["mlp"].choices() if one in shared]
    return "\n\n".join([option_table(common), *parts])


def objective_options() -> str:
    """Return the tables of the tasks' objectives."""
    return "\n\n".join(
        f"### {name}\n\n{option_table(options_of(task.Objective))}" for name, task in TASKS.items()
    )


def run_options() -> str:
    """Return the table of the options of a run."""
    own = [one for one in options_of(JobSettings) if one.name in ("seed", "device", "dtype")]
    return option_table([*own, *options_of(RunOptions)])


TABLES: dict[str, Callable[[], str]] = {
    "summary": summary,
    "exactness": exactness,
    "cost": cost,
    "explorer": lambda: measured("explorer.csv", EXPLORER, text=0),
    "speed": speed,
    "embed": embed,
    "sampled": sampled,
    "classify": classify,
    "link": link,
    "models": models,
    "pairs": pairs,
    **{name: lambda name=name: paper_table(name) for name in SHOWN},
    **{f"{name}_differences": lambda name=name: paper_differences(name) for name in SHOWN},
    "costs": paper_costs,
    "curvature": lambda: curvature_rows(seconds=False),
    "curvature_seconds": lambda: curvature_rows(seconds=True),
    "reader": lambda: measured("reader.csv", READER),
    "laplacian": lambda: measured("laplacian.csv", LAPLACIAN, text=3),
    "project_margins": lambda: measured("project_margins.csv", MARGINS),
    "graph_options": graph_options,
    "transformer_options": transformer_options,
    "network_options": network_options,
    "feature_options": lambda: option_table(options_of(FeatureOptions)),
    "training_options": lambda: option_table(options_of(TrainOptions)),
    "objective_options": objective_options,
    "run_options": run_options,
}


def filled(page: str) -> str:
    """Return a page's text with its tables made anew."""

    def table(match: re.Match[str]) -> str:
        name = match[1]
        return f"<!-- begin {name} -->\n\n{TABLES[name]()}\n\n<!-- end {name} -->"

    text = (ROOT / page).read_text(encoding="utf-8")
    return re.sub(r"<!-- begin (\w+) -->.*?<!-- end \1 -->", table, text, flags=re.S)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing, fail if a page differs")
    check = parser.parse_args().check
    for page in PAGES:
        old, new = (ROOT / page).read_text(encoding="utf-8"), filled(page)
        if check and old != new:
            sys.exit(
                f"{page}: a table is not what results/ or the options give; run python scripts/make_tables.py"
            )
        if not check:
            (ROOT / page).write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
