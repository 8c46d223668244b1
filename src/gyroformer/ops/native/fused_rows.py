"""The C++ distances from nodes to all others, or to lists of them, as a torch operator without derivatives."""

from torch import Tensor

from gyroformer.operators import operator
from gyroformer.ops.native.calls import call, check_nodes


@operator("distance_rows")
def distance_rows(sine: Tensor, cosine: Tensor, k: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return the squared distances ``(R, K)`` from the nodes ``rows (R,)`` to ``columns``, ``(K,)`` or ``(R, K)``."""
    for nodes in (rows, columns):
        check_nodes(nodes, sine.shape[0])
    out = sine.new_empty(rows.shape[0], columns.shape[-1])
    tensors = [t.contiguous() for t in (sine, cosine, k, rows, columns)]
    call("gyroformer_distance_rows", [*tensors, out], out.shape, [columns.dim() == 2, *sine.shape[1:]])
    return out


@distance_rows.register_fake
def _(sine: Tensor, cosine: Tensor, k: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    return sine.new_empty(rows.shape[0], columns.shape[-1])
