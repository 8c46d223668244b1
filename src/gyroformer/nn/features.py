"""Node features to vectors: a linear map, or a learned vector for each node of a graph without features."""

import functools

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.derived import derived
from gyroformer.nn.dropout import dropout
from gyroformer.nn.sparse_features import some_rows, sparse_rows_of
from gyroformer.processes.tensors import taken


class NodeFeatures(nn.Module):
    """The first map of every model on nodes.

    A graph without features has one-hot features, and a linear map of these is a table with one row for each
    node: the table is what is kept, never the N x N matrix.

    Args:
        in_features: width of the node features; 0 for none.
        width: width of the result.
        num_nodes: number of nodes with a learned vector, when there are no features.
        bias: whether the linear map adds a vector.
        dropout: fraction of the features dropped in training.
        std: deviation with which learned vectors start; None: as a linear map of one-hot features would.
    """

    def __init__(
        self,
        in_features: int,
        width: int,
        *,
        num_nodes: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        std: float | None = None,
    ) -> None:
        super().__init__()
        if not 0 <= dropout < 1:
            raise UsageError(f"the dropout of features must be at least 0 and below 1, got {dropout}")
        self.dropout = dropout
        self.linear = nn.Linear(in_features, width, bias=bias) if in_features else None
        self.table = None if in_features else node_table(num_nodes, width, std)

    def forward(
        self, nodes: int, x: Float[Tensor, "{nodes} features"] | None, some: slice | None = None
    ) -> Float[Tensor, "some width"]:
        """Return ``(nodes, width)`` from the features ``x (nodes, in_features)`` or from the table; or some rows."""
        some = some or slice(0, nodes)
        if self.table is not None:
            return taken(table_rows(self.table, nodes), some)
        assert self.linear is not None
        x = sparse_rows_of(checked_features(nodes, self.linear.in_features, x), self.linear.weight.dtype)
        return self.linear(some_rows(dropout(x, self.dropout, self.training), some))


class NodeInput(nn.Module):
    """What a model's first layer takes: the features as they are, or learned vectors in their place.

    Args:
        in_features: width of the node features; 0 for none.
        width: width of the learned vectors, when there are no features.
        num_nodes: number of nodes with a learned vector, when there are no features.
    """

    like: Tensor

    def __init__(self, in_features: int, width: int, *, num_nodes: int | None = None) -> None:
        super().__init__()
        self.table = None if in_features else node_table(num_nodes, width, unit_std(width))
        #: has the dtype of the model, which features are brought to
        self.register_buffer("like", torch.empty(0), persistent=False)
        #: width of the result
        self.width = in_features or width

    def forward(
        self, nodes: int, x: Float[Tensor, "{nodes} features"] | None
    ) -> Float[Tensor, "{nodes} width"]:
        """Return ``(nodes, width)``: the features ``x``, as sparse rows if these save time, or the table."""
        if self.table is not None:
            return table_rows(self.table, nodes)
        return sparse_rows_of(checked_features(nodes, self.width, x), self.like.dtype)


def node_table(num_nodes: int | None, width: int, std: float | None = None) -> nn.Embedding:
    """Return learned vectors for the nodes of a graph without features.

    With ``std=None`` they start as a linear map of one-hot features would: behind a Transformer's layer norm vectors
    of normal size would start a hyperbolic space far from its origin, where the curvature's gradient points the
    wrong way.
    """
    if not num_nodes:
        raise UsageError("a model needs node features (in_features) or learned vectors (num_nodes)")
    table = nn.Embedding(num_nodes, width)
    if std is None:
        nn.init.uniform_(table.weight, -(num_nodes**-0.5), num_nodes**-0.5)
    else:
        nn.init.normal_(table.weight, std=std)
    return table


def unit_std(width: int) -> float:
    """Return the deviation that gives vectors of about length 1: what graph networks, which average, start with."""
    return float(width**-0.5)


def table_rows(table: nn.Embedding, nodes: int) -> Tensor:
    """Return the learned vectors of a graph of ``nodes`` nodes."""
    if nodes != table.num_embeddings:
        raise DataError(
            f"the model has learned vectors for {table.num_embeddings} nodes, the graph has {nodes}: "
            "use node features for graphs of other sizes"
        )
    return table.weight


def checked_features(nodes: int, width: int, x: Tensor | None) -> Tensor:
    """Return the features ``x`` if they are ``(nodes, width)`` finite numbers, else raise."""
    if x is None or tuple(x.shape) != (nodes, width):
        shape = None if x is None else tuple(x.shape)
        raise DataError(f"node features must be ({nodes}, {width}); got {shape}")
    if not torch.compiler.is_compiling():  # a compiled model takes them as they are
        # once: it takes longer than the linear map behind it
        derived(x, ("finite",), functools.partial(check_finite, x.detach()))
    return x


def check_finite(x: Tensor) -> None:
    """Raise if a feature is not finite, and say where."""
    if bool(torch.isfinite(x.sum())):  # then all are, and nothing of the size of x is made
        return
    finite = torch.isfinite(x)
    if not bool(finite.all()):
        row, column = (~finite).nonzero()[0].tolist()
        raise DataError(
            f"node features must be finite; row {row}, column {column} is {x[row, column].item()}"
        )
