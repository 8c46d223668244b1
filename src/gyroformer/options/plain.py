"""Options to plain JSON and TOML values and back, strictly."""

import dataclasses as dc
from collections.abc import Mapping
from typing import Any, TypeVar

from gyroformer.errors import UsageError, did_you_mean
from gyroformer.options.check import checked
from gyroformer.options.declare import Options, options_of

Kind = TypeVar("Kind", bound=Options)


def as_plain(options: Options) -> dict[str, Any]:
    """Return the options as nested dictionaries of JSON values."""
    return dc.asdict(options)  # type: ignore[call-overload]


def from_plain(kind: type[Kind], values: Any, name: str = "") -> Kind:
    """Return the options ``kind`` filled from ``values``; absent keys keep their defaults.

    Args:
        kind: a class of options.
        values: nested dictionaries, as ``as_plain`` returns them or a TOML file holds them.
        name: what the values are called, for errors.

    Raises:
        UsageError: if a key is unknown or a value is not of the declared type and range.
    """
    if not isinstance(values, Mapping):
        raise UsageError(f"{name or 'the options'} must be a table, got {values!r}")
    known = {one.name: one for one in options_of(kind)}
    filled = {}
    for key, value in values.items():
        inner = f"{name}.{key}" if name else str(key)
        if key not in known:
            raise UsageError(f"there is no option {inner!r}{did_you_mean(str(key), known)}")
        hint = known[key].hint
        if isinstance(hint, type) and issubclass(hint, Options):
            filled[key] = value if isinstance(value, hint) else from_plain(hint, value, inner)
        else:
            filled[key] = checked(hint, value, inner, known[key].range)
    return kind(**filled)


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` with the values of ``over`` in it, table by table."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        both = isinstance(value, Mapping) and isinstance(old, Mapping)
        result[key] = merged(old, value) if both else value  # type: ignore[arg-type]
    return result
