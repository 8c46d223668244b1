r"""Distances between all pairs of nodes, and the sum over non-neighbours that graph reconstruction needs.

Nodes are points of a product of H stereographic spaces in half-angle coordinates
(:mod:`gyroformer.ops.lifted`): P ``(N, H, d)`` and C ``(N, H, 1)``, :math:`C^2 + \kappa|P|^2 = 1`. For a pair, in each
space,

.. math:: q = |C_v P_u - C_u P_v|^2, \qquad d^2 = 4\,q\,r(\kappa q)^2, \qquad
          r(z) = \frac{\arcsin\sqrt z}{\sqrt z},

and the squared distances of the spaces add up. The difference is formed before it is squared: nothing cancels where
two points are close. P, C and k are independent inputs, differentiable each.

:func:`log_partition` takes all pairs and keeps a sum per node: in C++ (``"native"``), or in torch by blocks of rows
whose backward pass computes them again, compiled (``"compiled"``) or not (``"eager"``). All give the same result.
"""

import torch
from torch import Tensor

from gyroformer.errors import UsageError, did_you_mean
from gyroformer.ops.lifted import at_least_float32
from gyroformer.ops.native import build, fused, fused_pair_list, fused_pairs, fused_rows, shared
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.pair_blocks import (
    PairSums,
    Sum,
    block_rows,
    laid_out,
    quotients,
    squared_distances,
    widened,
)
from gyroformer.processes.group import count as processes
from gyroformer.processes.tensors import gathered, share

__all__ = [
    "FORMS",
    "Neighbours",
    "check_graph",
    "log_partition",
    "pair_squared_dist",
    "squared_dist_lists",
    "squared_dist_rows",
]

FORMS = ("auto", "native", "compiled", "eager")


