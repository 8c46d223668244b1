"""Rewrite the tables of the README and the pages of docs/ from the files in results/.

python scripts/make_tables.py [--check]

A table stands between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``. ``--check`` changes nothing and
fails if a page differs from what the results give.
"""

import argparse
import csv
import json
import re
import sys
from pathlib import Path

from gyroformer.jobs.seeds import interval
from gyroformer.models import MODELS
from gyroformer.testing.exactness import Cell, read_csv
from gyroformer.testing.regimes import REGIMES

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "docs/geometry.md",
    "docs/model.md",
    "docs/tasks.md",
    "docs/models.md",
    "docs/predict.md",
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
    """Return the page's table: largest errors by radius regime and format."""
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
    """Return the page's table: what the wide format costs."""
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


def spread(some: list[dict[str, str]], figure: str) -> str:
    """Return a figure's mean over runs with half its 95 % interval."""
    values = [float(row[figure]) for row in some]
    if not values:
        return "–"
    mean, half = interval(values)
    return f"{mean:.2f}" + ("" if half is None else f" ± {half:.2f}")


def compared(task: str, file: str, figure: str) -> str:
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
        rows.append([*row, *(spread(side, figure) for side in sides), *(f"{value:.2f}" for value in paper)])
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
        figures = [spread(some, figure) for figure in ("test_auc", "test_ap", "val_auc")]
        rows.append([graph, some[0]["recipe"], str(len(some)), *figures])
    return markdown(["graph", "recipe", "runs", "test AUC", "test AP", "validation AUC"], rows, text=2)


def models() -> str:
    """Return every model by name, with its figures on Cora and on Web-Edu."""
    cora, web = runs("models_cora.csv"), runs("models_web_edu.csv")
    rows = []
    for name, spec in MODELS.items():
        sides = [[row for row in found if row["model"] == name] for found in (cora, web)]
        rows.append([f"`{name}`", spec.about, spread(sides[0], "test_f1"), spread(sides[1], "map")])
    return markdown(["model", "what it is", "Cora, test F1", "Web-Edu, mAP"], rows, text=2)


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


TABLES = {
    "summary": summary,
    "exactness": exactness,
    "cost": cost,
    "speed": speed,
    "embed": embed,
    "sampled": sampled,
    "classify": classify,
    "link": link,
    "models": models,
    "pairs": pairs,
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
            sys.exit(f"{page}: a table is not what results/ gives; run python scripts/make_tables.py")
        if not check:
            (ROOT / page).write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
