"""Functions as torch operators, and marks for ``torch.compile``, that do not load torch's compiler.

``torch.library.custom_op``, ``torch.compiler.disable`` and ``torch.compiler.assume_constant_result`` import the whole
of it, sympy included: a second of processor time of every command, most of which compile nothing. What is here does the
same for code that is compiled, and leaves the compiler alone for code that is not.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch
from torch._compile import _disable_dynamo

P = ParamSpec("P")
R = TypeVar("R")

NAMESPACE = "gyroformer"
_library = torch.library.Library(NAMESPACE, "FRAGMENT")


class Operator:
    """A function that is an operator of torch, ``torch.ops.gyroformer.NAME``; it writes to none of its arguments."""

    def __init__(self, name: str, kernel: Callable[..., Any]) -> None:
        self._name = f"{NAMESPACE}::{name}"
        _library.define(name + torch.library.infer_schema(kernel, mutates_args=()))
        _library.impl(name, untraced(kernel), "CompositeExplicitAutograd")
        self._called = getattr(getattr(torch.ops, NAMESPACE), name).default

    def __call__(self, *args: Any) -> Any:
        """Return what the function does."""
        return self._called(*args)

    def register_fake(self, shapes: Callable[..., Any]) -> Callable[..., Any]:
        """Take a function that gives results of the right shapes, for a compiler."""
        torch.library.register_fake(self._name, shapes, lib=_library)
        return shapes

    def register_autograd(
        self, backward: Callable[..., Any], *, setup_context: Callable[[Any, Any, Any], None]
    ) -> None:
        """Take the gradient, and what keeps for it what it needs."""
        torch.library.register_autograd(self._name, backward, setup_context=setup_context, lib=_library)


def operator(name: str) -> Callable[[Callable[..., Any]], Operator]:
    """Return a decorator that makes a function the operator ``gyroformer::NAME``."""
    return functools.partial(Operator, name)


def untraced(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that ``torch.compile`` is to call and not to look into, as ``torch.compiler.disable`` does.

    It can only be at work once its package is loaded.
    """
    unseen = _disable_dynamo(function)  # imports what it needs when it is called

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if torch.compiler.is_compiling() or "torch._dynamo" in sys.modules:
            return unseen(*args, **kwargs)
        return function(*args, **kwargs)

    return call


def constant(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function whose result compiled code may keep, as ``torch.compiler.assume_constant_result`` does."""
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function
