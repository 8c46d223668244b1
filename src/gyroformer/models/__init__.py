"""Graph models by name."""

import dataclasses as dc
import inspect
from typing import Any

from gyroformer.errors import UsageError, did_you_mean
from gyroformer.models.base import GraphModel
from gyroformer.models.fmgnn import FMGNN
from gyroformer.models.fpst import FPST, TokenGT
from gyroformer.models.gat import GAT
from gyroformer.models.gcn import GCN
from gyroformer.models.gil import GIL
from gyroformer.models.hat import HAT
from gyroformer.models.hgcn import HGCN
from gyroformer.models.hgnn import HGNN
from gyroformer.models.hyp_attention import HypAttention
from gyroformer.models.hypformer import Hypformer
from gyroformer.models.kappa_gcn import KappaGCN
from gyroformer.models.mlp import MLP
from gyroformer.models.q_gcn import QGCN
from gyroformer.models.sage import SAGE
from gyroformer.models.sgc import SGC

__all__ = [
    "FMGNN",
    "FPST",
    "GAT",
    "GCN",
    "GIL",
    "HAT",
    "HGCN",
    "HGNN",
    "MLP",
    "MODELS",
    "QGCN",
    "SAGE",
    "SGC",
    "GraphModel",
    "HypAttention",
    "Hypformer",
    "KappaGCN",
    "ModelSpec",
    "TokenGT",
    "get_model",
]


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

    def options(self) -> dict[str, Any]:
        """Return the model's options and their defaults."""
        parameters = inspect.signature(self.build).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    def make(self, in_features: int, **options: Any) -> GraphModel:
        """Return the model with these options; one that it does not have is named."""
        known = list(self.options())
        for name in options:
            if name not in known:
                raise UsageError(
                    f"{self.build.name} has no option {name!r}{did_you_mean(name, known)} "
                    f"(options: {', '.join(known)})"
                )
        return self.build(in_features, **options)


MODELS: dict[str, ModelSpec] = {
    "mlp": ModelSpec(MLP, "multi-layer perceptron on the features; no edges"),
    "gcn": ModelSpec(GCN, "graph convolutional network"),
    "gat": ModelSpec(GAT, "graph attention network"),
    "sage": ModelSpec(SAGE, "GraphSAGE, means of whole neighbourhoods"),
    "sgc": ModelSpec(SGC, "simplified graph convolution: a linear model on smoothed features"),
    "hgcn": ModelSpec(HGCN, "graph convolution in hyperbolic space, one learned curvature for each layer"),
    "hgnn": ModelSpec(HGNN, "graph network in the Poincaré ball, scored by distances to learned centroids"),
    "hat": ModelSpec(HAT, "graph attention by hyperbolic distance, a factor of a product for each head"),
    "kappa-gcn": ModelSpec(KappaGCN, "graph convolution on a product of spaces of learned, signed curvature"),
    "q-gcn": ModelSpec(QGCN, "graph convolution on a pseudo-hyperboloid with several time coordinates"),
    "hypformer": ModelSpec(
        Hypformer, "Transformer and graph convolution on the hyperboloid, linear in the nodes"
    ),
    "hyp-attention": ModelSpec(
        HypAttention, "attention by hyperbolic distance, averaged by Einstein midpoints"
    ),
    "gil": ModelSpec(GIL, "geometry interaction learning: a hyperbolic and a flat stream of graph attention"),
    "fmgnn": ModelSpec(
        FMGNN, "fused manifolds: flat, hyperbolic and spherical branches, distances to landmarks"
    ),
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
