r"""Distances between many points, and from points to hyperplanes."""

import torch
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.geometry.parts import conformal, dot, drop, half_distance_ratio, length
from gyroformer.geometry.precision import Curvature, widened
from gyroformer.geometry.rows import by_rows
from gyroformer.geometry.trig import arsin_ratio, safe_sqrt


def dist2plane(
    x: Tensor,
    p: Tensor,
    a: Tensor,
    *,
    k: Curvature,
    keepdim: bool = False,
    signed: bool = False,
    scaled: bool = False,
    dim: int = -1,
) -> Tensor:
    r"""Return the distance from x to the hyperplane through p with normal a.

    With :math:`z = (-p) \oplus x` it is
    :math:`\sin_\kappa^{-1}\bigl(2\langle z,a\rangle/((1+\kappa|z|^2)|a|)\bigr)`, whose argument needs no
    Möbius sum. With :math:`\delta = x - p` it is

    .. math::
        \frac{2}{c_x|a|}\Bigl(\langle\delta,a\rangle + \kappa|\delta|^2\frac{\langle p,a\rangle}{c_p}\Bigr)
            = \frac{2}{c_x|a|}\Bigl(\langle x,a\rangle
              - (1 - \kappa|x|^2 + 2\kappa\langle x,p\rangle)\frac{\langle p,a\rangle}{c_p}\Bigr) ,

    the second form where k > 0 and x, p lie far apart.

    Args:
        x: points ``(..., d)``.
        p: a point of each hyperplane.
        a: its normal, a tangent vector at p; a zero normal gives distance 0.
        k: curvature, broadcasting to ``(..., 1)``.
        keepdim: keep the dimension of the coordinates with size 1.
        signed: negative on the side that a points away from.
        scaled: multiply by \|a\|.
        dim: dimension of the coordinates.
    """
    return _dist2plane(x, p, a, k=k, keepdim=keepdim, dim=dim, kind=bool(signed) + 2 * bool(scaled))


@by_rows(3, scalar=True, option="kind")
@widened
def _dist2plane(
    x: Tensor, p: Tensor, a: Tensor, *, k: Curvature, keepdim: bool = False, dim: int, kind: float
) -> Tensor:
    """Return the same; ``kind`` is 1 if signed, plus 2 if scaled."""
    cp, cx = conformal(p, k, dim), conformal(x, k, dim)
    delta = x - p
    size = length(a, dim)
    normal = a / torch.where(size > 0, size, 1.0)
    xx, xp, between = dot(x, x, dim), dot(x, p, dim), dot(delta, delta, dim)
    along = dot(p, normal, dim) / cp
    near = dot(delta, normal, dim) + k * between * along
    far = dot(x, normal, dim) - (1 - k * xx + 2 * k * xp) * along
    apart = (k > 0) & (between > 0.5 * (xx + dot(p, p, dim)))
    sine = 2 * torch.where(apart, far, near) / cx
    z = k * sine * sine
    # rounding may carry the sine past its end at the hyperplane's pole (k > 0)
    sine = torch.where(z > 1, sine * torch.where(z > 1, z, 1.0).rsqrt(), sine)
    distance = sine * arsin_ratio(z)
    if kind in (0, 2):
        distance = distance.abs()
    return drop(distance * size if kind >= 2 else distance, keepdim, dim)


def pairwise_dist(x: Tensor, y: Tensor, *, k: Curvature, squared: bool = False) -> Tensor:
    r"""Return all distances between two sets of points, from one Gram matrix.

    For one space, ``x (..., N, d)``, ``y (..., M, d)`` and a single curvature give ``(..., N, M)``. For a
    product of H spaces, ``x (..., N, H, d)``, ``y (..., M, H, d)`` and ``k (H, 1)`` give the distance
    :math:`\sqrt{\sum_h d_h^2}` of the product, again ``(..., N, M)``.

    A Gram matrix does not resolve points closer than about ``√eps`` of their norm in the wide dtype (in
    float32 that is below the inputs' own rounding, in float64 about 3e-8); such pairs are at distance 0, with
    derivative 0. Use :func:`~gyroformer.geometry.dist` for those.

    Args:
        x: first points.
        y: second points.
        k: one curvature, or one for each factor of a product, shape ``(H, 1)``.
        squared: return squared distances, which are smooth where two points meet.
    """
    curvature = k if isinstance(k, Tensor) else torch.tensor(float(k), dtype=torch.float64, device=x.device)
    if curvature.dim() < 2 and curvature.numel() == 1:
        square = _pairwise_squared(x, y, k=curvature.reshape(()))
    elif curvature.dim() == 2 and curvature.size(1) == 1 and x.dim() >= 3 and x.size(-2) == curvature.size(0):
        factors = _pairwise_squared(x.movedim(-2, 0), y.movedim(-2, 0), k=_per_factor(curvature, x.dim()))
        square = factors.sum(0)
    else:
        raise UsageError(
            "pairwise_dist takes one curvature for points (..., N, d), or k of shape (H, 1) for points "
            f"(..., N, H, d) of a product; got k {tuple(curvature.shape)} and x {tuple(x.shape)}"
        )
    return square if squared else safe_sqrt(square)


def _per_factor(k: Tensor, dims: int) -> Tensor:
    return k.reshape(-1, *([1] * (dims - 1)))


@widened
def _pairwise_squared(x: Tensor, y: Tensor, *, k: Curvature) -> Tensor:
    """Return squared distances ``(..., N, M)`` for one space; ``k`` broadcasts to that shape."""
    xx, yy = dot(x, x, -1), dot(y, y, -1).mT
    gram = x @ y.mT
    spread = xx + yy
    between = spread - 2 * gram
    # what the subtraction leaves of two equal points is rounding
    unresolved = 4 * torch.finfo(x.dtype).eps * spread
    between = torch.where(between <= unresolved, 0.0, between)
    product = conformal(x, k, -1) * conformal(y, k, -1).mT
    scale = 1 + (k * xx) * (k * yy)
    denominator = torch.maximum(scale + 2 * k * gram, torch.finfo(x.dtype).eps * scale)
    return 4 * between * half_distance_ratio(between, product, denominator, k).square()
