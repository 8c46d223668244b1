"""Finished runs of small graphs, for tests that ask them."""

import torch

from gyroformer.config import as_plain
from gyroformer.jobs.plan import build_model, read_graph_of, to_device, with_features
from gyroformer.jobs.run import embedding_arrays, run_job
from gyroformer.jobs.settings import make_job
from gyroformer.train.outcome import Outcome
from gyroformer.train.run_folder import RunFolder

OPTIONS = {"identifiers": 4, "edge_tokens": "undirected"}


def job_on(task, paths, *, features=True, model="fpst", **values):
    graph = {"source": str(paths[0]), "features": str(paths[1]) if features else None}
    if task == "classify":
        graph["labels"] = str(paths[2])
    return make_job(
        task,
        graph=graph,
        model={"name": model, "options": OPTIONS},
        training={"epochs": 4, "eval_every": 2},
        **values,
    )


def placed_run(folder, job):
    """Write a finished embed run with the model as it begins: what is asked of it does not depend on training."""
    data = read_graph_of(job)
    ready = to_device(with_features(job, data, use=job.objective.use_features), job)
    model = build_model(job, ready).eval()
    model.prepare(ready)
    with RunFolder(folder) as run, torch.no_grad():
        run.begin(as_plain(job), resume=False)
        results = {
            "map": 50.0,
            "graph": job.graph.source,
            "edges": data.summary.edges,
            "parameters": sum(p.numel() for p in model.parameters()),
        }
        outcome = Outcome(0, 0, {}, [], "finished", 0.0, lowered=False)
        run.metrics.path.write_text("")
        run.finish(model, outcome, results, embedding_arrays(model, ready), data.ids)
    return folder


def make_runs(folder, paths):
    """Return the folders of a finished run of each task: classify and link with features, embed without."""
    for task in ("classify", "link"):
        run_job(job_on(task, paths), out=folder / task)
    placed_run(folder / "embed", job_on("embed", paths, features=False))
    return {task: folder / task for task in ("classify", "link", "embed")}
