"""The C++ slope of the loss of new points: see :mod:`gyroformer.ops.placing`."""

from torch import Tensor

from gyroformer.ops.native.calls import call, contiguous


def slopes(
    points: Tensor,
    k: Tensor,
    crowd: Tensor,
    nodes: Tensor,
    start: Tensor,
    columns: Tensor,
    degree: Tensor,
    *,
    temperature: float,
    seen: float,
) -> Tensor:
    """Return the slopes ``(R, H (d + 1))`` in the sines and then the cosines of ``nodes``.

    Args:
        points: of :func:`gyroformer.ops.native.fused_near.packed`.
        k: curvatures ``(H,)``.
        crowd: how crowded each node is, ``(N,)``.
        nodes: those that move, ``(R,)``.
        start: where the columns of each begin, int64 ``(R + 1,)``.
        columns: the nodes that each looks at, int32: its neighbours first; -1 for none.
        degree: number of neighbours, int32 ``(R,)``.
        temperature: T of the loss.
        seen: β of the loss.
    """
    heads = k.numel()
    out = points.new_empty(nodes.numel(), points.shape[1])
    tensors = contiguous(points, k, crowd, nodes, start, columns, degree)
    sizes = [int(start.diff().max()), heads, points.shape[1] // heads - 1]
    call("gyroformer_placing_slopes", [*tensors, out], [nodes.numel()], sizes, temperature, seen)
    return out
