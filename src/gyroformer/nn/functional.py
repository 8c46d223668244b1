r"""Stereographic attention as a function of points and tangent vectors."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.geometry.midpoint import project_back
from gyroformer.geometry.parts import conformal
from gyroformer.geometry.precision import Curvature
from gyroformer.ops.attention import KINDS, attend


def stereographic_attention(
    query: Float[Tensor, "B H N d"],
    key: Float[Tensor, "B H N d"],
    value: Float[Tensor, "B H N d"],
    *,
    k: Curvature,
    kind: str = "softmax",
    mask: Bool[Tensor, "B N"] | None = None,
) -> Float[Tensor, "B H N d"]:
    r"""Return for each token the midpoint of all values, weighted by attention.

    Queries and keys are transported to the origin, :math:`\tilde Q = (\lambda_V/2)\,Q`. Their weights average the
    lifted values, and the mean is projected back:

    .. math:: m = \frac{N}{D + \sqrt{D^2 + \kappa|N|^2}}, \quad
              N = \sum_j \alpha_{ij}\lambda_j V_j, \quad D = \sum_j \alpha_{ij}(\lambda_j - 1)

    with :math:`\alpha = \exp(\langle\tilde Q, \tilde K\rangle/\sqrt d)` (``"softmax"``) or
    :math:`\alpha = \langle\phi(\tilde Q), \phi(\tilde K)\rangle`, :math:`\phi = \mathrm{ELU} + 1` (``"linear"``). At
    k = 0 this is the ordinary attention of a Transformer.

    Args:
        query: tangent vectors at ``value``, ``(B, H, N, d)``.
        key: tangent vectors at ``value``, ``(B, H, N, d)``.
        value: points, ``(B, H, N, d)``.
        k: curvature, broadcasting to ``(B, H, N, 1)``, for instance ``(H, 1, 1)``.
        kind: ``"softmax"`` (exact, quadratic in N) or ``"linear"``.
        mask: ``(B, N)``, True for real tokens. The others leave no trace in the result of real ones; their own
            result is the origin.

    Returns:
        Points ``(B, H, N, d)``.
    """
    check_attention(query, key, value, kind=kind, mask=mask)
    curvature = k if isinstance(k, Tensor) else torch.tensor(float(k), dtype=value.dtype, device=value.device)
    curvature = curvature.to(value.dtype)
    c = conformal(value, curvature, -1)
    lifted = torch.cat((2 * value / c, (2 - c) / c), dim=-1)
    ambient = attend(query / c, key / c, lifted, kind=kind, mask=mask)
    scale = ambient.detach().abs().amax(-1, keepdim=True)
    ambient = ambient / torch.where(scale > 0, scale, 1.0)
    middle = project_back(ambient[..., :-1], ambient[..., -1:], curvature, -1)
    return middle if mask is None else torch.where(mask[:, None, :, None], middle, 0.0)


def check_attention(query: Tensor, key: Tensor, value: Tensor, *, kind: str, mask: Tensor | None) -> None:
    """Raise :class:`UsageError` unless the arguments of attention fit together."""
    if kind not in KINDS:
        raise UsageError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}")
    shapes = {name: tuple(t.shape) for name, t in (("query", query), ("key", key), ("value", value))}
    if value.dim() != 4 or len(set(shapes.values())) != 1:
        raise UsageError(f"query, key and value must have one shape (B, H, N, d); got {shapes}")
    check_mask(mask, (value.size(0), value.size(2)))


def check_mask(mask: Tensor | None, shape: tuple[int, int]) -> None:
    """Raise :class:`UsageError` unless ``mask`` is absent or a boolean tensor of ``shape`` (B, N)."""
    if mask is None:
        return
    if mask.dtype != torch.bool:
        raise UsageError(f"mask must be boolean, True for real tokens; got {mask.dtype}")
    if tuple(mask.shape) != shape:
        raise UsageError(f"mask must have the shape (B, N) = {shape}; got {tuple(mask.shape)}")
