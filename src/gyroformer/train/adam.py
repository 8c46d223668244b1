"""Adam as torch has it, without the doors to torch's compiler."""

import inspect
from typing import Any

import torch

_step = inspect.unwrap(torch.optim.Adam.step)


class Adam(torch.optim.Adam):
    """The same steps, bit for bit, for code that does not compile its optimizer.

    torch guards these methods against being traced, and imports its compiler for that: a second of every command.
    """

    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)
    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Take a step, as :meth:`torch.optim.Adam.step` does."""
        return _step(self, closure)
