"""Options that are younger than kept runs: at its neutral value a job is the one that it was before it was there."""

import copy
import dataclasses as dc
from collections.abc import Iterator, Mapping
from typing import Any

from gyroformer.models import MODELS, get_model
from gyroformer.options import Options, options_of
from gyroformer.options.declare import Option
from gyroformer.options.features import FeatureOptions
from gyroformer.options.training import TrainOptions
from gyroformer.settings import GraphOptions, JobSettings
from gyroformer.tasks import TASKS

Plain = dict[str, Any]


def without_younger(job: Mapping[str, Any]) -> Plain:
    """Return a job's plain settings without the younger options that have their neutral value."""
    found = copy.deepcopy(dict(job))
    for one, table in _younger(found):
        if table.get(one.name) == one.neutral:
            del table[one.name]
    return found


def with_younger(job: Mapping[str, Any]) -> Plain:
    """Return a kept job's plain settings with the younger options that it lacks, at their neutral value."""
    found = copy.deepcopy(dict(job))
    for one, table in _younger(found):
        table.setdefault(one.name, one.neutral)
    return found


def _younger(job: Plain) -> Iterator[tuple[Option, Plain]]:
    """Yield each option with a neutral value and the table of the job that it belongs in."""
    for kind, table in _tables(job):
        for one in options_of(kind):
            if one.neutral is not dc.MISSING:
                yield one, table


def _tables(job: Plain) -> list[tuple[type[Options], Plain]]:
    """Return the tables of a job with the classes that declare their options; those alone that are there."""
    task, model = job.get("task"), job.get("model")
    name = model.get("name") if isinstance(model, dict) else None
    if not isinstance(task, str) or task not in TASKS or not isinstance(name, str) or name not in MODELS:
        return []  # not a job of ours, or one of another version: it is taken as it is
    assert isinstance(model, dict)
    kinds: list[tuple[type[Options], Any]] = [
        (JobSettings, job),
        (GraphOptions, job.get("graph")),
        (FeatureOptions, job.get("features")),
        (TrainOptions, job.get("training")),
        (TASKS[task].Objective, job.get("objective")),
        (get_model(name).options, model.get("options")),
    ]
    return [(kind, table) for kind, table in kinds if isinstance(table, dict)]
