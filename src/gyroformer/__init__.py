"""Transformers whose attention heads live in spaces of learnable curvature, for graphs.

Public names are imported on first use, so that ``gyroformer --help`` does not wait for torch.
Importing this package reads no environment variable, writes nothing and sets no seed.
"""

import importlib
from typing import TYPE_CHECKING

__version__ = "0.2.0"

#: public name -> module that defines it; a name equal to its module's last part is the module itself.
_PUBLIC = {
    "FPST": "gyroformer.models",
    "GraphClassifier": "gyroformer.estimators",
    "GraphEmbedder": "gyroformer.estimators",
    "GraphRegressor": "gyroformer.estimators",
    "LinkPredictor": "gyroformer.estimators",
    "MODELS": "gyroformer.models",
    "NodeClassifier": "gyroformer.estimators",
    "geometry": "gyroformer.geometry",
    "models": "gyroformer.models",
    "nn": "gyroformer.nn",
    "testing": "gyroformer.testing",
    "tokens": "gyroformer.tokens",
    "load": "gyroformer.data.load",
    "open_run": "gyroformer.runs.read",
    "to_graph": "gyroformer.graphs.reading.convert",
}

__all__ = ["__version__", *_PUBLIC]

if TYPE_CHECKING:
    from gyroformer import geometry as geometry
    from gyroformer import models as models
    from gyroformer import nn as nn
    from gyroformer import testing as testing
    from gyroformer import tokens as tokens
    from gyroformer.data.load import load as load
    from gyroformer.estimators import GraphClassifier as GraphClassifier
    from gyroformer.estimators import GraphEmbedder as GraphEmbedder
    from gyroformer.estimators import GraphRegressor as GraphRegressor
    from gyroformer.estimators import LinkPredictor as LinkPredictor
    from gyroformer.estimators import NodeClassifier as NodeClassifier
    from gyroformer.graphs.reading.convert import to_graph as to_graph
    from gyroformer.models import FPST as FPST
    from gyroformer.models import MODELS as MODELS
    from gyroformer.runs.read import open_run as open_run


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'gyroformer' has no attribute {name!r}")
    module = importlib.import_module(_PUBLIC[name])
    value = module if module.__name__ == f"gyroformer.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
