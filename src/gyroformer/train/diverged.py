"""Where a computation left the finite numbers: the module, the head and its curvature.

The forward pass of the failed step is repeated from the same random state with a probe on every module. Modules
that work on tangent vectors are called by their method ``tangent`` and not by ``forward``: it is watched as well.
"""

import dataclasses as dc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from gyroformer.nn.curvature import HeadCurvature
from gyroformer.train.learner import Learner


class NotFinite(ArithmeticError):
    """A step whose result must not be used; the loop goes back to the last good state."""


@dc.dataclass(frozen=True, slots=True)
class Culprit:
    """What first left the finite numbers.

    Attributes:
        kind: what was not finite, e.g. ``"the output"`` or ``"the gradient"``.
        name: the module or parameter.
        head: the head, if one alone is concerned.
        row: the row of a parameter.
        curvature: the curvature of that head, or the curvatures of that layer.
    """

    kind: str
    name: str
    head: int | None = None
    row: int | None = None
    curvature: float | list[float] | None = None

    def __str__(self) -> str:
        head = "" if self.head is None else f", head {self.head}"
        row = "" if self.row is None else f", row {self.row}"
        if self.curvature is None:
            curvature = ""
        elif isinstance(self.curvature, list):
            curvature = f" (curvatures {' '.join(f'{k:.4g}' for k in self.curvature)})"
        else:
            curvature = f" (curvature {self.curvature:.4g})"
        return f"{self.kind} of {self.name}{head}{row}{curvature}"


def find_culprit(learner: Learner, forward: Callable[[], Any]) -> Culprit:
    """Return what made a step go wrong; ``forward`` repeats it, and gradients are those of the failed step."""
    weight = learner.bad_weight()
    if weight is not None:
        return _with_curvature(learner, Culprit("the value", weight))
    found: list[Culprit] = []
    executed: list[str] = []

    def look(kind: str, name: str, value: object) -> None:
        if not found and (bad := _first_bad(value)) is not None:
            found.append(Culprit(kind, name, head=_head(learner, bad)))

    # compiled code would not call the probes
    with torch.no_grad(), torch.compiler.set_stance("force_eager"), _probes(learner.parts, look, executed):
        result = forward()
    if found:
        return _with_curvature(learner, found[0])
    if isinstance(result, Tensor) and not bool(torch.isfinite(result).all()):
        return Culprit("the loss", f"the task {learner.task.name!r}, every module's output being finite")
    return _with_curvature(learner, _bad_gradient(learner, executed))


def _first_bad(value: object) -> Tensor | None:
    """Return the first tensor in ``value`` with an entry that is not finite."""
    if isinstance(value, Tensor):
        value = value if value.layout == torch.strided else value.values()  # of a sparse matrix, its entries
        return None if bool(torch.isfinite(value).all()) else value
    if dc.is_dataclass(value):
        value = [getattr(value, field.name) for field in dc.fields(value)]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return next((bad for item in value if (bad := _first_bad(item)) is not None), None)
    return None


@contextmanager
def _probes(
    parts: dict[str, nn.Module], look: Callable[[str, str, object], None], executed: list[str]
) -> Iterator[None]:
    """Call ``look`` on what goes into and comes out of every module while the block runs, in that order."""
    hooks: list[Any] = []
    wrapped: list[tuple[nn.Module, dict[str, Any]]] = []

    def watch(name: str, module: nn.Module) -> None:
        def before(_: nn.Module, args: tuple[Any, ...]) -> None:
            executed.append(name)
            look("the input", name, args)

        hooks.append(module.register_forward_pre_hook(before))
        hooks.append(module.register_forward_hook(lambda _, __, output: look("the output", name, output)))
        tangent = getattr(module, "tangent", None)
        if callable(tangent):

            def probed(*args: Any, **kwargs: Any) -> Any:
                executed.append(name)
                look("the input", name, args)
                output = tangent(*args, **kwargs)
                look("the output", name, output)
                return output

            wrapped.append((module, {key: vars(module)[key] for key in vars(module) if key == "tangent"}))
            vars(module)["tangent"] = probed

    try:
        for part, root in parts.items():
            for name, module in root.named_modules():
                watch(f"{part}.{name}" if part == "task" else name or "the model", module)
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for module, before_us in wrapped:
            del vars(module)["tangent"]
            vars(module).update(before_us)


def _head(learner: Learner, value: Tensor) -> int | None:
    """Return the only head of ``value`` with an entry that is not finite; None if it has no heads or several."""
    heads, width = _head_shape(learner.model)
    if heads is None:
        return None
    if value.dim() >= 2 and value.size(-2) == heads and (width is None or value.size(-1) == width):
        bad = ~torch.isfinite(value)
    elif width is not None and value.dim() >= 2 and value.size(-1) == heads * width:
        bad = ~torch.isfinite(value.unflatten(-1, (heads, width)))
    else:
        return None
    concerned = bad.movedim(-2, 0).flatten(1).any(1).nonzero().flatten().tolist()
    return concerned[0] if len(concerned) == 1 else None


def _head_shape(model: nn.Module) -> tuple[int | None, int | None]:
    """Return the number of heads and, if an encoder tells, the width of one."""
    curvatures = getattr(model, "curvatures", None)
    if not isinstance(curvatures, Tensor) or curvatures.dim() != 2:
        return None, None
    heads = curvatures.size(1)
    dim = getattr(getattr(model, "encoder", None), "dim", None)
    return heads, dim // heads if isinstance(dim, int) else None


def _bad_gradient(learner: Learner, executed: list[str]) -> Culprit:
    """Return the parameter whose gradient was the first to go wrong: of the module executed last, as it runs back."""
    executed_at = {name: i for i, name in enumerate(executed)}

    def when(name: str) -> int:
        part, _, inner = name.partition(".")
        owner = inner.rpartition(".")[0]
        return executed_at.get(f"task.{owner}".rstrip(".") if part == "task" else owner or "the model", -1)

    for name in sorted(learner.parameters, key=when, reverse=True):
        gradient = learner.parameters[name].grad
        if gradient is not None and not bool(torch.isfinite(gradient).all()):
            row = int((~torch.isfinite(gradient)).nonzero()[0, 0]) if gradient.dim() else 0
            if name.endswith("curvature"):
                return Culprit("the gradient", name, head=row)
            return Culprit("the gradient", name, row=row)
    norms = {name: float(p.grad.norm()) for name, p in learner.parameters.items() if p.grad is not None}
    if not norms:
        return Culprit("a metric", f"the task {learner.task.name!r}, every module's output being finite")
    return Culprit("the gradient (finite, but its norm overflows)", max(norms, key=lambda name: norms[name]))


def _with_curvature(learner: Learner, culprit: Culprit) -> Culprit:
    """Return ``culprit`` with the curvature of its head, or the curvatures of its layer."""
    path = culprit.name.removeprefix("model.").split(".")
    best: tuple[int, list[float]] = (0, [])
    for name, module in learner.model.named_modules():
        if isinstance(module, HeadCurvature):
            shared = 0
            for ours, theirs in zip(path, name.split("."), strict=False):
                if ours != theirs:
                    break
                shared += 1
            if shared > best[0]:
                # what the module gives, not its parameter: that may be the argument of a softplus
                best = (shared, module().detach().flatten().tolist())
    values = best[1]
    if not values:
        return culprit
    if culprit.head is not None:
        return dc.replace(culprit, curvature=values[min(culprit.head, len(values) - 1)])
    return dc.replace(culprit, curvature=values)
