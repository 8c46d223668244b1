"""Node features to vectors: a linear map, or a learned vector for each node of a graph without features."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from gyroformer.errors import DataError, UsageError


class NodeFeatures(nn.Module):
    """The first map of every model on nodes.

    A graph without features has one-hot features, and a linear map of these is a table with one row for each
    node: the table is what is kept, never the N x N matrix.

    Args:
        in_features: width of the node features; 0 for none.
        width: width of the result.
        num_nodes: number of nodes with a learned vector, when there are no features.
        bias: whether the linear map adds a vector.
        dropout: share of the features dropped in training.
    """

    def __init__(
        self,
        in_features: int,
        width: int,
        *,
        num_nodes: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0 <= dropout < 1:
            raise UsageError(f"the dropout of features must be at least 0 and below 1, got {dropout}")
        if not in_features and not num_nodes:
            raise UsageError("a model needs node features (in_features) or learned vectors (num_nodes)")
        self.dropout = dropout
        self.linear = nn.Linear(in_features, width, bias=bias) if in_features else None
        self.table = nn.Embedding(num_nodes, width) if num_nodes and not in_features else None
        if self.table is not None:
            # as a linear map of one-hot features would start: vectors of normal size would start a hyperbolic
            # space far from its origin, where the curvature's gradient points the wrong way
            bound = self.table.num_embeddings**-0.5
            nn.init.uniform_(self.table.weight, -bound, bound)

    def forward(self, nodes: int, x: Tensor | None) -> Tensor:
        """Return ``(nodes, width)`` from the features ``x (nodes, in_features)``, or from the table."""
        if self.table is not None:
            if nodes != self.table.num_embeddings:
                raise DataError(
                    f"the model has learned vectors for {self.table.num_embeddings} nodes, the graph has {nodes}: "
                    "use node features for graphs of other sizes"
                )
            return self.table.weight
        assert self.linear is not None
        if x is None or tuple(x.shape) != (nodes, self.linear.in_features):
            shape = None if x is None else tuple(x.shape)
            raise DataError(f"node features must be ({nodes}, {self.linear.in_features}); got {shape}")
        check_finite(x)
        return self.linear(functional.dropout(x, self.dropout, self.training))


def check_finite(x: Tensor) -> None:
    """Raise if a feature is not finite, and say where."""
    finite = torch.isfinite(x)
    if not bool(finite.all()):
        row, column = (~finite).nonzero()[0].tolist()
        raise DataError(
            f"node features must be finite; row {row}, column {column} is {x[row, column].item()}"
        )
