"""Every model in a paragraph with its equation, from its docstrings."""

import importlib
import inspect

from docsite.rst import as_markdown

from gyroformer.models import MODELS


def model_paragraphs() -> str:
    """Return a section for each model: what it is, its equations and what they mean."""
    parts = []
    for name, spec in MODELS.items():
        module = importlib.import_module(spec.build.__module__)
        own = inspect.getdoc(spec.build) or ""
        # the equations stand in the docstring of the class, or in that of a file which holds this model alone
        text = own if "math:" in own else inspect.cleandoc(module.__doc__ or "")
        parts += [f"### `{name}`", f"*{spec.about[0].upper()}{spec.about[1:]}.*", shortened(text)]
    return "\n\n".join(parts)


def shortened(docstring: str) -> str:
    """Return the paragraphs of a docstring up to the one that follows the last equation on display."""
    paragraphs = docstring.split("\n\n")
    shown = [i for i, text in enumerate(paragraphs) if text.lstrip().startswith(".. math::")]
    end = shown[-1] + 2 if shown else len(paragraphs)
    return as_markdown("\n\n".join(paragraphs[:end])).strip()
