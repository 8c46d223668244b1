"""Options declared once: their checks, what subclasses inherit, signatures, and the declarations themselves."""

import inspect
import pkgutil
from typing import Literal

import numpy as np
import pytest
import torch

import gyroformer as gf
from gyroformer import options as options_package
from gyroformer.errors import UsageError
from gyroformer.estimators.base import EstimatorOptions
from gyroformer.models import MODELS
from gyroformer.nn import StereographicAttention, StereographicLinear, StereographicTransformer
from gyroformer.options import Options, option, options_of, takes
from gyroformer.options.check import checked, from_text
from gyroformer.options.constructor import FromOptions, options_taken
from gyroformer.options.layers import BlockOptions, CurvatureOptions
from gyroformer.tasks import TASKS


class Base(Options):
    first: int = option("the first", at_least=1, kw_only=False)
    size: float = option("the size", default=1.0, above=0, at_most=10)
    kind: Literal["a", "b"] = option("the kind", default="a")
    count: int | None = option("how many", default=None, at_least=0)


class Derived(Base):
    size: float = option(default=2.0)
    more: bool = option("whether more", default=False)


def test_a_changed_default_keeps_help_and_range():
    size = next(one for one in options_of(Derived) if one.name == "size")
    assert (size.default, size.help, size.range.at_most) == (2.0, "the size", 10)
    with pytest.raises(UsageError, match="size must be a finite number above 0 and at most 10; got 11"):
        Derived(1, size=11)


def test_options_are_frozen_and_made_into_others():
    made = Derived(3, kind="b")
    with pytest.raises(AttributeError):
        made.size = 3.0
    assert made.part(Base) == Base(3, size=2.0, kind="b")
    assert made.part(Base, kind="a").kind == "a"
    assert made.but(more=True).more is True
    with pytest.raises(UsageError, match="size"):
        made.but(size=-1.0)


@pytest.mark.parametrize(
    "values, words",
    [
        ({"first": 0}, "first must be a whole number of at least 1; got 0"),
        ({"first": True}, "first must be a whole number of at least 1; got True"),
        ({"first": 1.0}, "first must be a whole number of at least 1; got 1.0"),
        ({"first": None}, "first must be a whole number"),
        ({"size": 0}, "size must be a finite number above 0 and at most 10; got 0"),
        ({"size": float("nan")}, "size must be a finite number"),
        ({"size": float("inf")}, "size must be a finite number"),
        ({"size": 10**400}, "size must be a finite number"),
        ({"size": "1"}, "size must be a finite number"),
        ({"kind": "c"}, "kind must be one of a, b; got 'c'"),
        ({"count": -1}, "count must be a whole number of at least 0 or none; got -1"),
    ],
)
def test_what_does_not_fit_is_named(values, words):
    with pytest.raises(UsageError) as caught:
        Base(**{"first": 1} | values)
    assert words in str(caught.value)


def test_numbers_of_numpy_and_torch_become_pythons():
    made = Base(np.int64(3), size=np.float32(0.5), count=torch.tensor(2))
    assert [type(made.first), type(made.size), type(made.count)] == [int, float, int]
    assert isinstance(Base(1, size=3).size, float)
    assert checked(list[float] | float, np.array([1.0, 2.0]), "k") == [1.0, 2.0]


@pytest.mark.parametrize(
    "hint, text, value",
    [
        (int, "3", 3),
        (float, "3", 3.0),
        (float, "-1e-3", -1e-3),
        (bool, "false", False),
        (bool, "Yes", True),
        (int | None, "none", None),
        (Literal["all", "auto"] | int, "12", 12),
        (Literal["all", "auto"] | int, "all", "all"),
        (str | None, "0", "0"),
        (float | list[float], "[1, -0.5]", [1.0, -0.5]),
    ],
)
def test_text_is_read_by_the_declared_type(hint, text, value):
    found = from_text(hint, text, "it")
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("hint, text", [(int, "1.5"), (float, "nan"), (bool, "2"), (int, ""), (str, "")])
def test_text_that_is_no_such_value_is_named(hint, text):
    with pytest.raises(UsageError, match="--it"):
        from_text(hint, text, "--it")


class Made(FromOptions):
    @takes(Derived)
    def __init__(self, options: Derived) -> None:
        self.options = options


def test_a_constructor_takes_the_options_as_arguments():
    parameters = inspect.signature(Made).parameters
    assert list(parameters) == ["first", "size", "kind", "count", "more"]
    assert parameters["size"].default == 2.0
    assert parameters["first"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert parameters["more"].kind is inspect.Parameter.KEYWORD_ONLY
    assert "size: the size; default 2." in Made.__init__.__doc__
    assert Made(3, more=True).options == Derived(first=3, more=True)
    assert Made.of(Derived(3)).options == Derived(3)
    assert options_taken(Made) is Derived
    with pytest.raises(TypeError, match=r"Made\(\) has no option 'mroe'; did you mean 'more'"):
        Made(3, mroe=True)
    with pytest.raises(TypeError, match="first"):
        Made()
    with pytest.raises(TypeError, match="positional"):
        Made(3, 2.0)


def test_public_signatures_stay_as_they_are():
    shown = {
        made: list(inspect.signature(made).parameters)[:3] for made in (gf.FPST, StereographicTransformer)
    }
    assert shown[gf.FPST][0] == "in_features"
    assert shown[StereographicTransformer] == ["dim", "heads", "layers"]
    assert list(inspect.signature(StereographicAttention).parameters)[:2] == ["dim", "heads"]
    assert list(inspect.signature(StereographicLinear).parameters)[:2] == ["in_features", "out_features"]
    assert gf.FPST(8, dim=16, heads=2).options.dim == 16


def test_a_layer_takes_the_options_of_a_larger_whole():
    model = gf.FPST(3, dropout=0.5, dropout_kind="weight", curvature=[-1.0, 0.5])
    block = model.options.part(BlockOptions)
    assert (block.weight_dropout, block.tangent_dropout) == (0.5, 0.0)
    assert model.options.part(CurvatureOptions).curvature == [-1.0, 0.5]


@pytest.mark.parametrize("name", ["fpst", "tokengt"])
def test_a_misspelt_choice_is_refused_by_both_twins(name):
    with pytest.raises(
        UsageError, match="dropout_kind must be one of tangent, weight; got 'wieght'; did you"
    ):
        MODELS[name].make(3, dropout_kind="wieght")


def declared():
    """Return every class of options in the package."""
    for module in pkgutil.iter_modules(options_package.__path__, "gyroformer.options."):
        __import__(module.name)
    found, left = [], [Options]
    while left:
        for kind in left.pop().__subclasses__():
            if kind.__module__.startswith("gyroformer."):
                found.append(kind)
            left.append(kind)
    assert {EstimatorOptions, BlockOptions, *(task.Objective for task in TASKS.values())} <= set(found)
    return found


@pytest.mark.parametrize("kind", declared(), ids=lambda kind: kind.__name__)
def test_every_option_has_help_and_a_default_that_fits(kind):
    for one in options_of(kind):
        assert one.help, one.name
        assert not one.help.endswith("."), one.name
        assert "\n" not in one.help, one.name
        if not one.required and not (isinstance(one.hint, type) and issubclass(one.hint, Options)):
            checked(one.hint, one.default, one.name, one.range)
