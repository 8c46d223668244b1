"""How an option is declared: once, as a field of a class of :class:`Options`, with type, range, default and help.

    class TrainOptions(Options):
        lr: float = option("learning rate of Adam", default=1e-2, at_least=0)

Everything else is derived from the field: the check of a value, the constructor's signature, ``config.json``,
recipes, command-line flags, the estimators' parameters and the tables of the documentation.
"""

import dataclasses as dc
import typing
from collections.abc import Iterator
from typing import Any, Self, TypeVar, dataclass_transform

from gyroformer.options.check import ANY, Range, checked

_DECLARED = "option"

Part = TypeVar("Part", bound="Options")


@dc.dataclass(frozen=True)
class Option:
    """A declared option.

    Attributes:
        name: the field's name.
        hint: its type.
        default: ``dataclasses.MISSING`` if it must be given.
        help: one line, without a full stop.
        range: the numbers that it may be.
        flag: the name of its flag on the command line, if that is not the field's.
        neutral: for an option that is younger than kept results: the value at which a job is the one it was before,
            left out of the checksum that results are kept under; ``dataclasses.MISSING`` for all others.
    """

    name: str
    hint: Any
    default: Any
    help: str
    range: Range
    flag: str | None
    neutral: Any

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is dc.MISSING


def option(
    help: str = "",
    *,
    default: Any = dc.MISSING,
    default_factory: Any = dc.MISSING,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    flag: str | None = None,
    neutral: Any = dc.MISSING,
    kw_only: bool = True,
) -> Any:
    """Return the field of an option.

    A class that changes the default of an inherited option declares it again without ``help``: help and range are
    then those of the class that it inherits from.
    """
    declared = (help, Range(at_least, above, at_most, below), flag, neutral)
    return dc.field(
        default=default,
        default_factory=default_factory,
        kw_only=kw_only,
        metadata={_DECLARED: declared},
    )


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option,))
class Options:
    """Base of all options: a subclass is a frozen dataclass whose values are checked when it is made."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        dc.dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        for one in options_of(type(self)):
            value = checked(one.hint, getattr(self, one.name), one.name, one.range)
            object.__setattr__(self, one.name, value)

    def part(self, kind: type[Part], /, **changes: Any) -> Part:
        """Return the options of ``kind`` that these have too, with ``changes``."""
        own = {field.name for field in dc.fields(self)}  # type: ignore[arg-type]
        shared = {one.name: getattr(self, one.name) for one in options_of(kind) if one.name in own}
        return kind(**shared | changes)

    def but(self, **changes: Any) -> Self:
        """Return the same options with ``changes``."""
        return dc.replace(self, **changes)  # type: ignore[type-var]


_declared: dict[type[Options], tuple[Option, ...]] = {}


def options_of(kind: type[Options]) -> tuple[Option, ...]:
    """Return what a class of options declares, in the order of its fields."""
    if kind not in _declared:
        _declared[kind] = tuple(_read(kind))
    return _declared[kind]


def _read(kind: type[Options]) -> Iterator[Option]:
    hints = typing.get_type_hints(kind)
    for field in dc.fields(kind):  # type: ignore[arg-type]
        default = field.default if field.default_factory is dc.MISSING else field.default_factory()
        yield Option(field.name, hints[field.name], default, *_declaration(kind, field.name))


def _declaration(kind: type[Options], name: str) -> tuple[str, Range, str | None, Any]:
    """Return help, range, flag and neutral value of a field: its own, or those of the nearest base with help."""
    for base in kind.__mro__:
        field = vars(base).get("__dataclass_fields__", {}).get(name)
        declared: tuple[str, Range, str | None, Any] | None = field.metadata.get(_DECLARED) if field else None
        if declared is not None and declared[0]:
            return declared
    return "", ANY, None, dc.MISSING
