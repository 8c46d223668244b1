"""Scikit-learn estimators: the jobs as objects with ``fit``, for scripts and notebooks."""

from gyroformer.estimators.classifier import NodeClassifier
from gyroformer.estimators.embedder import GraphEmbedder
from gyroformer.estimators.graph_level import GraphClassifier, GraphRegressor
from gyroformer.estimators.link_predictor import LinkPredictor

__all__ = ["GraphClassifier", "GraphEmbedder", "GraphRegressor", "LinkPredictor", "NodeClassifier"]
