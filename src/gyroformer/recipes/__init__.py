"""Named settings for a task, as TOML files in a folder a task.

Which one is used when none is named: for models on tokens the data set's own, where there is one, else ``plain``
for a graph without features, else ``default``; for graph networks ``networks``. ``paper`` holds the settings that
the paper prints.
"""

import tomllib
from pathlib import Path
from typing import Any

from gyroformer.errors import UsageError, did_you_mean
from gyroformer.models import get_model

ROOT = Path(__file__).parent
#: names that every task knows: without a file they stand for the declared defaults
USUAL = ("default", "networks")


def recipe_names(task: str) -> list[str]:
    """Return the names of the recipes for ``task``."""
    return sorted(path.stem for path in (ROOT / task).glob("*.toml"))


def usual_recipe(task: str, *, model: str, dataset: str, features: bool = True) -> str:
    """Return the name of the recipe that is used when none is named; ``features``: whether the graph has any."""
    if not get_model(model).tokens:
        return "networks"
    known = recipe_names(task)
    if dataset in known:
        return dataset
    return "plain" if not features and "plain" in known else "default"


def read_recipe(task: str, name: str) -> dict[str, Any]:
    """Return the tables of the recipe ``name`` for ``task``."""
    known = recipe_names(task)
    if name not in known:
        if name in USUAL:
            return {}
        near = did_you_mean(name, known)
        raise UsageError(f"no recipe for {task} is called {name!r}{near} (known: {', '.join(known)})")
    return tomllib.loads((ROOT / task / f"{name}.toml").read_text(encoding="utf-8"))
