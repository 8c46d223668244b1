"""Parameters of estimators, derived from declared options."""

import inspect
from typing import Any

from gyroformer.options import Option
from gyroformer.options.constructor import sentence


class Parameter(inspect.Parameter):
    """A parameter of an estimator, with the option that it sets."""

    def __init__(self, one: Option, default: Any) -> None:
        super().__init__(one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=one.hint)
        self.help = sentence(one)


def constructor(parameters: dict[str, Parameter]) -> Any:
    """Return ``__init__`` with these keyword parameters, which it only keeps, as scikit-learn demands."""

    def __init__(self: Any, **given: Any) -> None:
        for name in given:
            if name not in parameters:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument {name!r}"
                )
        for name, parameter in parameters.items():
            setattr(self, name, given.get(name, parameter.default))

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = inspect.Signature([own, *parameters.values()])  # type: ignore[attr-defined]
    lines = [f"    {name}: {parameter.help}" for name, parameter in parameters.items()]
    __init__.__doc__ = "Args:\n" + "\n".join(lines)
    return __init__
