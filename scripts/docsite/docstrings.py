"""An extension of griffe, which reads the code for the API reference.

Docstrings become Markdown, and constructors that take declared options (``gyroformer.options.takes``) show these as
their arguments instead of the one argument that stands in the code.
"""

import importlib
import inspect
from typing import Any

import griffe

from docsite.rst import as_markdown


class Docstrings(griffe.Extension):
    """Docstrings in Markdown, arguments as they are typed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Give a constructor that takes options the arguments that it has when it is called."""
        if not any(str(decorator.value).startswith("takes(") for decorator in func.decorators):
            return
        assert func.parent is not None
        made = getattr(importlib.import_module(func.module.path), func.parent.name).__init__
        func.parameters = griffe.Parameters(*map(parameter, inspect.signature(made).parameters.values()))
        func.decorators = []
        func.docstring = griffe.Docstring(as_markdown(made.__doc__), parent=func, parser="google")


def parameter(one: inspect.Parameter) -> griffe.Parameter:
    """Return an argument as griffe has it."""
    given = one.default is not inspect.Parameter.empty
    kind = griffe.ParameterKind[one.kind.name.lower()]
    hint = None if one.annotation is inspect.Parameter.empty else inspect.formatannotation(one.annotation)
    return griffe.Parameter(
        one.name, annotation=hint, kind=kind, default=repr(one.default) if given else None
    )
