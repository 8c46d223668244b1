"""Near negatives in the losses of embed: exact where lists hold everything, said, and resumed bit for bit."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from placed_nodes import Placed
from safetensors.torch import load_file
from small_graphs import labelled_graph, write_tree

from gyroformer.errors import UsageError
from gyroformer.jobs.memory import estimate
from gyroformer.jobs.plan import plan_model, plan_task
from gyroformer.jobs.run import run_job
from gyroformer.settings import make_job
from gyroformer.tasks.embed import Reconstruction, chosen_negatives, notes_of
from gyroformer.tasks.embed_objective import ALL_PAIRS_NODES, EmbedObjective
from gyroformer.tasks.negatives import LATE, SOON, NearNegatives
from gyroformer.train.learner import Learner

NEAR = {"negatives": "near", "near": 5, "far": 8}


def test_lists_of_everything_give_the_exact_loss():
    data, model = labelled_graph(30), Placed(30)
    whole = Reconstruction(data).loss(model)
    near = Reconstruction(data, negatives="near", near=29, far=4).loss(model)
    torch.testing.assert_close(near, whole)
    wanted = torch.autograd.grad(whole, list(model.parameters()))
    torch.testing.assert_close(torch.autograd.grad(near, list(model.parameters())), wanted)


def test_the_loss_is_estimated_closer_than_by_a_sample_of_the_same_size():
    data, model = labelled_graph(60), Placed(60)
    torch.manual_seed(0)
    with torch.no_grad():
        whole = Reconstruction(data).loss(model)

        def scatter(**negatives):
            task = Reconstruction(data, **negatives)
            return (torch.stack([task.loss(model) for _ in range(60)]) - whole).square().mean().sqrt()

        near, sampled = scatter(negatives="near", near=10, far=10), scatter(negatives=20)
    assert 0 < near < 0.5 * sampled
    assert near < 0.02 * whole


@pytest.mark.parametrize("kind", [{}, {"hierarchy": True, "closure": True}])
def test_a_whole_job_says_how_well_the_loss_was_estimated(kind, tmp_path, caplog):
    path, _ = write_tree(tmp_path / "tree.csv")
    job = make_job(
        "embed", graph={"source": str(path)}, objective=NEAR | kind, training={"epochs": 30, "eval_every": 30}
    )
    results = run_job(job).results
    assert results["pairs_share"] == pytest.approx(100 * 13 / 39)
    assert 0 < results["loss_error"] < 5
    assert results["loss"] == pytest.approx(results["loss_exact"], rel=0.05)


def test_auto_takes_near_nodes_where_all_pairs_are_many():
    assert chosen_negatives("auto", ALL_PAIRS_NODES) is None
    assert chosen_negatives("auto", ALL_PAIRS_NODES + 1) == "near"
    assert chosen_negatives("all", 10**6) is None
    assert chosen_negatives(7, 10**6) == 7
    (said,) = notes_of(EmbedObjective(map_nodes=10**6), 10**6, "mAP is the mean")
    assert "exact for the 48 nearest nodes and estimated for the rest; --negatives all" in said
    assert notes_of(EmbedObjective(), 100, "mAP is the mean") == ()


@pytest.mark.parametrize(
    "values", [{"near": 5}, {"far": 6, "negatives": 10}, {"near": 7, "negatives": "all"}]
)
def test_lengths_without_lists_are_refused(values):
    if "negatives" not in values:
        assert EmbedObjective(**values).near == 5  # auto may take lists
        return
    with pytest.raises(UsageError, match="has no effect without --negatives near"):
        EmbedObjective(**values)


def test_lists_are_renewed_soon_where_points_move_and_late_where_they_rest():
    data, model = labelled_graph(400), Placed(400)
    task = Reconstruction(data, **NEAR)
    assert isinstance(task.kept, NearNegatives)

    def renewals(steps, moved):
        found = 0
        for _ in range(steps):
            before = task.kept.lists.clone()
            with torch.no_grad():
                model.u += moved * torch.randn_like(model.u)
                task.loss(model)
            found += not torch.equal(task.kept.lists, before)
        return found

    assert renewals(20, moved=0.3) == 20 // SOON
    renewals(40, moved=0.0)
    assert task.kept.course.tolist()[2] == LATE
    assert renewals(20, moved=0.001) <= 2


def test_the_estimate_of_memory_has_the_lists():
    sizes = {}
    for near in (5, 30):
        job = make_job("embed", objective=NEAR | {"near": near})
        sizes[near] = estimate(job, plan_task(job, labelled_graph(40)))["lists"]
    assert sizes[30] > 5 * sizes[5] > 0
    assert estimate(plain := make_job("embed"), plan_task(plain, labelled_graph(40)))["lists"] == 0


def test_a_state_with_lists_of_another_length_is_refused():
    def learner(near):
        job = make_job("embed", objective=NEAR | {"near": near})
        graph = labelled_graph(40)
        task = plan_task(job, graph)
        return Learner(plan_model(job, graph, task).model, task, job.training)

    state = learner(5).state()
    learner(5).check_state(state, "here")
    with pytest.raises(Exception, match=r"does not fit the model \(first: 'kept.lists'\)"):
        learner(6).check_state(state, "here")


def test_a_killed_run_ends_in_the_same_bits(tmp_path):
    path, _ = write_tree(tmp_path / "tree.csv", branching=3, height=5)
    words = f"embed {path} --negatives near --near 6 --far 8 --epochs 30 --eval-every 30 --threads 1 --json".split()
    command = [sys.executable, "-m", "gyroformer", *words, "--checkpoint-seconds", "0", "--resume", "--out"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    def start(folder):
        return subprocess.Popen(
            [*command, str(folder)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    first, victim = start(whole), start(killed)
    deadline = time.monotonic() + 600
    while len(list((killed / "checkpoints").glob("*.json"))) < 2 and time.monotonic() < deadline:
        assert victim.poll() is None, "ended before it could be killed"
        time.sleep(0.005)
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    assert not (killed / "results.json").exists()
    (kept,) = sorted((killed / "checkpoints").glob("*.safetensors"))[-1:]
    assert {"kept.lists", "kept.course"} <= load_file(kept).keys()
    again = start(killed)
    results = [json.loads(process.communicate(timeout=600)[0]) for process in (first, again)]
    assert results[0]["map"] == results[1]["map"]
    for name in ("metrics.jsonl", "model.safetensors", "embeddings.npz"):
        assert (whole / name).read_bytes() == (killed / name).read_bytes(), name
    assert not any("lists" in name for name in load_file(whole / "model.safetensors"))
