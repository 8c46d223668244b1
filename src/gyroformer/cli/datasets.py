"""``gyroformer datasets``: the graphs that have a name; fetch them, verify them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gyroformer.cli.options import Json
from gyroformer.cli.progress import Progress, progress
from gyroformer.cli.terminal import print_json, say, show
from gyroformer.errors import DataError

if TYPE_CHECKING:
    from gyroformer.data.verify import Verdict

Names = Annotated[list[str] | None, typer.Argument(help="Data sets; all of them by default.")]
Fetch = Annotated[bool, typer.Option("--fetch", help="Download what is missing, with pinned SHA-256.")]
Verify = Annotated[
    bool, typer.Option("--check", help="Verify checksums, counts, homophily; exit 3 if they differ.")
]
Offline = Annotated[bool, typer.Option("--offline", help="Never use the network (as GYROFORMER_OFFLINE=1).")]
Source = Annotated[
    Path | None,
    typer.Option(
        "--from", exists=True, dir_okay=False, help="Take missing files out of a tar or zip archive."
    ),
]

FACTS = ("task", "nodes", "edges", "listed_edges", "features", "classes", "homophily", "licence", "source")

SHORT_TASK = {"classification": "classify", "reconstruction": "reconstruct"}


def datasets(
    names: Names = None,
    fetch: Fetch = False,
    check: Verify = False,
    offline: Offline = False,
    source: Source = None,
    as_json: Json = False,
) -> None:
    """List the data sets; fetch them, verify what they contain.

    Example: gyroformer datasets cora airport --fetch --check
    """
    from gyroformer.data.folder import data_folder
    from gyroformer.data.registry import DATASETS, get_spec

    chosen = list(dict.fromkeys(names or DATASETS))
    for name in chosen:
        get_spec(name)
    folder = data_folder()
    result: dict[str, Any] = {"folder": str(folder)}
    with progress() as shown:
        if source is not None:
            result["taken"] = _take(source, chosen, folder, shown)
        if fetch:
            result["fetched"] = _fetch(chosen, folder, shown, offline=offline, all_of_them=not names)
        found = _check(chosen, folder, shown, all_of_them=not names) if check else {}
    result["datasets"] = [_row(name, folder, found.get(name)) for name in chosen]
    if as_json:
        print_json(result)
    else:
        _print_table(result)
    _raise_differences(found)


def _take(source: Path, names: list[str], folder: Path, shown: Progress) -> list[str]:
    from gyroformer.data.fetch import take_from

    shown.show(f"unpacking {source}")
    return take_from(source, names, folder)


def _fetch(names: list[str], folder: Path, shown: Progress, *, offline: bool, all_of_them: bool) -> list[str]:
    """Fetch each set; where all are meant, those without a pinned download are left to the table."""
    from gyroformer.data.fetch import fetch
    from gyroformer.data.state import state_of

    fetched: list[str] = []
    for name in names:
        if all_of_them and state_of(name, folder) == "by hand":
            continue
        fetched += fetch(name, folder, offline=offline, report=lambda path, _: shown.show(f"fetching {path}"))
    return fetched


def _check(names: list[str], folder: Path, shown: Progress, *, all_of_them: bool) -> "dict[str, Verdict]":
    """Check each set; where all are meant, those that are there."""
    from gyroformer.data.state import state_of
    from gyroformer.data.verify import verify

    if all_of_them:
        names = [name for name in names if state_of(name, folder) in ("ready", "no splits")]
        if not names:
            raise DataError(f"{folder}: no data set found; run gyroformer datasets --fetch")
    found = {}
    for name in names:
        shown.show(f"checking {name}")
        found[name] = verify(name, folder)
    return found


def _row(name: str, folder: Path, found: "Verdict | None") -> dict[str, Any]:
    from gyroformer.data.registry import get_spec
    from gyroformer.data.state import state_of

    spec = get_spec(name)
    row: dict[str, Any] = {"name": name, **{fact: getattr(spec, fact) for fact in FACTS}}
    row |= {"splits": list(spec.splits), "state": state_of(name, folder), "fetchable": spec.fetchable}
    row |= {"note": spec.note, "by_hand": spec.by_hand}
    if found:
        row["check"] = {
            "ok": found.ok,
            "measured": found.measured,
            "differences": list(found.differences),
            "notes": list(found.notes),
        }
    return row


def _print_table(result: dict[str, Any]) -> None:
    from rich.table import Table

    # 80 columns are enough: no frame, one space between columns, the licence without its source
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for title, right in (
        ("name", 0),
        ("task", 0),
        ("nodes", 1),
        ("edges", 1),
        ("classes", 1),
        ("homophily", 1),
    ):
        table.add_column(title, justify="right" if right else "left")
    table.add_column("licence")
    table.add_column("state")
    for row in result["datasets"]:
        homophily = "" if row["homophily"] is None else f"{row['homophily']:.3f}"
        numbers = [f"{row['nodes']:,}", f"{row['edges']:,}", str(row["classes"] or ""), homophily]
        licence = row["licence"].partition(" (")[0]
        table.add_row(row["name"], SHORT_TASK[row["task"]], *numbers, licence, _state(row))
    show(table)
    say(f"data folder: {result['folder']}")
    for action in ("taken", "fetched"):
        for path in result.get(action, []):
            say(f"{action}: {path}", err=True)
    for row in result["datasets"]:
        for note in row.get("check", {}).get("notes", []):
            say(f"{row['name']}: {note}", err=True)


def _state(row: dict[str, Any]) -> str:
    if "check" not in row:
        return str(row["state"])
    return "verified" if row["check"]["ok"] else "DIFFERS"


def _raise_differences(found: "dict[str, Verdict]") -> None:
    wrong = [f"{name}: {', '.join(one.differences)}" for name, one in found.items() if not one.ok]
    if wrong:
        raise DataError("not as published: " + "; ".join(wrong))
