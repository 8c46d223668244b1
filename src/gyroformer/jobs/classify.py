"""The job ``classify``: node classification."""

from typing import TYPE_CHECKING, Any

from gyroformer.data.split import Split
from gyroformer.data.splits import SPLITS, make_split
from gyroformer.errors import DataError
from gyroformer.jobs.plan import Plan, build_model, to_device, with_features
from gyroformer.jobs.settings import ClassifyJob
from gyroformer.tasks.classification import NodeClassification, count_classes

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: the ten splits of geom-gcn
STORED_SPLITS = 10


def plan_classify(job: ClassifyJob, data: "Data", split: Split | None = None) -> Plan:
    """Return the plan of a ``classify`` job; ``split`` replaces the one that the settings name."""
    if data.y is None:
        raise DataError("the graph has no labels: give a file of labels (--labels)")
    split = split or split_of(job, data)
    ready = to_device(with_features(job, data), job)
    task = NodeClassification(ready, split, balanced=job.objective.balanced)
    model = build_model(job, ready, count_classes(ready.y))
    model.prepare(ready)
    notes = [split.describe()] if split.leaks else []
    return Plan(job, ready, model, task, notes)


def split_of(job: ClassifyJob, data: "Data") -> Split:
    """Return the split that the settings name; unless they say which, the job's seed chooses the draw."""
    aim = job.objective
    first = make_split(data, aim.split, seed=aim.split_seed, index=aim.split_index, stratified=aim.stratified)
    takes = SPLITS[first.name].takes
    if takes == "seed" and aim.split_seed is None and first.name != "legacy":
        return make_split(data, first.name, seed=job.seed, stratified=aim.stratified)
    if takes == "index" and aim.split_index is None:
        return make_split(data, first.name, index=job.seed % STORED_SPLITS)
    return first


def classify_results(plan: Plan, metrics: dict[str, float]) -> dict[str, Any]:
    """Return the figures of a trained plan; the test nodes are looked at here, once."""
    task = plan.task
    assert isinstance(task, NodeClassification)
    split = task.split
    return {
        **task.test(plan.model),
        **metrics,
        "label_names": plan.data.label_names if "label_names" in plan.data else None,
        "split": {
            "name": split.name,
            "seed": split.seed,
            "index": split.index,
            "train": split.train.numel(),
            "val": split.val.numel(),
            "test": split.test.numel(),
            "sha256": split.sha256,
            "leaks": split.leaks,
        },
    }
