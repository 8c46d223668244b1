"""A small graph with dangerous names, and small runs on it."""

import numpy as np

from gyroformer.graphs.build import graph_from_edges
from gyroformer.jobs.run import run_job
from gyroformer.settings import make_job

NODES = 40
#: an id that would be markup, and one that would end the script that holds it
EVIL = ("<script>alert(1)</script>", "</script><b>x</b>", "a&b")


def small_graph(*, labels=False):
    """Return a binary tree with some chords; the first ids are dangerous."""
    child = np.arange(1, NODES)
    chords = np.array([[3, 20], [5, 31], [8, 39]]).T
    source, target = np.concatenate([child, chords[0]]), np.concatenate([(child - 1) // 2, chords[1]])
    ids = [*EVIL, *(f"node-{i}" for i in range(3, NODES))]
    more = {}
    if labels:
        y = (np.arange(NODES) % 3).astype(np.int64)
        noise = np.random.default_rng(0).normal(size=(NODES, 4))
        more = {"y": y, "x": (np.eye(3)[y] @ np.ones((3, 4)) + noise).astype(np.float32)}
    return graph_from_edges(source, target, num_nodes=NODES, ids=ids, **more)


def small_run(folder, task="embed", model="fpst", *, epochs=6, **values):
    settings = {"epochs": epochs, "eval_every": 2}
    options = {"identifiers": 4, "dim": 8}
    job = make_job(task, model={"name": model, "options": options}, training=settings, **values)
    return run_job(job, data=small_graph(labels=task == "classify"), out=folder, report=False)
