"""The job ``embed``: graph reconstruction."""

from typing import TYPE_CHECKING, Any

from gyroformer.errors import DataError
from gyroformer.jobs.plan import Plan, build_model, to_device, with_features
from gyroformer.jobs.settings import EmbedJob
from gyroformer.tasks.reconstruction import Reconstruction

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: nodes up to which "auto" takes all pairs: half a billion pairs, some seconds a step on two cores
ALL_PAIRS_NODES = 30_000
#: nodes drawn to stand for all others beyond that
SAMPLED_NEGATIVES = 1024
#: nodes up to which mAP is exact by default, and the number of nodes it is taken over beyond that
EXACT_MAP_NODES, SAMPLED_MAP_NODES = 20_000, 2_000


def plan_embed(job: EmbedJob, data: "Data") -> Plan:
    """Return the plan of an ``embed`` job."""
    aim, notes = job.objective, []
    if aim.use_features and data.x is None:
        raise DataError("the graph has no features to use: leave the option out, or give a file of features")
    ready = to_device(with_features(job, data, use=aim.use_features), job)
    nodes = int(ready.num_nodes or 0)
    negatives = _negatives(aim.negatives, nodes)
    if negatives is not None:
        notes.append(
            f"{negatives:,} of {nodes:,} nodes stand for all others in each step, which costs mAP "
            "(Web-Edu: see docs/tasks.md); --negatives all takes every pair"
        )
    map_nodes = aim.map_nodes or (SAMPLED_MAP_NODES if nodes > EXACT_MAP_NODES else None)
    if map_nodes is not None and map_nodes < nodes:
        notes.append(f"mAP is the mean over {map_nodes:,} of {nodes:,} nodes")
    task = Reconstruction(ready, squared=aim.squared, negatives=negatives, map_nodes=map_nodes, seed=job.seed)
    model = build_model(job, ready)
    model.prepare(ready)
    return Plan(job, ready, model, task, notes)


def embed_results(plan: Plan, metrics: dict[str, float]) -> dict[str, Any]:
    """Return the figures of a trained plan: those of the last evaluation."""
    return {"map": metrics["map"]}


def _negatives(choice: str | int, nodes: int) -> int | None:
    if choice == "auto":
        return None if nodes <= ALL_PAIRS_NODES else SAMPLED_NEGATIVES
    return None if choice == "all" else int(choice)
