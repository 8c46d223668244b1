"""Which rows of several operands belong together, as the C++ kernels of rows take it."""

import ctypes
import functools
import math

import torch

#: vectors that a kernel can take; a number for each row and the curvature follow them
MOST_IN = 3
OPERANDS = MOST_IN + 2


class Layout(ctypes.Structure):
    """How rows of operands belong together (``Layout`` of ``native/layout.hpp``): vectors, a number, the curvature."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("outer", "inner", "width", "threads")),
        *((name, ctypes.c_int64 * (OPERANDS)) for name in ("outer_stride", "inner_stride", "rows")),
    ]

    def __init__(self, shape: tuple[int, ...], width: int, threads: int) -> None:
        super().__init__(width=width, threads=threads)
        self.shape = shape
        self.pointer = ctypes.addressof(self)


@functools.lru_cache(maxsize=1024)
def layout_of(
    shapes: tuple[torch.Size, ...], number: torch.Size, curvature: torch.Size, dim: int, threads: int
) -> Layout | None:
    """Return how the rows of vectors, numbers and curvatures belong together, None if not as outer × inner rows."""
    width = shapes[0][-1]
    one_width = all(shape[-1] == width for shape in shapes) and all(
        not one or one[-1] == 1 for one in (number, curvature)
    )
    if not one_width or (dim >= 0 and len({len(shape) for shape in shapes}) > 1):
        return None
    heads = [
        *(shape[:-1] for shape in shapes),
        *[torch.Size()] * (MOST_IN - len(shapes)),
        number[:-1],
        curvature[:-1],
    ]
    padded = [(*(1,) * (max(map(len, heads)) - len(head)), *head) for head in heads]
    # not torch.broadcast_shapes, whose first call imports for seconds; what does not broadcast is torch's to refuse
    shape = tuple(max(sizes) for sizes in zip(*padded, strict=True))
    if 0 in (*shape, width) or any(0 in head for head in heads):
        return None
    for split in range(len(shape), -1, -1):
        outer, inner = shape[:split], shape[split:]
        if all(_all_or_none(p[:split], outer) and _all_or_none(p[split:], inner) for p in padded):
            break
    else:
        return None
    layout = Layout(shape, width, threads)
    layout.outer, layout.inner = math.prod(outer), math.prod(inner)
    for operand, head in enumerate(padded):
        own = math.prod(head[split:])
        layout.inner_stride[operand] = int(own == layout.inner > 1)
        layout.outer_stride[operand] = own if math.prod(head[:split]) == layout.outer > 1 else 0
        layout.rows[operand] = math.prod(head)
    return layout


def _all_or_none(part: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    return part == whole or all(size == 1 for size in part)
