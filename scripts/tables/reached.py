"""What the paper's tables come to: FPS-T beside its printed figure, and what its curvature alone gives."""

from typing import Any

from gyroformer.options import as_plain
from gyroformer.paper.summary import collected, differences
from gyroformer.paper.table import TWINS, Column, Table
from gyroformer.paper.tables import ABLATIONS
from gyroformer.paper.tables import TABLES as PAPER_TABLES
from gyroformer.runs.rows import Rows
from gyroformer.tasks.task import metric_title
from tables.markdown import markdown
from tables.paper import paper_rows

#: the ablation that says what curvature gives, where the flat twin has another recipe
FROZEN = next(
    one.name for one in ABLATIONS if one.changes.get("model", {}).get("options") == {"learn_curvature": False}
)


def reached() -> str:
    """Return a row for each network of the paper."""
    known, rows = paper_rows(), []
    gains = {name: _differences(name, known) for name in ("table1", "table2", "ablations")}
    for name in ("table1", "table2"):
        table = PAPER_TABLES[name]
        for cell in table.cells(models=["fpst"]):
            for row in collected([cell], known):
                half = "" if row["low"] is None else f" ± {row['mean'] - row['low']:.2f}"
                numbers = [
                    f"{row['mean']:.2f}{half}",
                    f"{row['paper']:.2f}",
                    f"{row['mean'] - row['paper']:+.2f}",
                ]
                gain = _gain(table, cell.column, gains)
                rows.append([cell.column.name, metric_title(cell.metric), *numbers, _shown(gain)])
    head = ["data set", "metric", "FPS-T", "paper", "FPS-T minus paper", "FPS-T minus itself, flat"]
    return markdown(head, rows, text=2)


def _differences(name: str, known: Rows) -> dict[tuple[str, str], dict[str, Any]]:
    """Return FPS-T minus every other row of a table, by column and row."""
    found = differences(PAPER_TABLES[name].cells(), known)
    return {(row["dataset"], row["model"]): row for row in found}


def _gain(table: Table, column: Column, gains: dict[str, Any]) -> dict[str, Any] | None:
    """Return FPS-T minus the same without a curvature: its flat twin if that has the same recipe, else it is frozen."""
    if _same_but_for_curvature(*(cell.job() for cell in table.cells([column.name], list(TWINS)))):
        found: dict[str, Any] | None = gains[table.name].get((column.name, "tokengt"))
    else:
        found = gains["ablations"].get((column.name, FROZEN))
    return found


def _same_but_for_curvature(curved: Any, flat: Any) -> bool:
    """Return whether two jobs have the same settings but for the model's name and what only curved spaces have."""
    ours, twin = as_plain(curved), as_plain(flat)
    options = {
        name: value for name, value in ours["model"]["options"].items() if name in twin["model"]["options"]
    }
    ours["model"] = {"name": twin["model"]["name"], "options": options}
    return all(ours[name] == twin[name] for name in ours if name != "recipe")


def _shown(gain: dict[str, Any] | None) -> str:
    if gain is None:
        return "–"
    half = "" if gain["half"] is None else f" ± {gain['half']:.2f}"
    return f"{gain['mean']:+.2f}{half}"
