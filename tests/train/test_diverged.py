import json
import logging
import math
import re

import pytest
import torch
from safetensors.torch import load_file
from small_graphs import labelled_graph
from torch import nn
from toy_training import SETTINGS, ToyTask, toy_model

from gyroformer.data.splits import make_split
from gyroformer.errors import DivergedError
from gyroformer.graphs.reading.convert import to_graph
from gyroformer.models import HGCN
from gyroformer.runs.folder import RunFolder
from gyroformer.tasks import NodeClassification
from gyroformer.train import TrainOptions, fit
from gyroformer.train.adam import Adam
from gyroformer.train.diverged import find_culprit
from gyroformer.train.learner import Learner


class Spoiled(ToyTask):
    """A task that spoils the computation in the calls of ``loss`` that are listed, and in their repetitions."""

    def __init__(self, model, calls, spoil):
        super().__init__()
        self.model, self.calls, self.spoil, self.count, self.broken = model, calls, spoil, 0, 0

    def loss(self, model):
        repeated = not torch.is_grad_enabled()
        if not repeated:
            self.count += 1
        if self.count not in self.calls:
            return super().loss(model)
        with self.spoil(model) as change:
            return change(super().loss(model))


class output_of:
    """Make one entry of a module's output NaN while the block runs."""

    def __init__(self, name, entry):
        self.name, self.entry = name, entry

    def __call__(self, model):
        self.module = model.get_submodule(self.name)
        return self

    def __enter__(self):
        def spoil(_, __, output):
            output = output.clone()
            output[self.entry] = math.nan
            return output

        # before the probes' own hooks, as the module's own computation would be
        self.hook = self.module.register_forward_hook(spoil, prepend=True)
        return lambda loss: loss

    def __exit__(self, *_):
        self.hook.remove()


class loss_itself:
    def __init__(self, value=math.nan):
        self.value = value

    def __call__(self, model):
        return self

    def __enter__(self):
        return lambda loss: loss * self.value

    def __exit__(self, *_):
        pass


def settings_with(**changes):
    return TrainOptions(**SETTINGS | changes)


def test_once_it_goes_back_lowers_the_rates_and_names_the_module(model, caplog):
    task = Spoiled(model, {5}, output_of("encoder.blocks.0.attention.qkv", (0, 3, 2)))
    outcome = fit(model, task, settings_with(lr=0.1))
    assert outcome.lowered
    assert outcome.epochs == 12
    assert [row["epoch"] for row in outcome.history] == list(range(1, 13))
    assert [row["lr"] for row in outcome.history] == pytest.approx([0.1] * 3 + [0.01] * 9)
    [record] = [record for record in caplog.records if record.levelno == logging.WARNING]
    said = record.getMessage()
    assert re.match(
        r"epoch 5: the \w+ is not finite; first the output of encoder.blocks.0.attention.qkv", said
    )
    assert "Going back to epoch 3 with all learning rates times 0.1" in said
    assert task.count == 5 + 9, "epochs 4 to 12 again"


def test_twice_it_raises_and_says_what_to_try(model):
    task = Spoiled(model, {5, 7}, output_of("encoder.blocks.0.attention.qkv", (0, 3, 2)))
    with pytest.raises(DivergedError) as caught:
        fit(model, task, settings_with(lr=0.1))
    assert caught.value.exit_code == 4
    said = str(caught.value)
    assert "\n" not in said
    for part in ("epoch 5:", "second time", "encoder.blocks.0.attention.qkv", "curvatures", "--lr", "0.01"):
        assert part in said


@pytest.mark.parametrize("head", [0, 1])
def test_the_head_and_its_curvature_are_named(model, task, settings, head):
    with torch.no_grad():
        model.get_parameter("encoder.blocks.0.attention.space.curvature")[:] = torch.tensor([-1.5, 0.25])
    learner = Learner(model, task, settings)
    # a dropout hands on the heads' vectors side by side, four columns each
    with output_of("encoder.blocks.0.dropout", (0, 7, 4 * head + 1))(model):
        culprit = find_culprit(learner, lambda: task.loss(model))
    assert (culprit.name, culprit.head) == ("encoder.blocks.0.dropout", head)
    assert culprit.curvature == [-1.5, 0.25][head]
    assert str(culprit).endswith(f"head {head} (curvature {[-1.5, 0.25][head]})")


