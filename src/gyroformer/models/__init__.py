"""Graph models by name."""

import dataclasses as dc

from gyroformer.errors import UsageError, did_you_mean
from gyroformer.models.base import GraphModel
from gyroformer.models.fpst import FPST, TokenGT

__all__ = ["FPST", "MODELS", "GraphModel", "ModelSpec", "TokenGT", "get_model"]


@dc.dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model that can be chosen by name.

    Attributes:
        build: the class.
        about: one line.
        tokens: whether it is a Transformer on graph tokens, rather than a network on nodes.
    """

    build: type[GraphModel]
    about: str
    tokens: bool = False


MODELS: dict[str, ModelSpec] = {
    "fpst": ModelSpec(
        FPST, "fully product-stereographic Transformer: a learned curvature for each head", tokens=True
    ),
    "tokengt": ModelSpec(TokenGT, "its flat twin: the same tokens, an ordinary Transformer", tokens=True),
}


def get_model(name: str) -> ModelSpec:
    """Return the model called ``name``."""
    if name not in MODELS:
        raise UsageError(
            f"no model is called {name!r}{did_you_mean(name, list(MODELS))} (known: {', '.join(MODELS)})"
        )
    return MODELS[name]
