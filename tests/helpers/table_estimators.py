"""The estimators with a ``fit`` that takes a table of features, for scikit-learn's checks.

Consecutive rows are joined by edges; the base classes then do the rest, as for any graph.
"""

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch_geometric.data import Data

import gyroformer as gf


def rows_as_graph(table):
    ends = np.arange(len(table) - 1)
    edge_index = torch.from_numpy(np.stack([ends, ends + 1]))
    return Data(edge_index=edge_index, num_nodes=len(table), x=torch.from_numpy(np.array(table, np.float32)))


class TableEmbedder(gf.GraphEmbedder):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def fit(self, X, y=None):
        return super().fit(rows_as_graph(validate_data(self, X, ensure_min_samples=2)))

    def transform(self, X):
        check_is_fitted(self)
        return super().transform(rows_as_graph(validate_data(self, X, reset=False)))

    def score(self, X, y=None):
        return super().score(rows_as_graph(validate_data(self, X, reset=False)))


class TableClassifier(gf.NodeClassifier):
    score = ClassifierMixin.score

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.target_tags.required = True
        return tags

    def fit(self, X, y):
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        return super().fit(rows_as_graph(X), y)

    def predict_proba(self, X):
        check_is_fitted(self)
        return super().predict_proba(rows_as_graph(validate_data(self, X, reset=False)))
