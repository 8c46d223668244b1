"""How far an evaluation is: told block by block, and only while it goes on."""

import pickle

import networkx as nx
import pytest
import torch

import gyroformer as gf
from gyroformer.jobs.run import run_job
from gyroformer.ops.neighbours import Neighbours
from gyroformer.settings import make_job
from gyroformer.tasks.average_precision import precision_of


def test_every_block_is_told():
    graph = gf.to_graph(nx.path_graph(10))
    told = []
    precision_of(
        lambda rows: torch.rand(rows.numel(), 10),
        Neighbours.of(graph.edge_index, 10),
        block=4,
        heard=lambda done, total: told.append((done, total)),
    )
    assert told == [(4, 10), (8, 10), (10, 10)]


@pytest.mark.parametrize("hierarchy", [False, True])
def test_a_run_says_how_far_it_is(hierarchy, tmp_path):
    tree = nx.balanced_tree(2, 3, create_using=nx.DiGraph)
    (tmp_path / "tree.csv").write_text("".join(f"n{a},n{b}\n" for a, b in tree.edges))
    said = []
    job = make_job(
        "embed",
        graph={"source": str(tmp_path / "tree.csv")},
        training={"epochs": 1},
        objective={"hierarchy": hierarchy},
    )
    run_job(job, out=None, stage=said.append)
    assert any(text.startswith("evaluating, ") and text.endswith("nodes") for text in said)


def test_what_listened_is_not_kept():
    embedder = gf.GraphEmbedder(epochs=1, random_state=0).fit(nx.path_graph(9))
    assert embedder._plan.task.heard is None
    assert pickle.loads(pickle.dumps(embedder)).nearest(0, 1) == embedder.nearest(0, 1)
