"""What curvature alone gives: FPS-T minus the same without it."""

from typing import Any

from gyroformer.options import as_plain
from gyroformer.paper.summary import differences
from gyroformer.paper.table import TWINS, Cell
from gyroformer.paper.tables import ABLATIONS, TABLES
from tables.markdown import with_half
from tables.paper import paper_rows

#: the ablation that says it where the flat twin has another recipe
FROZEN = next(
    one.name for one in ABLATIONS if one.changes.get("model", {}).get("options") == {"learn_curvature": False}
)


def gains(*names: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return FPS-T minus its flat twin of the same recipe, else minus itself frozen, by table and column."""
    known, found = paper_rows(), {}
    frozen = _differences("ablations", FROZEN, known)
    task_of = {column.name: column.task or TABLES["ablations"].task for column in TABLES["ablations"].columns}
    for name in names:
        twins = _differences(name, "tokengt", known)
        own = {column: row for column, row in frozen.items() if task_of[column] == TABLES[name].task}
        for column in TABLES[name].datasets:
            same = _same_but_for_curvature(*TABLES[name].cells([column], TWINS))
            if (row := (twins if same else own).get(column)) is not None:
                found[name, column] = row
    return found


def shown(difference: dict[str, Any] | None) -> str:
    """Return a difference with half its interval."""
    if difference is None:
        return "–"
    return with_half(f"{difference['mean']:+.2f}", difference["half"])


def _differences(name: str, model: str, known: Any) -> dict[str, dict[str, Any]]:
    """Return FPS-T minus a row of a table, by column."""
    found = differences(TABLES[name].cells(), known)
    return {row["dataset"]: row for row in found if row["model"] == model}


def _same_but_for_curvature(curved: Cell, flat: Cell) -> bool:
    """Return whether two cells have the same settings but for the model's name and what only curved spaces have."""
    ours, twin = as_plain(curved.job()), as_plain(flat.job())
    options = ours["model"]["options"]
    common = {name: options[name] for name in options if name in twin["model"]["options"]}
    ours["model"] = {"name": twin["model"]["name"], "options": common}
    return all(ours[name] == twin[name] for name in ours if name != "recipe")
