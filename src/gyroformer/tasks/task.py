"""What the training loop needs to know about a task."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class Task(Protocol):
    """A loss to lower, and figures to judge a model by.

    A task may also be an ``nn.Module`` with parameters of its own (a decoder): the loop then trains, saves and
    restores them with the model's, under the prefix ``task.``.

    What must survive a resume lies in the model, in the task's parameters and buffers, and in torch's global
    random generators; ``loss`` draws from these and from no other source.
    """

    name: str

    def loss(self, model: Any) -> Tensor:
        """Return the scalar to be lowered; called in training mode once an epoch."""
        ...

    def evaluate(self, model: Any) -> dict[str, float]:
        """Return finite figures by name; called in evaluation mode without gradients, draws no random number."""
        ...

    def rank(self, metrics: Mapping[str, float]) -> tuple[float, ...]:
        """Return what selects the best state, larger is better; an empty tuple keeps the last state."""
        ...