def test_what_goes_wrong_inside_a_tangent_method_is_found(model, task, settings, monkeypatch):
    import gyroformer.nn.attention as attention

    whole = attention.tangent_attention

    def spoiled(*args, **kwargs):
        mixed = whole(*args, **kwargs).clone()  # (1, N, heads, d)
        mixed[0, 2, 1, 3] = math.inf
        return mixed

    monkeypatch.setattr(attention, "tangent_attention", spoiled)
    culprit = find_culprit(Learner(model, task, settings), lambda: task.loss(model))
    assert (culprit.kind, culprit.name) == ("the input", "encoder.blocks.0.attention.out")
    assert culprit.head == 1


def test_what_goes_wrong_at_the_end_of_a_block_is_the_block_s(model, task, settings, monkeypatch):
    import gyroformer.nn.transformer as block

    whole, sums = block.added, []

    def spoiled(*args):
        sums.append(whole(*args).clone())
        if len(sums) == 2:  # the feed-forward part's, the last of the block
            sums[-1][0, 0, 0] = math.nan
        return sums[-1]

    monkeypatch.setattr(block, "added", spoiled)
    culprit = find_culprit(Learner(model, task, settings), lambda: task.loss(model))
    assert (culprit.kind, culprit.name, culprit.head) == ("the output", "encoder.blocks.0", 0)


def test_the_pass_is_repeated_with_the_same_random_numbers(model):
    class Drawing(ToyTask):
        drawn = ()

        def loss(self, model):
            self.drawn = (*self.drawn, torch.rand(()).item())
            return super().loss(model) * (math.nan if len(self.drawn) in (4, 5) else 1.0)

    task = Drawing()
    assert fit(model, task, settings_with()).lowered
    assert task.drawn[3] == task.drawn[4]
    assert len(set(task.drawn[:4])) == 4


def test_a_step_into_infinity_is_not_kept_even_if_the_figures_are_finite(model, caplog, monkeypatch):
    step, steps = Adam.step, []

    def overflowing(self):
        step(self)
        steps.append(self)
        if len(steps) == 4:
            model.tokenizer.node_type.data[2] = math.inf

    monkeypatch.setattr(Adam, "step", overflowing)

    class Coarse(ToyTask):
        def evaluate(self, model):
            return {"accuracy": super().evaluate(model)["accuracy"]}

        def rank(self, metrics):
            return (metrics["accuracy"],)

    assert fit(model, Coarse(), settings_with(eval_every=1)).lowered
    assert "epoch 4: a parameter is not finite; first the value of model.tokenizer.node_type" in caplog.text
    assert torch.isfinite(model.tokenizer.node_type).all()


def test_of_many_bad_gradients_the_last_module_s_comes_first(model, task, settings):
    learner = Learner(model, task, settings)
    task.loss(model).backward()
    for parameter in learner.parameters.values():
        parameter.grad.fill_(math.nan)
    assert find_culprit(learner, lambda: task.loss(model)).name.startswith("model.logits.")
    for name, parameter in model.named_parameters():
        if name.startswith("logits") or name.endswith("curvature"):  # the logits use the curvature again
            parameter.grad.zero_()
    assert find_culprit(learner, lambda: task.loss(model)).name.startswith("model.encoder.blocks.0.ffn.down.")


def test_probes_leave_no_trace(model, task, settings):
    before = {name: set(vars(module)) for name, module in model.named_modules()}
    find_culprit(Learner(model, task, settings), lambda: task.loss(model))
    assert {name: set(vars(module)) for name, module in model.named_modules()} == before
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_a_loss_that_is_wrong_by_itself_names_the_task(model):
    with pytest.raises(
        DivergedError, match="first the loss of the task 'toy', every module's output being finite"
    ):
        fit(model, Spoiled(model, {5, 6}, loss_itself()), settings_with())


def test_a_gradient_that_is_not_finite_names_parameter_and_row(model, caplog):
    class Steep(ToyTask):
        calls = 0

        def loss(self, model):
            self.calls += torch.is_grad_enabled()
            weight = model.tokenizer.features.table.weight[4]
            # sqrt is finite at 0 and its slope is not
            steep = (weight - weight.detach()).abs().sum().sqrt() if self.calls == 2 else 0.0
            return super().loss(model) + steep

    assert fit(model, Steep(), settings_with()).lowered
    assert (
        "the gradient is not finite; first the gradient of model.tokenizer.features.table.weight, row 4"
        in caplog.text
    )


