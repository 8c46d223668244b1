"""Named settings for a task, as TOML files in a folder a task.

Which one is used when none is named: ``DATASET/SPLIT/MODEL`` or ``DATASET/MODEL``, found by ``gyroformer tune``, or
``MODEL``, where there is one; else, for models on tokens, the data set's own, ``plain`` for a graph without features,
or ``default``; for graph networks ``networks``. ``paper`` holds what the paper prints. A file that ends in ``.toml``
is a recipe too.
"""

import functools
import tomllib
from pathlib import Path
from typing import Any

from gyroformer.errors import DataError, UsageError, did_you_mean
from gyroformer.models import get_model
from gyroformer.untrusted import check_regular

ROOT = Path(__file__).parent
#: names that every task knows: without a file they stand for the declared defaults
USUAL = ("default", "networks")
#: bytes of the largest recipe that is read
MAX_BYTES = 1 << 20


@functools.cache
def recipe_names(task: str) -> tuple[str, ...]:
    """Return the names of the recipes for ``task``; they are looked for once a process."""
    folder = ROOT / task
    names = (path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.toml"))
    return tuple(sorted(names))


def usual_recipe(
    task: str, *, model: str, dataset: str, split: str | None = None, features: bool = True
) -> str:
    """Return the name of the recipe that is used when none is named.

    Args:
        task: the task.
        model: the model's name.
        dataset: the data set's name; that of no data set for another graph.
        split: the split that is asked for, if any: a data set may have recipes for one that was searched apart.
        features: whether the graph has node features.
    """
    known = recipe_names(task)
    for own in (f"{dataset}/{split}/{model}", f"{dataset}/{model}", model):
        if own in known:
            return own
    if not get_model(model).tokens:
        return "networks"
    if dataset in known:
        return dataset
    return "plain" if not features and "plain" in known else "default"


def read_recipe(task: str, name: str) -> dict[str, Any]:
    """Return the tables of the recipe ``name`` for ``task``, or of the file of that name if it ends in .toml."""
    if name.endswith(".toml"):
        return _read(Path(name))
    known = recipe_names(task)
    if name not in known:
        if name in USUAL:
            return {}
        near = did_you_mean(name, known)
        raise UsageError(f"no recipe for {task} is called {name!r}{near} (known: {', '.join(known)})")
    return _read(ROOT / task / f"{name}.toml")


def _read(path: Path) -> dict[str, Any]:
    try:
        size = check_regular(path)
    except DataError as error:
        raise UsageError(f"the recipe {error}") from None
    if size > MAX_BYTES:
        raise UsageError(f"{path}: is larger than any recipe")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: the recipe cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is not a recipe in TOML ({error})") from None