def pair_squared_dist(sine: Tensor, cosine: Tensor, k: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """Return the squared distances of M pairs of nodes, ``(M,)``.

    Args:
        sine: half-angle sines P, ``(N, H, d)``.
        cosine: half-angle cosines C, ``(N, H, 1)``.
        k: curvatures, ``(H,)`` or ``(H, 1)``.
        source: nodes ``(M,)``.
        target: nodes ``(M,)``.
    """
    sine, cosine, k = checked_points(sine, cosine, k)
    if fused.usable(sine, cosine, k):
        return fused_pair_list.pair_squared_dist(sine, cosine, k, source, target)
    delta = cosine[target] * sine[source] - cosine[source] * sine[target]
    return squared_distances(delta.square().sum(-1), k, -1)


def squared_dist_rows(
    sine: Tensor, cosine: Tensor, k: Tensor, rows: Tensor, columns: Tensor | None = None
) -> Tensor:
    """Return the squared distances from some nodes to others (all, if no ``columns`` are given), ``(R, K)``.

    Args:
        sine: half-angle sines P, ``(N, H, d)``.
        cosine: half-angle cosines C, ``(N, H, 1)``.
        k: curvatures, ``(H,)`` or ``(H, 1)``.
        rows: nodes ``(R,)``.
        columns: nodes ``(K,)``.
    """
    sine, cosine, k = checked_points(sine, cosine, k)
    if _kernel_suffices(sine, cosine, k):
        columns = torch.arange(len(sine), device=sine.device) if columns is None else columns
        return fused_rows.distance_rows(sine, cosine, k, rows, columns)
    everyone, others = laid_out(sine, cosine, columns)
    parts = []
    for some in rows.split(block_rows(sine.shape[1] * others[1].shape[1])):
        mine = everyone[0][..., some], everyone[1][..., some]
        parts.append(squared_distances(quotients(mine, others), k[:, None, None], 0))
    return torch.cat(parts) if parts else sine.new_empty(0, others[1].shape[1])


def squared_dist_lists(sine: Tensor, cosine: Tensor, k: Tensor, rows: Tensor, lists: Tensor) -> Tensor:
    """Return the squared distances of each node to those of a list of its own, ``(R, K)``.

    Args:
        sine: half-angle sines P, ``(N, H, d)``.
        cosine: half-angle cosines C, ``(N, H, 1)``.
        k: curvatures, ``(H,)`` or ``(H, 1)``.
        rows: nodes ``(R,)``.
        lists: nodes ``(R, K)``.
    """
    sine, cosine, k = checked_points(sine, cosine, k)
    if _kernel_suffices(sine, cosine, k):
        return fused_rows.distance_rows(sine, cosine, k, rows, lists)
    everyone = widened(laid_out(sine, cosine, None)[0])
    parts = []
    for some, others in zip(
        *(part.split(block_rows(sine[0].numel() * lists.shape[1])) for part in (rows, lists)), strict=True
    ):
        p, c, others_p, others_c = (points[..., at] for at in (some, others) for points in everyone)
        total = p.new_zeros(())
        for j in range(p.shape[1]):  # as in quotients(), so that the bits are the same
            delta = others_c * p[:, j, :, None] - c[:, :, None] * others_p[:, j]
            total = torch.addcmul(total, delta, delta)
        parts.append(squared_distances(total.to(sine.dtype), k[:, None, None], 0))
    return torch.cat(parts) if parts else sine.new_empty(0, lists.shape[1])


def _kernel_suffices(*tensors: Tensor) -> bool:
    """Return whether the kernel without derivatives can serve."""
    recorded = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    return not recorded and fused.usable(*tensors)


def log_partition(
    sine: Tensor,
    cosine: Tensor,
    k: Tensor,
    neighbours: Neighbours,
    *,
    columns: Tensor | None = None,
    scale: float = 1.0,
    squared: bool = True,
    bias: tuple[Tensor, Tensor] | None = None,
    form: str = "auto",
) -> Tensor:
    r"""Return the logarithm of each node's partition sum, ``(N,)``.

    .. math:: \log S_u, \qquad S_u = 1 + s \sum_{v \ne u,\ v \not\sim u} e^{a_u + b_v - d(u, v)^2}

    over all nodes v, or over those in ``columns``. The 1 is u itself. No N x N tensor is formed. In a directed graph u
    leaves out the nodes that its edges lead to.

    Args:
        sine: half-angle sines P, ``(N, H, d)``.
        cosine: half-angle cosines C, ``(N, H, 1)``.
        k: curvatures, ``(H,)`` or ``(H, 1)``.
        neighbours: the graph.
        columns: a sample of nodes to sum over, ``(K,)``, in any order; one that comes twice counts twice.
        scale: the factor s; N/K makes the sum over a sample that over all.
        squared: False for :math:`e^{-d}`; its derivative where two points coincide counts as 0.
        bias: a and b, ``(N,)`` each; none by default. An exponent above :data:`~gyroformer.ops.pair_blocks.HIGH`
            counts as that.
        form: ``"native"`` (float32 on a CPU), ``"compiled"``, ``"eager"``, or ``"auto"``: native where it can be,
            else eager.
    """
    sine, cosine, k = checked_points(sine, cosine, k)
    check_graph(sine, neighbours, columns)
    bias = checked_bias(bias, sine)
    if chosen_form(form, sine, cosine, k, *(bias or ())) == "native":
        ordered = None if columns is None else columns.sort().values
        native = fused_pairs.log_partition if processes() == 1 else shared.log_partition
        return native((sine, cosine, k), bias, neighbours, ordered, scale=float(scale), squared=squared)
    what = Sum(neighbours, columns, squared, form == "compiled", share(neighbours.num_nodes))
    sums: Tensor = PairSums.apply(sine, cosine, k, *(bias or (None, None)), what)
    return torch.log1p(scale * gathered(sums, neighbours.num_nodes))


def chosen_form(form: str, *tensors: Tensor) -> str:
    """Return the form to use: what was asked for, if it can be had."""
    if form not in FORMS:
        raise UsageError(f"no form is called {form!r}{did_you_mean(form, FORMS)}; known: {', '.join(FORMS)}")
    usable = fused.usable(*tensors)
    if form == "auto":
        return "native" if usable else "eager"
    if form == "native" and not usable:
        raise UsageError(
            "form='native' needs float32 on the CPU, a C++ compiler and no autocast or function transform, got "
            f"{tensors[0].dtype} on {tensors[0].device.type}: use form='auto'"
        )
    if form == "compiled" and tensors[0].device.type == "cpu" and build.find_compiler() is None:
        raise UsageError(
            "form='compiled' needs a C++ compiler (g++ or clang++) for the CPU: use form='eager'"
        )
    return form


def checked_points(sine: Tensor, cosine: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the inputs in float32 or float64, k as ``(H,)``, once their shapes fit together."""
    if sine.dim() != 3 or cosine.shape != (*sine.shape[:2], 1):
        raise UsageError(
            f"sine and cosine must have the shapes (N, H, d) and (N, H, 1), got {tuple(sine.shape)} and "
            f"{tuple(cosine.shape)}"
        )
    heads = sine.shape[1]
    if k.shape not in ((heads,), (heads, 1)):
        raise UsageError(f"k must have the shape ({heads},), one for each space, got {tuple(k.shape)}")
    return at_least_float32(sine), at_least_float32(cosine), at_least_float32(k).reshape(heads)


def checked_bias(bias: tuple[Tensor, Tensor] | None, points: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return biases in the dtype of the points ``(N, ...)``, once there are as many."""
    if bias is None:
        return None
    for one in bias:
        if one.shape != points.shape[:1]:
            raise UsageError(
                f"bias must be two vectors, an entry for each of the {points.shape[0]} points, got {tuple(one.shape)}"
            )
    return bias[0].to(points.dtype), bias[1].to(points.dtype)


def check_graph(points: Tensor, neighbours: Neighbours, columns: Tensor | None) -> None:
    """Raise unless the graph and the columns fit the points ``(N, ...)``."""
    nodes = points.shape[0]
    if neighbours.num_nodes != nodes:
        raise UsageError(f"there are {nodes} points, but the graph has {neighbours.num_nodes} nodes")
    if neighbours.indptr.device != points.device:
        raise UsageError(
            f"the graph is on {neighbours.indptr.device}, the points on {points.device}: move it with to()"
        )
    if columns is None:
        return
    if columns.dtype != torch.int64 or columns.dim() != 1 or columns.numel() == 0:
        raise UsageError(
            f"columns must be a vector of at least one int64, got {columns.dtype} {tuple(columns.shape)}"
        )
    if columns.min() < 0 or columns.max() >= nodes:
        raise UsageError(f"columns must name nodes from 0 to {nodes - 1}")
