import pytest
import torch
from torch import nn
from toy_training import DecodingTask

from gyroformer.errors import CorruptFileError, UsageError
from gyroformer.options.training import TrainOptions
from gyroformer.train.learner import Learner


def test_curvatures_have_their_own_rate_and_no_decay(model):
    task = DecodingTask()
    learner = Learner(model, task, TrainOptions(lr=0.1, curvature_lr=0.2, weight_decay=0.3))
    ordinary, curved = learner.optimizer.param_groups
    assert (ordinary["lr"], ordinary["weight_decay"]) == (0.1, 0.3)
    assert (curved["lr"], curved["weight_decay"]) == (0.2, 0.0)
    assert {id(p) for p in curved["params"]} == {
        *(id(p) for name, p in model.named_parameters() if name.endswith("curvature")),
        id(task.module.curvature),
    }
    assert len(curved["params"]) == 2
    count = len(list(model.parameters())) + len(list(task.module.parameters()))
    assert len(ordinary["params"]) + len(curved["params"]) == count


def test_rates_follow_the_schedule_and_are_lowered(model, task):
    settings = TrainOptions(epochs=4, lr=0.1, curvature_lr=0.2, schedule="linear", decay_from=0.0)
    learner = Learner(model, task, settings)
    assert learner.set_rates(3, lowered=False) == pytest.approx(0.05)
    assert [group["lr"] for group in learner.optimizer.param_groups] == pytest.approx([0.05, 0.1])
    assert learner.set_rates(3, lowered=True) == pytest.approx(0.005)
    assert [group["lr"] for group in learner.optimizer.param_groups] == pytest.approx([0.005, 0.01])


def test_a_frozen_parameter_is_left_alone(model, task, settings):
    model.tokenizer.features.table.weight.requires_grad_(False)
    assert "model.tokenizer.features.table.weight" not in Learner(model, task, settings).parameters


def test_going_back_repeats_the_same_steps(model, settings):
    learner = Learner(model, DecodingTask(), settings)

    def step():
        learner.optimizer.zero_grad()
        learner.task.loss(model).backward()
        learner.optimizer.step()

    step()
    before = learner.state()
    kept = {name: tensor.clone() for name, tensor in before.items()}
    step()
    after = learner.state()
    learner.load_state(before)
    step()
    again = learner.state()
    assert after.keys() == again.keys()
    assert {"model.", "task.", "adam.", "rng.c"} == {
        name[:5] if name[0] != "m" else name[:6] for name in after
    }
    assert all(torch.equal(after[name], again[name]) for name in after)
    assert all(torch.equal(before[name], kept[name]) for name in kept), "a step changed the copy"
    assert not torch.equal(after["rng.cpu"], before["rng.cpu"])


def test_a_state_of_another_model_is_refused(model, task, settings):
    learner = Learner(model, task, settings)
    state = learner.state()
    state["model.tokenizer.node_type"] = torch.zeros(3)
    with pytest.raises(
        CorruptFileError, match=r"does not fit the model \(first: 'model.tokenizer.node_type'\)"
    ):
        learner.check_state(state, "here")


def test_a_model_without_parameters_is_refused(task, settings):
    with pytest.raises(UsageError, match="no parameter to train"):
        Learner(nn.Identity(), task, settings)
