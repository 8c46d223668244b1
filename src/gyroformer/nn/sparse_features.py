"""Features that are nearly all zero, such as the words of a text, as sparse rows: what torch multiplies by quickly."""

import torch
from jaxtyping import Float
from torch import Tensor

from gyroformer.geometry.parts import length
from gyroformer.graphs.derived import derived
from gyroformer.nn.sparse import as_sparse_rows
from gyroformer.processes.tensors import taken

#: entries from which on it is worth it: a smaller table is multiplied by in a millisecond anyway
LEAST = 1 << 20
#: share of entries other than 0 up to which the product and its gradient take less time than a dense table's
MOST_FILLED = 0.03


def sparse_rows_of(x: Float[Tensor, "N features"], dtype: torch.dtype) -> Float[Tensor, "N features"]:
    """Return features in a dtype, as sparse rows if that saves time: constants on a CPU with few entries other than 0.

    A linear map takes either, and gives the same to rounding. The sparse rows are made once and kept as long as ``x``.
    """
    if (
        x.numel() < LEAST
        or x.requires_grad
        or x.device.type != "cpu"
        or x.layout != torch.strided
        or torch.compiler.is_compiling()
        or torch.is_autocast_enabled("cpu")
    ):
        return x.to(dtype)
    rows = derived(x, ("sparse rows", dtype), lambda: _sparse_rows(x.detach(), dtype))
    return x.to(dtype) if rows is None else rows


def _sparse_rows(x: Tensor, dtype: torch.dtype) -> Tensor | None:
    few = int(x.count_nonzero()) <= MOST_FILLED * x.numel()
    return as_sparse_rows(x.to(dtype)) if few else None


def with_values(rows: Tensor, values: Tensor) -> Tensor:
    """Return sparse rows with other values at the same places."""
    return _made(rows.crow_indices(), rows.col_indices(), values, rows.shape)


def row_length(x: Float[Tensor, "*rows features"]) -> Float[Tensor, "*rows 1"]:
    """Return the length of each row of features, sparse or not."""
    if x.layout != torch.sparse_csr:
        return length(x, -1)
    squares = with_values(x, x.values().square())
    return (squares @ x.values().new_ones(x.shape[1], 1)).sqrt()


def some_rows(x: Float[Tensor, "N features"], some: slice) -> Float[Tensor, "some features"]:
    """Return some rows of features, sparse or not."""
    if x.layout != torch.sparse_csr or some.stop - some.start == x.shape[0]:
        return taken(x, some)
    ends = x.crow_indices()[some.start : some.stop + 1]
    inside = slice(int(ends[0]), int(ends[-1]))
    size = (some.stop - some.start, x.shape[1])
    return _made(ends - ends[0], x.col_indices()[inside], x.values()[inside], size)


def _made(ends: Tensor, columns: Tensor, values: Tensor, size: tuple[int, ...]) -> Tensor:
    return torch.sparse_csr_tensor(ends, columns, values, size, device=values.device, check_invariants=False)
