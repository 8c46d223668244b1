r"""The weighted midpoint, in one closed form for every curvature."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gyroformer.geometry.charts import antipode
from gyroformer.geometry.gyro import mobius_scalar_mul
from gyroformer.geometry.midpoint_kernel import by_kernel
from gyroformer.geometry.parts import conformal, dot
from gyroformer.geometry.precision import Curvature, widened
from gyroformer.geometry.trig import safe_sqrt


def weighted_midpoint(
    xs: Tensor,
    weights: Tensor | None = None,
    *,
    k: Curvature,
    reducedim: Sequence[int] | None = None,
    dim: int = -1,
    keepdim: bool = False,
    lincomb: bool = False,
    posweight: bool = False,
) -> Tensor:
    r"""Return the weighted gyro-midpoint of points over the dimensions ``reducedim``.

    A point lies in the ambient sphere or hyperboloid at :math:`(\lambda x, \lambda - 1)`; the midpoint is the
    mean there, projected back. With :math:`N = \sum w\lambda x` and :math:`D = \sum w(\lambda - 1)`,

    .. math:: m = \frac{N}{D + \sqrt{D^2 + \kappa|N|^2}}

    for every k, past the equator too, smooth at k = 0 and at D = 0. It does not change when all weights are
    multiplied by one number; an infinite weight makes its own result NaN, no other. On a sphere a mean of
    (N, D) = 0 has no midpoint: the origin is returned.

    Args:
        xs: points ``(..., d)``.
        weights: broadcasts to the points' shape without ``dim``; 1 when absent.
        k: curvature, broadcasting to ``(..., 1)``.
        reducedim: dimensions to reduce; all but ``dim`` when absent.
        dim: dimension of the coordinates.
        keepdim: keep the reduced dimensions with size 1.
        lincomb: multiply the midpoint by the sum of the weights, a linear combination of gyrovectors.
        posweight: replace a negative weight by its absolute value at the opposite point.
    """
    dims = [d % xs.dim() for d in (range(xs.dim()) if reducedim is None else reducedim)]
    if reducedim is None:
        dims.remove(dim % xs.dim())
    elif dim % xs.dim() in dims:
        raise ValueError(f"reducedim {list(reducedim)} contains dim {dim}, the dimension of the coordinates")
    weight = torch.ones((), dtype=xs.dtype, device=xs.device) if weights is None else weights.unsqueeze(dim)
    if posweight:
        xs = torch.where(weight < 0, antipode(xs, k=k, dim=dim), xs)
        weight = weight.abs()
    mean = by_kernel(
        xs, None if weights is None else weight, k=k, dims=dims, dim=dim % xs.dim(), form=_midpoint
    )
    if mean is None:
        mean = _midpoint(xs, weight, k=k, dims=dims, dim=dim)
    if lincomb:
        every = weight.expand_as(xs.narrow(dim, 0, 1))
        mean = mobius_scalar_mul(every.sum(dims, keepdim=True), mean, k=k, dim=dim)
    return mean if keepdim else mean.squeeze(dims)


@widened
def _midpoint(xs: Tensor, weight: Tensor, *, k: Curvature, dims: list[int], dim: int) -> Tensor:
    weight = weight.expand_as(xs.narrow(dim, 0, 1))
    # a common factor of a result's weights changes nothing; with the largest at 1 no square overflows. Each result
    # has its own: a huge weight must not make those of other results vanish
    largest = weight.detach().abs().amax(dims, keepdim=True)
    weight = weight / torch.where(largest > 0, largest, 1.0)
    share = weight / conformal(xs, k, dim)
    n = (2 * share * xs).sum(dims, keepdim=True)
    d = (2 * share - weight).sum(dims, keepdim=True)
    total = weight.expand(share.shape).sum(dims, keepdim=True)
    # (N, D) and (-N, -D) name the same point; weights with a negative sum come with the wrong one
    flip = torch.where(torch.where(k > 0, total, d) < 0, -1.0, 1.0)
    return project_back(flip * n, flip * d, k, dim)


def project_back(n: Tensor, d: Tensor, k: Tensor, dim: int) -> Tensor:
    r"""Return :math:`n/(d + \sqrt{d^2 + \kappa|n|^2})`, the point under the ambient vector (n, d).

    Past the equator (d < 0, k > 0) the denominator cancels; there the equal form
    :math:`n(\sqrt{d^2 + \kappa|n|^2} - d)/(\kappa|n|^2)` is used. Where a denominator is 0 the point is at
    infinity or undefined; the origin is returned.
    """
    squared = k * dot(n, n, dim)
    root = safe_sqrt(d * d + squared)
    beyond = (d < 0) & (squared > 0)
    upper = torch.where(beyond, 1.0, d + root)
    regular = n / torch.where(upper > 0, upper, 1.0)
    return torch.where(beyond, n * ((root - d) / torch.where(beyond, squared, 1.0)), regular)
