"""Tables of exactness and speed."""

import csv
import json

from gyroformer.testing.exactness import Cell, read_csv
from gyroformer.testing.regimes import REGIMES
from tables.markdown import ROOT, markdown, runs


def cells(name: str, dtype: str) -> list[Cell]:
    return [cell for cell in read_csv(ROOT / "results" / f"exactness_{name}.csv") if cell.dtype == dtype]


def worst(some: list[Cell], what: str) -> str:
    # a NaN never wins: not finite samples are counted in a row of their own
    return f"{max(value for cell in some if (value := getattr(cell, what)) == value):.0e}"


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
    head = ["case", "size", *(key for key in found["ratios"][0] if key not in ("case", "pass"))]
    return markdown(head, rows)


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


MARGINS = {
    "margin": "margin",
    "float32_error": "float32: largest error (radius 1)",
    "float64_error": "float64",
    "float32_reach": "farthest from the origin ($k = -1$): float32",
    "float64_reach": "float64",
}
