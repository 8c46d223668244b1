"""The check of a value against its declared type and range, and the reading of a value typed as text."""

import dataclasses as dc
import json
import math
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from gyroformer.errors import UsageError, did_you_mean

NONE_WORDS = {"none", "null"}
TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dc.dataclass(frozen=True)
class Range:
    """The numbers that an option may be; None for no limit."""

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None

    def holds(self, value: float) -> bool:
        """Return whether ``value`` lies in the range."""
        return not (
            (self.at_least is not None and value < self.at_least)
            or (self.above is not None and value <= self.above)
            or (self.at_most is not None and value > self.at_most)
            or (self.below is not None and value >= self.below)
        )

    def words(self) -> str:
        """Return the range in words, e.g. ``" of at least 0 and below 1"``; empty without limits."""
        named = (
            ("of at least", self.at_least),
            ("above", self.above),
            ("at most", self.at_most),
            ("below", self.below),
        )
        parts = [f"{word} {limit:,.12g}" for word, limit in named if limit is not None]
        return f" {' and '.join(parts)}" if parts else ""


ANY = Range()


def checked(hint: Any, value: Any, name: str, limits: Range = ANY) -> Any:
    """Return ``value`` as the type ``hint``, or raise :class:`UsageError` naming it.

    A whole number becomes a float where a float is wanted, and numpy's numbers become Python's; nothing else is
    converted.
    """
    value = _unboxed(value)
    for one in alternatives(hint):
        fits, result = _fit(one, value, limits)
        if fits:
            return result
    raise UsageError(f"{name} must be {described(hint, limits)}; got {value!r}{_near(hint, value)}")


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise if ``value`` is none of ``choices``."""
    checked(Literal[tuple(choices)], value, name)


def from_text(hint: Any, text: str, name: str, limits: Range = ANY) -> Any:
    """Return the value that ``text``, typed by a user, stands for."""
    if not text:
        raise UsageError(f"{name} is empty: give {described(hint, limits)}")
    for one in alternatives(hint):
        try:
            value = _parsed(one, text)
        except ValueError:
            continue
        fits, result = _fit(one, value, limits)
        if fits:
            return result
    raise UsageError(f"{name} must be {described(hint, limits)}; got {text!r}{_near(hint, text)}")


def described(hint: Any, limits: Range = ANY) -> str:
    """Return in words what a value of the type may be."""
    words = [_one_described(one, limits) for one in alternatives(hint)]
    return " or ".join(dict.fromkeys(words))


def choices_of(hint: Any) -> list[str]:
    """Return the words that an option may be, if its type lists any."""
    listed = [one for one in alternatives(hint) if get_origin(one) is Literal]
    return [str(choice) for one in listed for choice in get_args(one)]


def alternatives(hint: Any) -> tuple[Any, ...]:
    """Return the types that a union joins; a type by itself is the only one."""
    return get_args(hint) if get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def _unboxed(value: Any) -> Any:
    """Return numpy's and torch's single numbers, which a grid of parameters may hold, as Python's."""
    if isinstance(value, (int, float, str, type(None))) or getattr(value, "shape", None) != ():
        return value
    return value.item()


def _fit(hint: Any, value: Any, limits: Range) -> tuple[bool, Any]:
    """Return whether ``value`` fits one type, and the value as that type."""
    origin = get_origin(hint)
    if hint is Any:
        return True, value
    if hint is None or hint is type(None):
        return value is None, value
    if origin is Literal:
        return any(value == choice and type(value) is type(choice) for choice in get_args(hint)), value
    if hint is bool:
        return isinstance(value, bool), value
    if hint in (int, float):
        return _fit_number(hint, value, limits)
    if origin is dict or hint is dict:
        return isinstance(value, Mapping), value
    if origin is not None and issubclass(origin, Sequence):
        return _fit_sequence(hint, value, limits)
    return isinstance(value, hint), value


def _fit_number(hint: Any, value: Any, limits: Range) -> tuple[bool, Any]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False, value
    if hint is int:
        return isinstance(value, int) and limits.holds(value), value
    try:
        number = float(value)
    except OverflowError:
        return False, value
    return math.isfinite(number) and limits.holds(number), number


def _fit_sequence(hint: Any, value: Any, limits: Range) -> tuple[bool, Any]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        return False, value
    items = [_fit(get_args(hint)[0], _unboxed(item), limits) for item in value]
    return all(fits for fits, _ in items), [item for _, item in items]


def _parsed(hint: Any, text: str) -> Any:
    """Return ``text`` as a value of one type, not yet in range; ValueError if it cannot be."""
    if hint is None or hint is type(None):
        if text.lower() not in NONE_WORDS:
            raise ValueError(text)
        return None
    if get_origin(hint) is Literal:
        return next((choice for choice in get_args(hint) if str(choice) == text), text)
    if hint is bool:
        if text.lower() not in TRUTH:
            raise ValueError(text)
        return TRUTH[text.lower()]
    if hint in (int, float):
        return hint(text)
    if hint is str:
        return text
    value: Any = json.loads(text)
    return value


def _one_described(hint: Any, limits: Range) -> str:
    if hint is None or hint is type(None):
        return "none"
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, get_args(hint)))}"
    simple = {bool: "true or false", str: "text", int: "a whole number", float: "a finite number"}
    if hint in simple:
        return simple[hint] + (limits.words() if hint in (int, float) else "")
    if get_origin(hint) is not None and issubclass(get_origin(hint), Sequence):
        return {int: "a list of whole numbers", float: "a list of numbers"}.get(
            get_args(hint)[0], "a list of lists"
        )
    return "a table" if get_origin(hint) is dict or hint is dict else getattr(hint, "__name__", str(hint))


def _near(hint: Any, value: Any) -> str:
    choices = choices_of(hint)
    return did_you_mean(value, choices) if isinstance(value, str) else ""
