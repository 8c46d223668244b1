r"""Exponential and logarithmic map at the origin, where both are scalings. Conventions as in ``gyro``."""

from torch import Tensor

from gyroformer.geometry.parts import dot
from gyroformer.geometry.precision import Curvature, widened
from gyroformer.geometry.rows import by_rows
from gyroformer.geometry.trig import artan_ratio, tan_ratio


@by_rows(1)
@widened
def expmap0(u: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return the points reached from the origin along u.

    .. math:: \exp_0(u) = u\,T(\kappa|u|^2), \qquad T(z) = \tan\sqrt z/\sqrt z

    There is no division by a norm: u = 0 and k = 0 are ordinary points. For k > 0 the origin's antipode,
    at :math:`|u| = \pi/(2\sqrt\kappa)`, has no finite coordinates; beyond it the result comes back from the
    other side.
    """
    return u * tan_ratio(k * dot(u, u, dim))


@by_rows(1)
@widened
def logmap0(y: Tensor, *, k: Curvature, dim: int = -1) -> Tensor:
    r"""Return the tangent vectors at the origin that lead to y.

    .. math:: \log_0(y) = y\,A(\kappa|y|^2), \qquad A(z) = \arctan\sqrt z/\sqrt z
    """
    return y * artan_ratio(k * dot(y, y, dim))
