"""Settings as frozen dataclasses that go to plain JSON and TOML values and back, strictly."""

import dataclasses as dc
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args, get_origin

from gyroformer.errors import UsageError, did_you_mean

Settings = TypeVar("Settings")


def as_plain(settings: Any) -> dict[str, Any]:
    """Return the settings as nested dictionaries of JSON values."""
    return dc.asdict(settings)


def from_plain(kind: type[Settings], values: Mapping[str, Any], place: str = "") -> Settings:
    """Return the dataclass ``kind`` filled from ``values``; absent keys keep their defaults.

    Args:
        kind: a dataclass whose fields are plain values, literals, dictionaries or dataclasses.
        values: nested dictionaries, as ``as_plain`` returns them or a TOML file holds them.
        place: where the values come from, for errors.

    Raises:
        UsageError: if a key is unknown or a value is not of the field's type.
    """
    hints = typing.get_type_hints(kind)
    known = [field.name for field in dc.fields(kind)]  # type: ignore[arg-type]
    filled = {}
    for key, value in values.items():
        where = f"{place}.{key}" if place else key
        if key not in known:
            raise UsageError(f"no setting is called {where!r}{did_you_mean(key, known)}")
        filled[key] = _checked(hints[key], value, where)
    return kind(**filled)


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` with the values of ``over`` in their places, table by table."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        both = isinstance(value, Mapping) and isinstance(old, Mapping)
        result[key] = merged(old, value) if both else value  # type: ignore[arg-type]
    return result


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise if ``value`` is none of ``choices``."""
    if value not in choices:
        known = [str(choice) for choice in choices]
        near = did_you_mean(str(value), known)
        raise UsageError(f"{name} must be one of {', '.join(known)}; got {value!r}{near}")


def _checked(hint: Any, value: Any, where: str) -> Any:
    """Return ``value`` as the type ``hint``, which is one of the few kinds that settings use."""
    origin, options = get_origin(hint), get_args(hint)
    if origin is Literal:
        check_choice(where, value, options)
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in options:
            return None
        return _first_fit([option for option in options if option is not type(None)], value, where)
    if dc.is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, Mapping):
            raise UsageError(f"{where} must be a table of settings, got {value!r}")
        return from_plain(hint, value, where)
    if origin is dict or hint is dict:
        if not isinstance(value, Mapping):
            raise UsageError(f"{where} must be a table, got {value!r}")
        return dict(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is not Any and (not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool)):
        raise UsageError(f"{where} must be of type {hint.__name__}, got {value!r}")
    return value


def _first_fit(options: list[Any], value: Any, where: str) -> Any:
    """Return ``value`` as the first of the types that takes it."""
    problem: UsageError | None = None
    for option in options:
        try:
            return _checked(option, value, where)
        except UsageError as error:
            problem = error
    assert problem is not None
    raise problem
