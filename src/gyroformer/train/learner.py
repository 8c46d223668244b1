"""All that a training step changes, as one flat dictionary of tensors: weights, Adam's moments, random states."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from gyroformer.errors import CorruptFileError, UsageError
from gyroformer.options.training import TrainOptions
from gyroformer.runs.checkpoint import State
from gyroformer.tasks.task import Trainable
from gyroformer.train.adam import Adam

#: what the learning rates are multiplied by, once, after a step that was not finite
LOWERING = 0.1
#: Adam's tensors of the shape of a parameter
MOMENTS = ("exp_avg", "exp_avg_sq")
#: before the names of what the task keeps
KEPT = "kept."


class Learner:
    """A model, the task's own parameters, and their optimizer.

    Adam with two groups: names that end in ``curvature`` have a learning rate of their own and no weight decay.
    """

    def __init__(self, model: Any, task: Trainable, settings: TrainOptions) -> None:
        self.model, self.task, self.settings = model, task, settings
        self.parts: dict[str, nn.Module] = {"model": model}
        if task.module is not None:
            self.parts["task"] = task.module
        self.parameters = {name: p for name, p in self._named_parameters() if p.requires_grad}
        if not self.parameters:
            raise UsageError("the model has no parameter to train")
        curved = [p for name, p in self.parameters.items() if name.endswith("curvature")]
        others = [p for name, p in self.parameters.items() if not name.endswith("curvature")]
        self.optimizer = Adam(
            [
                {"params": others, "lr": settings.lr, "weight_decay": settings.weight_decay},
                {"params": curved, "lr": settings.curvature_lr, "weight_decay": 0.0},
            ]
        )

    def _named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        for part, module in self.parts.items():
            for name, parameter in module.named_parameters():
                yield f"{part}.{name}", parameter

    def train(self, mode: bool = True) -> None:
        """Put the model and the task into training or evaluation mode."""
        for module in self.parts.values():
            module.train(mode)

    def set_rates(self, epoch: int, *, lowered: bool, epochs: int | None = None) -> float:
        """Set the learning rates of ``epoch`` in a run of ``epochs``; return that of the ordinary parameters."""
        factor = self.settings.factor(epoch, epochs) * (LOWERING if lowered else 1.0)
        ordinary, curved = self.optimizer.param_groups
        ordinary["lr"] = self.settings.lr * factor
        curved["lr"] = self.settings.curvature_lr * factor
        return float(ordinary["lr"])

    def curvatures(self) -> list[float] | None:
        """Return the model's curvatures as a flat list, layer by layer; None if it has none."""
        found = getattr(self.model, "curvatures", None)
        return found.detach().flatten().tolist() if isinstance(found, Tensor) else None

    def weights(self) -> State:
        """Return a copy of the model's and the task's parameters and buffers."""
        return {
            f"{part}.{name}": tensor.detach().clone()
            for part, module in self.parts.items()
            for name, tensor in module.state_dict().items()
        }

    def load_weights(self, weights: State) -> None:
        """Set parameters and buffers to a copy of those that ``weights`` returned."""
        for part, module in self.parts.items():
            prefix = f"{part}."
            module.load_state_dict(
                {name.removeprefix(prefix): t for name, t in weights.items() if name.startswith(prefix)}
            )

    def state(self) -> State:
        """Return a copy of all that a step changes."""
        moments = {
            f"adam.{name}.{key}": value.detach().clone()
            for name, parameter in self.parameters.items()
            for key, value in self.optimizer.state[parameter].items()
        }
        return self.weights() | moments | self._kept() | random_state()

    def _kept(self) -> State:
        """Return a copy of what the task keeps for its next steps."""
        found = {} if self.task.kept is None else self.task.kept.state_dict()
        return {f"{KEPT}{name}": tensor.detach().clone() for name, tensor in found.items()}

    def load_state(self, state: State) -> None:
        """Go back to ``state``, bit for bit."""
        self.load_weights({name: t for name, t in state.items() if name.startswith(("model.", "task."))})
        self.optimizer.state.clear()
        for name, parameter in self.parameters.items():
            prefix = f"adam.{name}."
            moments: dict[str, Any] = {
                key.removeprefix(prefix): t.clone() for key, t in state.items() if key.startswith(prefix)
            }
            for key, value in moments.items():
                # Adam counts its steps on the CPU, wherever the parameter is
                self.optimizer.state[parameter][key] = value if key == "step" else value.to(parameter.device)
        if self.task.kept is not None:
            self.task.kept.load_state_dict(
                {name.removeprefix(KEPT): t for name, t in state.items() if name.startswith(KEPT)}
            )
        load_random_state(state)

    def check_state(self, state: State, where: str) -> None:
        """Raise if ``state`` is not one of this model and task, by name, shape and dtype."""
        own = self.weights() | self._kept() | {"rng.cpu": torch.get_rng_state()}
        found = {
            name: t for name, t in state.items() if name.startswith(("model.", "task.", KEPT, "rng.cpu"))
        }
        wrong = sorted(own.keys() ^ found.keys())
        wrong += [name for name in own.keys() & found.keys() if not _alike(own[name], found[name])]
        wrong += [
            f"adam.{name}.{key}"
            for name, parameter in self.parameters.items()
            for key in MOMENTS
            if not _alike(parameter, state.get(f"adam.{name}.{key}", parameter))
        ]
        if wrong:
            raise CorruptFileError(
                f"{where}: does not fit the model (first: {wrong[0]!r}); use another --out"
            )

    def bad_weight(self) -> str | None:
        """Return the name of a parameter that is not finite; None if all are."""
        with torch.no_grad():
            return self._bad_weight()

    def _bad_weight(self) -> str | None:
        if bool(torch.isfinite(get_total_norm(list(self.parameters.values())))):  # asks the device once
            return None
        return next((name for name, p in self.parameters.items() if not bool(torch.isfinite(p).all())), None)


def _alike(ours: Tensor, theirs: Tensor) -> bool:
    return ours.shape == theirs.shape and ours.dtype == theirs.dtype


def random_state() -> State:
    """Return the states of torch's global random generators."""
    state = {"rng.cpu": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state |= {f"rng.cuda.{i}": s for i, s in enumerate(torch.cuda.get_rng_state_all())}
    return state


def load_random_state(state: State) -> None:
    """Set torch's global random generators."""
    torch.set_rng_state(state["rng.cpu"])
    count = sum(name.startswith("rng.cuda.") for name in state)
    if count and torch.cuda.is_available():
        torch.cuda.set_rng_state_all([state[f"rng.cuda.{i}"] for i in range(count)])
