"""The job ``link``: link prediction."""

from typing import TYPE_CHECKING, Any

from gyroformer.data.link_split import LinkSplit, draw_link_split
from gyroformer.errors import UsageError
from gyroformer.jobs.plan import Plan, build_model, to_device, with_features
from gyroformer.jobs.settings import LinkJob, LinkObjective
from gyroformer.tasks.decoders import LinkDecoder
from gyroformer.tasks.link_prediction import LinkPrediction

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: feature sets of data sets that were computed from all edges: with them, the test would be known in training
LEAKING_FEATURES = {("airport", "hgcn"): "hold the degrees that nodes have with all edges"}


def plan_link(job: LinkJob, data: "Data", split: LinkSplit | None = None) -> Plan:
    """Return the plan of a ``link`` job; ``split`` replaces the draw that the settings name.

    Features are mixed over, and the model is prepared with, the training edges only.
    """
    graph = (job.graph.source, job.graph.features or "")
    if graph in LEAKING_FEATURES:
        raise UsageError(
            f"the features {graph[1]!r} of {graph[0]} {LEAKING_FEATURES[graph]}, the held-out ones among them: leave "
            "--features out"
        )
    split = split or link_split_of(job, data)
    ready = to_device(with_features(job, split.training_graph(data)), job)
    model = build_model(job, ready)
    model.prepare(ready)
    task = LinkPrediction(ready, split, decoder_of(job.objective)).to(job.device)
    return Plan(job, ready, model, task)


def link_split_of(job: LinkJob, data: "Data") -> LinkSplit:
    """Return the split that the settings name; unless they say which, the job's seed chooses the draw."""
    aim = job.objective
    seed = job.seed if aim.split_seed is None else aim.split_seed
    return draw_link_split(data, val_share=aim.val_share, test_share=aim.test_share, seed=seed)


def decoder_of(aim: LinkObjective) -> LinkDecoder:
    """Return the decoder that the settings name, not yet trained."""
    return LinkDecoder(aim.decoder, radius=aim.radius, temperature=aim.temperature, learn=aim.learn_decoder)


def link_results(plan: Plan, metrics: dict[str, float]) -> dict[str, Any]:
    """Return the figures of a trained plan; the test pairs are looked at here, once."""
    task = plan.task
    assert isinstance(task, LinkPrediction)
    decoder = task.decoder
    return {
        **task.test(plan.model),
        **metrics,
        "decoder": {
            "kind": decoder.kind,
            "radius": float(decoder.radius),
            "temperature": float(decoder.temperature),
        },
        "split": task.split.about(),
    }