def test_the_gradient_of_a_curvature_names_the_head(model, caplog):
    class Steep(ToyTask):
        calls = 0

        def loss(self, model):
            self.calls += torch.is_grad_enabled()
            k = model.curvatures[0, 1]
            steep = (k - k.detach()).abs().sqrt() if self.calls == 2 else 0.0
            return super().loss(model) + steep

    fit(model, Steep(), settings_with())
    assert (
        "first the gradient of model.encoder.blocks.0.attention.space.curvature, head 1 (curvature"
        in caplog.text
    )


def test_a_norm_that_overflows_is_not_used(model, caplog):
    class Huge(ToyTask):
        calls = 0

        def loss(self, model):
            self.calls += torch.is_grad_enabled()
            return super().loss(model) * (1e25 if self.calls == 2 else 1.0)

    assert fit(model, Huge(), settings_with()).lowered
    assert "first the gradient (finite, but its norm overflows) of model." in caplog.text


def test_a_figure_that_is_not_finite_counts_too(model, caplog):
    class Undefined(ToyTask):
        calls = 0

        def evaluate(self, model):
            self.calls += 1
            return super().evaluate(model) | ({"map": math.nan} if self.calls in (2, 3) else {})

    outcome = fit(model, Undefined(), settings_with())
    assert outcome.lowered
    assert "epoch 6: the metric 'map' is not finite; first a metric of the task 'toy'" in caplog.text
    assert "Going back to epoch 3" in caplog.text


@pytest.mark.parametrize("wrong", [2, 5])  # back to the very beginning, and to the evaluation of epoch 3
def test_the_way_back_survives_a_crash(wrong, tmp_path, without_sync):
    """A run that went back, is stopped after any epoch and resumed, has the rows of one that was not stopped."""

    def run(folder, *, crash_at=None, already=0):
        torch.manual_seed(0)
        model = toy_model()
        task = Spoiled(model, {wrong}, loss_itself())
        task.count = already

        def listen(progress):
            seen.append((progress.epoch, task.count))
            if task.count == crash_at:
                raise RuntimeError("crash")

        with RunFolder(folder) as run:
            run.begin({}, resume=True)
            outcome = fit(model, task, settings_with(epochs=7), run=run, listen=listen)
            run.finish(model, {}, {}, [])
        return outcome

    seen = []
    whole = run(tmp_path / "whole")
    assert whole.lowered
    for crash_at in [count for _, count in seen]:
        folder = tmp_path / f"crash-{crash_at}"
        with pytest.raises(RuntimeError, match="crash"):
            run(folder, crash_at=crash_at)
        # the checkpoint of the epoch before the crash is the last: its count is one less
        run(folder, already=crash_at - 1)
        assert (folder / "metrics.jsonl").read_bytes() == (tmp_path / "whole" / "metrics.jsonl").read_bytes()
        ours, theirs = (
            load_file(path / "checkpoints" / "epoch-000007.safetensors")
            for path in (folder, tmp_path / "whole")
        )
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_going_back_leaves_a_folder_that_can_be_resumed(model, tmp_path):
    """Later checkpoints go before the rows that they count on; the new one tells that rates were lowered."""
    task = Spoiled(model, {6}, loss_itself())
    looked = []

    def listen(progress):
        if task.count == 7:  # the first epoch after going back from 6 to 3
            looked.append(
                [json.loads(line)["epoch"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
            )
            looked.append(run.checkpoints.epochs())
            looked.append(run.checkpoints.load(3).lowered)

    with RunFolder(tmp_path) as run:
        run.begin({}, resume=False)
        fit(model, task, settings_with(), run=run, listen=listen)
    assert looked == [[1, 2, 3, 4], [3], True]


def test_the_curvature_named_is_the_spaces_not_a_parameter():
    graph = to_graph(labelled_graph(20))
    model = HGCN(6, classes=3, layers=1, curvature=-1.0)
    task = NodeClassification(graph, make_split(graph, "random", seed=0))
    raw = model.layers[0].space.curvature.item()
    with torch.no_grad():
        model.layers[0].linear = nn.Linear(16, 16)
        model.layers[0].linear.weight[0, 0] = math.nan
    culprit = find_culprit(Learner(model, task, TrainOptions()), lambda: task.loss(model))
    assert culprit.curvature == pytest.approx([-1.0])
    assert culprit.curvature != pytest.approx([raw])
