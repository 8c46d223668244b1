"""Graph models by name. A model is a file here, its options in ``gyroformer.options.models``, and a line below.

No module of a model is imported before it is used: ``--help`` knows all names and options without torch.
"""

import dataclasses as dc
import importlib
from typing import TYPE_CHECKING, Any

from gyroformer.errors import UsageError, did_you_mean
from gyroformer.options import models as options
from gyroformer.options import options_of
from gyroformer.options.declare import Option
from gyroformer.options.models import DECIDED_BY_GRAPH, GraphModelOptions
from gyroformer.options.plain import from_plain

if TYPE_CHECKING:
    from gyroformer.models.base import GraphModel as GraphModel
    from gyroformer.models.fpst import FPST as FPST


@dc.dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model that can be chosen by name.

    Attributes:
        path: module and class, under ``gyroformer.models``.
        about: one line.
        options: the class of its options.
        tokens: whether it is a Transformer on graph tokens, rather than a network on nodes.
    """

    path: str
    about: str
    options: type[GraphModelOptions]
    tokens: bool = False

    @property
    def build(self) -> "type[GraphModel]":
        """The class."""
        module, _, name = self.path.rpartition(".")
        found: type[GraphModel] = getattr(importlib.import_module(f"gyroformer.models.{module}"), name)
        return found

    def choices(self) -> list[Option]:
        """Return the options that are the user's choice; the others are decided by the graph and the task."""
        return [one for one in options_of(self.options) if one.name not in DECIDED_BY_GRAPH]

    def make(self, in_features: int, **values: Any) -> "GraphModel":
        """Return the model with these options; one that it does not have is named."""
        known = [one.name for one in options_of(self.options)]
        for name in values:
            if name not in known:
                raise UsageError(
                    f"the model {self.build.name!r} has no option {name!r}{did_you_mean(name, known)} "
                    f"(options: {', '.join(known)})"
                )
        return self.build.of(from_plain(self.options, {"in_features": in_features, **values}))


MODELS: dict[str, ModelSpec] = {
    "fpst": ModelSpec(
        "fpst.FPST",
        "fully product-stereographic Transformer: a learned curvature for each head",
        options.FPSTOptions,
        tokens=True,
    ),
    "tokengt": ModelSpec(
        "fpst.TokenGT",
        "its flat twin: the same tokens, an ordinary Transformer",
        options.TokenGTOptions,
        tokens=True,
    ),
    "points": ModelSpec(
        "points.Points",
        "free points in a product of spaces of learned curvature; no network",
        options.PointsOptions,
    ),
    "mlp": ModelSpec("mlp.MLP", "multi-layer perceptron on the features; no edges", options.MLPOptions),
    "gcn": ModelSpec("gcn.GCN", "graph convolutional network", options.GCNOptions),
    "gat": ModelSpec("gat.GAT", "graph attention network", options.GATOptions),
    "sage": ModelSpec("sage.SAGE", "GraphSAGE, means of whole neighbourhoods", options.SAGEOptions),
    "sgc": ModelSpec(
        "sgc.SGC", "simplified graph convolution: a linear model on smoothed features", options.SGCOptions
    ),
    "hgcn": ModelSpec(
        "hgcn.HGCN",
        "graph convolution in hyperbolic space, one learned curvature for each layer",
        options.HGCNOptions,
    ),
    "hgnn": ModelSpec(
        "hgnn.HGNN",
        "graph network in the Poincaré ball, scored by distances to learned centroids",
        options.HGNNOptions,
    ),
    "hat": ModelSpec(
        "hat.HAT",
        "graph attention by hyperbolic distance, a factor of a product for each head",
        options.HATOptions,
    ),
    "kappa-gcn": ModelSpec(
        "kappa_gcn.KappaGCN",
        "graph convolution on a product of spaces of learned, signed curvature",
        options.KappaGCNOptions,
    ),
    "q-gcn": ModelSpec(
        "q_gcn.QGCN",
        "graph convolution on a pseudo-hyperboloid with several time coordinates",
        options.QGCNOptions,
    ),
    "gil": ModelSpec(
        "gil.GIL",
        "geometry interaction learning: a hyperbolic and a flat stream of graph attention",
        options.GILOptions,
    ),
    "fmgnn": ModelSpec(
        "fmgnn.FMGNN",
        "fused manifolds: flat, hyperbolic and spherical branches, distances to landmarks",
        options.FMGNNOptions,
    ),
    "hyp-attention": ModelSpec(
        "hyp_attention.HypAttention",
        "attention by hyperbolic distance, averaged by Einstein midpoints",
        options.HypAttentionOptions,
    ),
    "hypformer": ModelSpec(
        "hypformer.Hypformer",
        "Transformer and graph convolution on the hyperboloid, linear in the nodes",
        options.HypformerOptions,
    ),
}

#: the classes by their own names, for ``from gyroformer.models import GCN``
_CLASSES = {spec.path.rpartition(".")[2]: spec for spec in MODELS.values()}

__all__ = ["MODELS", "GraphModel", "ModelSpec", "get_model", *_CLASSES]


def get_model(name: str) -> ModelSpec:
    """Return the model called ``name``."""
    if name not in MODELS:
        raise UsageError(
            f"no model is called {name!r}{did_you_mean(name, MODELS)} (known: {', '.join(MODELS)})"
        )
    return MODELS[name]


def __getattr__(name: str) -> Any:
    if name == "GraphModel":
        from gyroformer.models.base import GraphModel

        return GraphModel
    if name not in _CLASSES:
        raise AttributeError(f"module 'gyroformer.models' has no attribute {name!r}")
    return _CLASSES[name].build
