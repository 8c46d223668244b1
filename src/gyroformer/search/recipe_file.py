"""The winner of a search as a recipe file: TOML, with what found it as comments."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gyroformer.durable import write_durably
from gyroformer.errors import DataError
from gyroformer.models import get_model
from gyroformer.options import Options, as_plain, options_of
from gyroformer.options.features import FeatureOptions
from gyroformer.options.training import TrainOptions
from gyroformer.settings import JobSettings

#: what a run does beside its result, or who it is
NOT_OF_A_RECIPE = {"checkpoint_seconds", "tensorboard", "compile"}


def recipe_of(job: JobSettings) -> dict[str, dict[str, Any]]:
    """Return the tables of the recipe that gives these settings: whatever is not the declared default."""
    values = as_plain(job)
    tables = {
        "features": _changed(FeatureOptions, values["features"]),
        "model.options": _changed(get_model(job.model.name).options, values["model"]["options"]),
        "training": _changed(TrainOptions, values["training"]),
        "objective": _changed(type(job.objective), values["objective"]),
    }
    return {name: table for name, table in tables.items() if table}


def write_recipe(path: Path, job: JobSettings, comments: Sequence[str]) -> None:
    """Write the recipe of a job, with a comment a line on top."""
    lines = [f"# {line}" for line in comments]
    for name, table in recipe_of(job).items():
        lines += [f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items()), ""]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, ("\n".join(lines).rstrip() + "\n").encode())
    except OSError as error:
        raise DataError(f"{path}: the recipe could not be written ({error.strerror})") from None


def _changed(kind: type[Options], values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        one.name: values[one.name]
        for one in options_of(kind)
        if one.name in values and values[one.name] != one.default and one.name not in NOT_OF_A_RECIPE
    }


def _toml(value: Any) -> str:
    """Return a value of an option in TOML, which for these is JSON: words, numbers, true and false, and lists."""
    return json.dumps(value, ensure_ascii=False)
