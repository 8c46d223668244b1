"""What the tests of devices share: a run on the CPU and on the stand-in device, and the comparison of both."""

import numpy as np
import torch
from small_graphs import labelled_graph
from stand_in_device import real, stand_in

from gyroformer.jobs.plan import build_model, plan_task
from gyroformer.settings import make_job
from gyroformer.train.learner import Learner

#: what a graph without a split of its own needs
OBJECTIVE = {"classify": {"split": "random"}}


def on_both(run):
    """Return what ``run(device)`` gives on the CPU and on the stand-in device."""
    expected = run("cpu")
    with stand_in() as device:
        found = run(device)
    return expected, found


def job_of(task, model, *, device="cpu", objective=None, options=None, **values):
    objective = {**OBJECTIVE.get(task, {}), **(objective or {})}
    job = make_job(task, model={"name": model, "options": options or {}}, objective=objective, **values)
    return job.but(device=device)


def planned(job, data=None):
    """Return the job's task, its model and its learner."""
    task = plan_task(job, labelled_graph() if data is None else data)
    model = build_model(job, task)
    model.prepare(task.data)
    return task, model, Learner(model, task, job.training)


def step(task, model, learner):
    """Do a step and return the loss."""
    torch.manual_seed(1)
    learner.train()
    learner.optimizer.zero_grad()
    loss = task.loss(model)
    loss.backward()
    learner.optimizer.step()
    learner.train(False)
    return loss.detach()


def close(found, expected, tolerance=1e-4):
    """Assert that numbers, texts and what holds them are equal to rounding."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            close(found[key], expected[key], tolerance)
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            close(one, other, tolerance)
    elif isinstance(expected, (float, np.ndarray)):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    elif isinstance(expected, torch.Tensor):
        np.testing.assert_allclose(
            real(found).detach().numpy(), expected.detach().numpy(), rtol=tolerance, atol=tolerance
        )
    else:
        assert found == expected
