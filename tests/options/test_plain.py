from typing import Literal

import pytest

from gyroformer.errors import UsageError
from gyroformer.options import Options, as_plain, from_plain, merged, option


class Inner(Options):
    size: float = option("the size", default=1.0)
    kind: Literal["a", "b"] = option("the kind", default="a")


class Outer(Options):
    inner: Inner = option("more options", default_factory=Inner)
    count: Literal["all"] | int = option("how many", default="all")
    name: str | None = option("the name", default=None)
    on: bool = option("whether", default=False)
    more: dict[str, object] = option("anything", default_factory=dict)


def test_settings_survive_the_way_to_plain_values_and_back():
    settings = Outer(inner=Inner(size=2.5, kind="b"), count=7, name="x", on=True, more={"k": [1, 2]})
    assert from_plain(Outer, as_plain(settings)) == settings
    assert from_plain(Outer, {}) == Outer()
    assert from_plain(Outer, {"inner": {"size": 3}}).inner.size == 3.0
    assert isinstance(from_plain(Outer, {"inner": {"size": 3}}).inner.size, float)


@pytest.mark.parametrize(
    "values, words",
    [
        ({"inner": {"sise": 1}}, "there is no option 'inner.sise'; did you mean 'size'"),
        ({"inner": {"size": "big"}}, "inner.size must be a finite number; got 'big'"),
        ({"inner": {"kind": "c"}}, "inner.kind must be one of a, b; got 'c'"),
        ({"inner": 3}, "inner must be a table"),
        ({"count": "some"}, "count"),
        ({"count": True}, "count must be one of all or a whole number; got True"),
        ({"on": 1}, "on must be true or false"),
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
