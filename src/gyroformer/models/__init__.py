"""Graph models by name; the module of a model is imported when the model is first used."""

import dataclasses as dc
import importlib
import inspect
from typing import TYPE_CHECKING, Any

from gyroformer.errors import UsageError, did_you_mean
from gyroformer.models.base import GraphModel

if TYPE_CHECKING:
    from gyroformer.models.fpst import FPST as FPST


@dc.dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model that can be chosen by name.

    Attributes:
        place: module and class, under ``gyroformer.models``.
        about: one line.
        tokens: whether it is a Transformer on graph tokens, rather than a network on nodes.
    """

    place: str
    about: str
    tokens: bool = False

    @property
    def build(self) -> type[GraphModel]:
        """The class."""
        module, _, name = self.place.rpartition(".")
        found: type[GraphModel] = getattr(importlib.import_module(f"gyroformer.models.{module}"), name)
        return found

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
                    f"the model {self.build.name!r} has no option {name!r}{did_you_mean(name, known)} "
                    f"(options: {', '.join(known)})"
                )
        return self.build(in_features, **options)


MODELS: dict[str, ModelSpec] = {
    "fpst": ModelSpec(
        "fpst.FPST", "fully product-stereographic Transformer: a learned curvature for each head", tokens=True
    ),
    "tokengt": ModelSpec(
        "fpst.TokenGT", "its flat twin: the same tokens, an ordinary Transformer", tokens=True
    ),
    "mlp": ModelSpec("mlp.MLP", "multi-layer perceptron on the features; no edges"),
    "gcn": ModelSpec("gcn.GCN", "graph convolutional network"),
    "gat": ModelSpec("gat.GAT", "graph attention network"),
    "sage": ModelSpec("sage.SAGE", "GraphSAGE, means of whole neighbourhoods"),
    "sgc": ModelSpec("sgc.SGC", "simplified graph convolution: a linear model on smoothed features"),
    "hgcn": ModelSpec(
        "hgcn.HGCN", "graph convolution in hyperbolic space, one learned curvature for each layer"
    ),
    "hgnn": ModelSpec(
        "hgnn.HGNN", "graph network in the Poincaré ball, scored by distances to learned centroids"
    ),
    "hat": ModelSpec(
        "hat.HAT", "graph attention by hyperbolic distance, a factor of a product for each head"
    ),
    "kappa-gcn": ModelSpec(
        "kappa_gcn.KappaGCN", "graph convolution on a product of spaces of learned, signed curvature"
    ),
    "q-gcn": ModelSpec(
        "q_gcn.QGCN", "graph convolution on a pseudo-hyperboloid with several time coordinates"
    ),
    "gil": ModelSpec(
        "gil.GIL", "geometry interaction learning: a hyperbolic and a flat stream of graph attention"
    ),
    "fmgnn": ModelSpec(
        "fmgnn.FMGNN", "fused manifolds: flat, hyperbolic and spherical branches, distances to landmarks"
    ),
    "hyp-attention": ModelSpec(
        "hyp_attention.HypAttention", "attention by hyperbolic distance, averaged by Einstein midpoints"
    ),
    "hypformer": ModelSpec(
        "hypformer.Hypformer", "Transformer and graph convolution on the hyperboloid, linear in the nodes"
    ),
}

#: the classes by their own names, for ``from gyroformer.models import GCN``
_CLASSES = {spec.place.rpartition(".")[2]: spec for spec in MODELS.values()}

__all__ = ["MODELS", "GraphModel", "ModelSpec", "get_model", *_CLASSES]


def get_model(name: str) -> ModelSpec:
    """Return the model called ``name``."""
    if name not in MODELS:
        raise UsageError(
            f"no model is called {name!r}{did_you_mean(name, list(MODELS))} (known: {', '.join(MODELS)})"
        )
    return MODELS[name]


def __getattr__(name: str) -> type[GraphModel]:
    if name not in _CLASSES:
        raise AttributeError(f"module 'gyroformer.models' has no attribute {name!r}")
    return _CLASSES[name].build
