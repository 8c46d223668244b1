"""Graph models by name."""

import dataclasses as dc

from gyroformer.errors import UsageError, did_you_mean
from gyroformer.models.base import GraphModel
from gyroformer.models.fpst import FPST, TokenGT
from gyroformer.models.hat import HAT
from gyroformer.models.hgcn import HGCN
from gyroformer.models.hgnn import HGNN
from gyroformer.models.kappa_gcn import KappaGCN

__all__ = [
    "FPST",
    "HAT",
    "HGCN",
    "HGNN",
    "MODELS",
    "GraphModel",
    "KappaGCN",
    "ModelSpec",
    "TokenGT",
    "get_model",
]


@dc.dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model that can be chosen by name."""

    build: type[GraphModel]
    about: str


MODELS: dict[str, ModelSpec] = {
    "fpst": ModelSpec(FPST, "fully product-stereographic Transformer: a learned curvature for each head"),
    "tokengt": ModelSpec(TokenGT, "its flat twin: the same tokens, an ordinary Transformer"),
    "hgcn": ModelSpec(HGCN, "graph convolution in hyperbolic space, one learned curvature for each layer"),
    "hgnn": ModelSpec(HGNN, "graph network in the Poincaré ball, scored by distances to learned centroids"),
    "hat": ModelSpec(HAT, "graph attention by hyperbolic distance, a factor of a product for each head"),
    "kappa-gcn": ModelSpec(KappaGCN, "graph convolution on a product of spaces of learned, signed curvature"),
}


def get_model(name: str) -> ModelSpec:
    """Return the model called ``name``."""
    if name not in MODELS:
        raise UsageError(
            f"no model is called {name!r}{did_you_mean(name, list(MODELS))} (known: {', '.join(MODELS)})"
        )
    return MODELS[name]
