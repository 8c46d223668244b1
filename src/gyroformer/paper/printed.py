"""What the paper and others print for the cells of its tables."""

import dataclasses as dc
import functools
import tomllib
from pathlib import Path
from typing import Any

PRINTED = Path(__file__).with_name("printed.toml")


def printed(table: str, dataset: str, model: str) -> tuple[float, float] | None:
    """Return mean and ± that the paper prints in a cell; None if it has no such cell."""
    found = _printed().get(table, {}).get(dataset, {}).get(model)
    return None if found is None else (float(found[0]), float(found[1]))


@dc.dataclass(frozen=True)
class Published:
    """A figure by others.

    Attributes:
        value: in percent.
        source: whose it is.
        split: the split that it is on.
    """

    value: float
    source: str
    split: str


def published(table: str, column: str) -> list[Published]:
    """Return what we know of by any method, of any width, for a column of a table; the best comes first."""
    return [Published(*one) for one in _printed()["published"].get(table, {}).get(column, [])]


@functools.cache
def _printed() -> dict[str, Any]:
    with PRINTED.open("rb") as file:
        return tomllib.load(file)
