"""Constructors whose arguments are declared options.

class StereographicLinear(PointLayer):
@takes(LinearOptions)
def __init__(self, options: LinearOptions) -> None: ...

StereographicLinear(16, 8, heads=2)      # what editors, type checkers and help() show
StereographicLinear.of(options)          # the same from options that are made already
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from gyroformer.errors import did_you_mean
from gyroformer.options.check import choices_of
from gyroformer.options.declare import Option, Options, options_of

Arguments = ParamSpec("Arguments")
Made = TypeVar("Made")
Kind = TypeVar("Kind", bound=Options)


class FromOptions:
    """A class whose constructor is decorated with :func:`takes`."""

    @classmethod
    def of(cls, options: Options) -> Self:
        """Return an instance with these options."""
        return cls(options)  # type: ignore[call-arg]


def takes(
    kind: Callable[Arguments, Kind],
) -> Callable[[Callable[[Made, Kind], None]], Callable[Concatenate[Made, Arguments], None]]:
    """Make ``__init__(self, options)`` take the fields of ``kind`` as arguments, or ready options as the only one."""
    taken: Any = kind
    known = [one.name for one in options_of(taken)]

    def decorate(init: Callable[[Made, Kind], None]) -> Callable[Concatenate[Made, Arguments], None]:
        @functools.wraps(init)
        def build(self: Any, *args: Any, **keywords: Any) -> None:
            if len(args) == 1 and not keywords and isinstance(args[0], taken):
                init(self, args[0])
                return
            strange = next((key for key in keywords if key not in known), None)
            if strange is not None:
                raise TypeError(
                    f"{type(self).__name__}() has no option {strange!r}{did_you_mean(strange, known)}"
                )
            init(self, taken(*args, **keywords))

        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = [own, *inspect.signature(taken).parameters.values()]
        made: Any = build
        made.__signature__ = inspect.Signature(parameters, return_annotation=None)
        made.__doc__ = arguments_text(taken)
        made.__options__ = taken
        return made

    return decorate


def options_taken(made: type) -> type[Options]:
    """Return the class of options that the constructor of ``made`` takes."""
    kind: type[Options] = made.__init__.__options__  # type: ignore[misc]
    return kind


def arguments_text(kind: type[Options]) -> str:
    """Return the options of ``kind`` as the ``Args`` of a docstring."""
    return "Args:\n" + "\n".join(f"    {one.name}: {sentence(one)}" for one in options_of(kind))


def sentence(one: Option) -> str:
    """Return help, choices and range of an option as one sentence."""
    choices = choices_of(one.hint)
    listed = f" ({', '.join(choices)})" if choices and not all(word in one.help for word in choices) else ""
    return f"{one.help}{listed}{'' if one.required else f'; default {shown(one.default)}'}."


def shown(value: Any) -> str:
    """Return a value as a user would type it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
