"""Scikit-learn estimators: the jobs as objects with ``fit``, for scripts and notebooks."""

from gyroformer.estimators.classifier import NodeClassifier
from gyroformer.estimators.embedder import GraphEmbedder

__all__ = ["GraphEmbedder", "NodeClassifier"]
