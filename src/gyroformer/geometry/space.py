"""The spaces as objects: they own a curvature, check what they are given, and call the pure functions."""

import torch
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.geometry import charts, distances, gyro, maps, midpoint, origin
from gyroformer.geometry.precision import Curvature


class Stereographic:
    """The stereographic model of one curvature: k < 0 hyperbolic, k = 0 flat, k > 0 spherical.

    Every method checks its input and raises :class:`~gyroformer.errors.UsageError` for NaN, points outside
    the ball, wrong shapes and dtypes. The checks read the values; they are left out while ``torch.compile``
    traces and with ``check=False``.

    Example:
        >>> space = Stereographic(-1.0)
        >>> x = space.expmap0(torch.tensor([0.3, 0.4]))
        >>> space.dist0(x)
        tensor(1.)

    Args:
        k: a number, or a tensor (a parameter, say) that broadcasts to ``(..., 1)`` of the points.
        check: whether to check the input of every call.
    """

    def __init__(self, k: Curvature, *, check: bool = True) -> None:
        curvature = k if isinstance(k, Tensor) else torch.tensor(float(k))
        if not curvature.is_floating_point():
            raise UsageError(f"a curvature must be a floating-point number, got {curvature.dtype}")
        if not bool(torch.isfinite(curvature).all()):
            raise UsageError(f"a curvature must be finite, got {curvature.detach().flatten().tolist()}")
        self.k = curvature
        self.check = check

    def __repr__(self) -> str:
        return f"{type(self).__name__}(k={self.k.detach().flatten().tolist()})"

    def _k(self, x: Tensor) -> Tensor:
        """Return the curvature where ``x`` is; without dimensions it may stay on the CPU."""
        return self.k.to(x.device) if self.k.dim() else self.k

    def check_vector(self, vector: Tensor, name: str = "vector") -> Tensor:
        """Return ``vector`` if its dtype, shape and values can be used here; raise otherwise."""
        if not isinstance(vector, Tensor):
            raise UsageError(f"{name} must be a torch tensor, got {type(vector).__name__}")
        if not self.check or torch.compiler.is_compiling():
            return vector
        if not vector.is_floating_point():
            raise UsageError(f"{name} must be floating point, got {vector.dtype}: use {name}.float()")
        if vector.dim() == 0:
            raise UsageError(f"{name} must have at least one dimension, the coordinates; got a single number")
        try:
            shape = torch.broadcast_shapes((*vector.shape[:-1], 1), self.k.shape)
        except RuntimeError:
            shape = None
        if shape != (*vector.shape[:-1], 1):
            raise UsageError(
                f"{name} of shape {tuple(vector.shape)} does not fit the curvature of shape "
                f"{tuple(self.k.shape)}, which must broadcast to the same shape with a last dimension of 1"
            )
        finite = torch.isfinite(vector)
        if not bool(finite.all()):
            first = (~finite).nonzero()[0].tolist()
            raise UsageError(
                f"{name} has {int((~finite).sum())} values that are not finite, the first at {first}"
            )
        return vector

    def check_point(self, point: Tensor, name: str = "point") -> Tensor:
        """Return ``point`` if it lies on the space; raise otherwise."""
        self.check_vector(point, name)
        if self.check and not torch.compiler.is_compiling():
            # in the wide dtype: the points' own rounding must not decide
            rho = (-self._k(point).double() * point.double().square().sum(-1, keepdim=True)).detach()
            if bool((rho >= 1).any()):
                first = (rho >= 1).squeeze(-1).nonzero()
                where = first[0].tolist() if first.numel() and rho.numel() > 1 else "the only one"
                raise UsageError(
                    f"{name} lies outside the ball: |k||x|² is up to {float(rho.max()):.6g}, must be below 1 "
                    f"(first at {where}); use project"
                )
        return point

    def expmap0(self, u: Tensor) -> Tensor:
        """See :func:`gyroformer.geometry.expmap0`."""
        return origin.expmap0(self.check_vector(u, "u"), k=self._k(u))

    def logmap0(self, y: Tensor) -> Tensor:
        """See :func:`gyroformer.geometry.logmap0`."""
        return origin.logmap0(self.check_point(y, "y"), k=self._k(y))

    def expmap(self, x: Tensor, u: Tensor) -> Tensor:
        """See :func:`gyroformer.geometry.expmap`."""
        return maps.expmap(self.check_point(x, "x"), self.check_vector(u, "u"), k=self._k(x))

    def logmap(self, x: Tensor, y: Tensor) -> Tensor:
        """See :func:`gyroformer.geometry.logmap`."""
        return maps.logmap(self.check_point(x, "x"), self.check_point(y, "y"), k=self._k(x))

    def mobius_add(self, x: Tensor, y: Tensor) -> Tensor:
        """See :func:`gyroformer.geometry.mobius_add`."""
        return gyro.mobius_add(self.check_point(x, "x"), self.check_point(y, "y"), k=self._k(x))

    def parallel_transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        """See :func:`gyroformer.geometry.parallel_transport`."""
        ends = self.check_point(x, "x"), self.check_point(y, "y")
        return maps.parallel_transport(*ends, self.check_vector(v, "v"), k=self._k(x))

    def geodesic(self, t: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """See :func:`gyroformer.geometry.geodesic`."""
        return maps.geodesic(t, self.check_point(x, "x"), self.check_point(y, "y"), k=self._k(x))

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """See :func:`gyroformer.geometry.inner`."""
        return maps.inner(
            self.check_point(x, "x"), self.check_vector(u, "u"), self.check_vector(v, "v"), k=self._k(x)
        )

    def norm(self, x: Tensor, u: Tensor) -> Tensor:
        """See :func:`gyroformer.geometry.norm`."""
        return maps.norm(self.check_point(x, "x"), self.check_vector(u, "u"), k=self._k(x))

    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        """See :func:`gyroformer.geometry.dist`."""
        return maps.dist(self.check_point(x, "x"), self.check_point(y, "y"), k=self._k(x))

    def dist0(self, x: Tensor) -> Tensor:
        """See :func:`gyroformer.geometry.dist0`."""
        return maps.dist0(self.check_point(x, "x"), k=self._k(x))

    def pairwise_dist(self, x: Tensor, y: Tensor) -> Tensor:
        """See :func:`gyroformer.geometry.pairwise_dist`."""
        return distances.pairwise_dist(self.check_point(x, "x"), self.check_point(y, "y"), k=self._k(x))

    def midpoint(self, x: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return the midpoint over the dimension before the coordinates (a product: before the factors)."""
        reduced = -1 - max(self.k.dim(), 1)
        points = self.check_point(x, "x")
        return midpoint.weighted_midpoint(points, weights, k=self._k(x), reducedim=[reduced])

    def project(self, x: Tensor) -> Tensor:
        """See :func:`gyroformer.geometry.project`."""
        return charts.project(self.check_vector(x, "x"), k=self._k(x))


class ProductSpace(Stereographic):
    r"""A product of H stereographic models of one dimension d; points are ``(..., H, d)``.

    Maps act on each factor; distances and lengths combine them, :math:`d = \sqrt{\sum_h d_h^2}`.

    Args:
        curvatures: one number for each factor, or a tensor of shape ``(H,)``.
        check: whether to check the input of every call.
    """

    def __init__(self, curvatures: Tensor | list[float] | tuple[float, ...], *, check: bool = True) -> None:
        k = curvatures if isinstance(curvatures, Tensor) else torch.tensor([float(k) for k in curvatures])
        if k.dim() != 1 or k.numel() == 0:
            raise UsageError(f"a product needs a list of curvatures, shape (H,); got shape {tuple(k.shape)}")
        super().__init__(k.unsqueeze(-1), check=check)

    @property
    def factors(self) -> int:
        """Number of factors, H."""
        return self.k.size(0)

    def split(self, x: Tensor) -> Tensor:
        """Return ``x (..., H * d)`` as ``(..., H, d)``."""
        if x.size(-1) % self.factors:
            raise UsageError(f"{x.size(-1)} coordinates do not divide into {self.factors} factors")
        return x.unflatten(-1, (self.factors, -1))

    def join(self, x: Tensor) -> Tensor:
        """Return ``x (..., H, d)`` as ``(..., H * d)``."""
        return x.flatten(-2)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """Return the inner product summed over the factors."""
        return super().inner(x, u, v).sum(-1)

    def norm(self, x: Tensor, u: Tensor) -> Tensor:
        """Return the length of a tangent vector of the product."""
        return torch.linalg.vector_norm(super().norm(x, u), dim=-1)

    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the distance of the product."""
        return torch.linalg.vector_norm(super().dist(x, y), dim=-1)

    def dist0(self, x: Tensor) -> Tensor:
        """Return the distance from the product's origin."""
        return torch.linalg.vector_norm(super().dist0(x), dim=-1)
