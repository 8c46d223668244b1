import dataclasses as dc
from typing import Literal

import pytest

from gyroformer.errors import UsageError
from gyroformer.options import as_plain, from_plain, merged


@dc.dataclass(frozen=True, kw_only=True)
class Inner:
    size: float = 1.0
    kind: Literal["a", "b"] = "a"


@dc.dataclass(frozen=True, kw_only=True)
class Outer:
    inner: Inner = Inner()
    count: Literal["all"] | int = "all"
    name: str | None = None
    on: bool = False
    more: dict[str, object] = dc.field(default_factory=dict)


def test_settings_survive_the_way_to_plain_values_and_back():
    settings = Outer(inner=Inner(size=2.5, kind="b"), count=7, name="x", on=True, more={"k": [1, 2]})
    assert from_plain(Outer, as_plain(settings)) == settings
    assert from_plain(Outer, {}) == Outer()
    assert from_plain(Outer, {"inner": {"size": 3}}).inner.size == 3.0
    assert isinstance(from_plain(Outer, {"inner": {"size": 3}}).inner.size, float)


@pytest.mark.parametrize(
    "values, words",
    [
        ({"inner": {"sise": 1}}, "no setting is called 'inner.sise'; did you mean 'size'"),
        ({"inner": {"size": "big"}}, "inner.size must be of type float, got 'big'"),
        ({"inner": {"kind": "c"}}, "inner.kind must be one of a, b; got 'c'"),
        ({"inner": 3}, "inner must be a table of settings"),
        ({"count": "some"}, "count"),
        ({"count": True}, "count must be of type int"),
        ({"on": 1}, "on must be of type bool"),
        ({"more": []}, "more must be a table"),
    ],
)
def test_what_does_not_fit_is_named(values, words):
    with pytest.raises(UsageError) as caught:
        from_plain(Outer, values)
    assert words in str(caught.value)


def test_merging_goes_into_tables_and_leaves_the_base_alone():
    base = {"a": {"x": 1, "y": 2}, "b": 3}
    assert merged(base, {"a": {"y": 5}, "c": 6}) == {"a": {"x": 1, "y": 5}, "b": 3, "c": 6}
    assert base == {"a": {"x": 1, "y": 2}, "b": 3}
