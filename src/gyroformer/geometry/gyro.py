r"""Gyrovector operations: addition, rotation, multiplication. Pure functions; k < 0 ball, 0 flat, > 0 sphere.

Shapes: points ``(..., d)``, a curvature ``k`` is a number or broadcasts to ``(..., 1)``; ``dim`` is the
dimension of the coordinates. A point on or outside the ball (k < 0) counts as lying on the last
representable shell inside it; NaN stays NaN. Use :class:`gyroformer.geometry.Stereographic` for errors
instead.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gyroformer.geometry import matvec_kernel
from gyroformer.geometry.origin import expmap0, logmap0
from gyroformer.geometry.parts import conformal, dot, drop, gyro_sum
from gyroformer.geometry.precision import Curvature, widened
from gyroformer.geometry.rows import by_rows
from gyroformer.geometry.trig import artan_ratio, tan_ratio


@by_rows(1, scalar=True)
@widened
def lambda_x(x: Tensor, *, k: Curvature, keepdim: bool = False, dim: int = -1) -> Tensor:
    r"""Return the conformal factor :math:`\lambda_x = 2/(1 + \kappa\lVert x\rVert^2)`."""
    return drop(2 / conformal(x, k, dim), keepdim, dim)


@by_rows(2)
@widened
def mobius_add(x: Tensor, y: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return the Möbius sum, the translation of y by x.

    .. math:: x \oplus_\kappa y = \frac{(1 - 2\kappa\langle x,y\rangle - \kappa|y|^2)x + (1 + \kappa|x|^2)y}
              {1 - 2\kappa\langle x,y\rangle + \kappa^2|x|^2|y|^2}

    For k > 0 the sum can be the point at infinity (the antipode of the origin); there a point about
    ``1/eps`` away is returned.
    """
    return gyro_sum(x, y, k, dim).value()


def mobius_sub(x: Tensor, y: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return :math:`x \oplus_\kappa (-y)`."""
    return mobius_add(x, -y, k=k, dim=dim)


@by_rows(2)
@widened
def mobius_coadd(x: Tensor, y: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return the commutative co-addition :math:`x \oplus \mathrm{gyr}[x, -y]y`, in closed form.

    .. math:: x \boxplus_\kappa y = \frac{c_y x + c_x y}{c_x + c_y - c_x c_y}, \qquad c_x = 1 + \kappa|x|^2
    """
    cx, cy = conformal(x, k, dim), conformal(y, k, dim)
    # 1 - k²|x|²|y|²; zero only for k > 0 and k|x||y| = 1, where the result is the point at infinity
    denominator = torch.where(k > 0, 1 - (1 - cx) * (1 - cy), cx + cy - cx * cy)
    unit = torch.finfo(x.dtype).eps
    near_zero = torch.where(denominator < 0, -unit, unit)
    return (cy * x + cx * y) / torch.where(denominator.abs() < unit, near_zero, denominator)


def mobius_cosub(x: Tensor, y: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return :math:`x \boxplus_\kappa (-y)`."""
    return mobius_coadd(x, -y, k=k, dim=dim)


def rotate(a: Tensor, b: Tensor, u: Tensor, gyro: tuple[Tensor, Tensor], k: Tensor, dim: int) -> Tensor:
    r"""Return u turned in the plane of a and b.

    .. math:: u - \tfrac{2\kappa p}{D} Bu + \tfrac{2\kappa^2}{D} B^2u, \qquad
              Bu = a\langle b,u\rangle - b\langle a,u\rangle

    ``gyro`` is (p, D): half the angle has the tangent :math:`\kappa|a \wedge b|/p`, and
    :math:`D = p^2 + \kappa^2|a \wedge b|^2`.
    """
    p, denominator = gyro

    def plane(w: Tensor) -> Tensor:
        return a * dot(b, w, dim) - b * dot(a, w, dim)

    once = plane(u)
    return u - (2 * k / denominator) * (p * once - k * plane(once))


@by_rows(3, narrow=True)
@widened
def gyration(a: Tensor, b: Tensor, u: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return :math:`\mathrm{gyr}[a, b]u = \ominus(a \oplus b) \oplus (a \oplus (b \oplus u))`, a rotation.

    It is computed as the rotation it is, so u may be any vector, of any length.
    """
    gyro = gyro_sum(a, b, k, dim)
    return rotate(a, b, u, (half_angle_cosine(a, b, gyro.total_squared, k, dim), gyro.denominator), k, dim)


def half_angle_cosine(a: Tensor, b: Tensor, total_squared: Tensor, k: Tensor, dim: int) -> Tensor:
    r"""Return :math:`1 - \kappa\langle a, b\rangle`; in the ball as a sum of positive terms."""
    ball = 0.5 * (conformal(a, k, dim) + conformal(b, k, dim) - k * total_squared)
    return torch.where(k > 0, 1 - k * dot(a, b, dim), ball)


@by_rows(1, number=True)
@widened
def mobius_scalar_mul(r: Tensor, x: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return :math:`r \otimes_\kappa x = \exp_0(r \log_0 x)`, the point r times as far from 0."""
    v = x * (r * artan_ratio(k * dot(x, x, dim)))
    return v * tan_ratio(k * dot(v, v, dim))


@by_rows(2)
@widened
def mobius_pointwise_mul(w: Tensor, x: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return :math:`\exp_0(w \cdot \log_0 x)`, coordinate by coordinate."""
    return expmap0(w * logmap0(x, k=k, dim=dim), k=k, dim=dim)


def mobius_matvec(m: Tensor, x: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return :math:`M \otimes_\kappa x = \exp_0(M \log_0 x)`, M of shape ``(..., e, d)``."""
    out = matvec_kernel.by_kernel(m, x, k=k, dim=dim, form=_mobius_matvec)
    return _mobius_matvec(m, x, k=k, dim=dim) if out is None else out


@widened
def _mobius_matvec(m: Tensor, x: Tensor, *, k: Curvature, dim: int) -> Tensor:
    v = logmap0(x, k=k, dim=dim)
    if m.dim() == 2:
        image = torch.movedim(torch.movedim(v, dim, -1) @ m.mT, -1, dim)
    elif dim in (-1, x.dim() - 1):
        image = (m @ v.unsqueeze(-1)).squeeze(-1)
    else:
        raise ValueError(f"a batch of matrices needs the coordinates in the last dimension, got dim={dim}")
    return expmap0(image, k=k, dim=dim)


def mobius_fn_apply(
    fn: Callable[..., Tensor], x: Tensor, *args: Any, k: Curvature, dim: int = -1, **kwargs: Any
) -> Tensor:
    r"""Return :math:`\exp_0(f(\log_0 x))`."""
    return mobius_fn_apply_chain(x, lambda v: fn(v, *args, **kwargs), k=k, dim=dim)


def mobius_fn_apply_chain(x: Tensor, *fns: Callable[[Tensor], Tensor], k: Curvature, dim: int = -1) -> Tensor:
    r"""Return :math:`\exp_0(f_n(\dots f_1(\log_0 x)))`: one logarithm and one exponential in all."""
    if not fns:
        return x
    v = logmap0(x, k=k, dim=dim)
    for fn in fns:
        v = fn(v)
    return expmap0(v, k=k, dim=dim)


def mobiusify(fn: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return ``fn`` acting on points: it takes ``k`` and ``dim`` as keywords beside its own arguments."""

    @functools.wraps(fn)
    def mobius_fn(x: Tensor, *args: Any, k: Curvature, dim: int = -1, **kwargs: Any) -> Tensor:
        return mobius_fn_apply(fn, x, *args, k=k, dim=dim, **kwargs)

    return mobius_fn
