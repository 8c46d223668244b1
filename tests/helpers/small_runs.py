"""Finished runs of small graphs, for tests that ask them."""

import torch

from gyroformer.jobs.plan import build_model, plan_task
from gyroformer.jobs.run import embedding_arrays, run_job
from gyroformer.options import as_plain
from gyroformer.runs.folder import RunFolder
from gyroformer.runs.graph import write_graph
from gyroformer.runs.read import load_graph
from gyroformer.settings import make_job

OPTIONS = {"identifiers": 4, "edge_tokens": "undirected"}


def job_on(task, paths, *, features=True, model="fpst", **values):
    """Return a short job on the files of ``write_blocks``; ``features``: whether they are used, or how."""
    if isinstance(features, dict):
        values["features"] = features
    graph = {"source": str(paths[0]), "features": str(paths[1]) if features else None}
    if task == "classify":
        graph["labels"] = str(paths[2])
    return make_job(
        task,
        graph=graph,
        model={"name": model, "options": OPTIONS if model == "fpst" else {}},
        training={"epochs": 4, "eval_every": 2},
        **values,
    )


def placed_run(folder, job):
    """Write a finished embed run with the model as it begins: what is asked of it does not depend on training."""
    graph = load_graph(job.graph)
    task = plan_task(job, graph)
    model = build_model(job, task).eval()
    with RunFolder(folder) as run, torch.no_grad():
        run.begin(as_plain(job), resume=False)
        write_graph(run.path, graph, options=job.graph)
        results = {
            "map": 50.0,
            "graph": job.graph.source,
            "edges": graph.summary.edges,
            "parameters": sum(p.numel() for p in model.parameters()),
        }
        run.metrics.path.write_text("")
        run.finish(model, results, embedding_arrays(model, task.data), graph.ids)
    return folder


def make_runs(folder, paths):
    """Return the folders of a finished run of each task: classify and link with features, embed without."""
    for task in ("classify", "link"):
        run_job(job_on(task, paths), out=folder / task)
    placed_run(folder / "embed", job_on("embed", paths, features=False))
    return {task: folder / task for task in ("classify", "link", "embed")}
