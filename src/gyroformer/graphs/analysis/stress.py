r"""Points of a space of constant curvature whose distances come as near as they can to given ones, many sets at once.

For a set of m nodes with the distances h (hops of a graph) the weighted stress

.. math:: L(\kappa) = \min_{x, a} \sum_{i<j} w_{ij}\,(h_{ij} - a_i - a_j - d_\kappa(x_i, x_j))^2, \qquad
          w_{ij} = 1/h_{ij},

is minimised over points x and an offset a for each node: a path of whole hops is longer than the way, by about the same
whatever the way, and by more for a node with few neighbours. Without the offsets such nodes look like the leaves of a
tree, and a flat graph like a hyperbolic one. The points are tangent vectors u at the origin, in half-angle coordinates
P, C as in :mod:`gyroformer.ops.lifted`, so that nothing happens at :math:`\kappa = 0`. Gauss-Newton steps with a
damping for each set; a pair's derivatives are closed forms, and the sets stand side by side in one tensor. All of it
is float64.
"""

import dataclasses as dc

import torch
from torch import Tensor

from gyroformer.geometry.trig import arsin_ratio, sin_ratio_and_cos

#: a fit has ended when no set's stress falls by more than this fraction in a step
TOLERANCE = 1e-4
#: steps at the most
STEPS = 40
#: damping at the start, and its bounds, in units of the mean diagonal of the normal matrix
DAMPING, LEAST, MOST = 1e-2, 1e-6, 1e6
#: √|κ||u| beyond which a point of a hyperbolic space counts as this far: where float64 still resolves a quotient
REACH = 7.0


@dc.dataclass(frozen=True, slots=True)
class Sets:
    """Sets of nodes with the distances within each.

    Attributes:
        hops: distances ``(S, m, m)``; what ``pairs`` leaves out does not matter.
        pairs: which pairs there are, ``(S, m, m)``, symmetric: sets may have fewer nodes than m.
    """

    hops: Tensor
    pairs: Tensor

    @property
    def weight(self) -> Tensor:
        """Weights ``(S, m, m)`` of the pairs."""
        return torch.where(self.pairs, 1 / self.hops.clamp(min=1), 0.0)


@dc.dataclass(frozen=True, slots=True)
class Fitted:
    """The best points at one curvature.

    Attributes:
        points: tangent vectors ``(S, m, d)`` at the origin; distances are twice their lengths there.
        offset: a of each node, ``(S, m)``.
        stress: L of each set, ``(S,)``.
        slope: dL/dκ of each set, ``(S,)``: points and offset are at their best, so only the space's own change counts.
    """

    points: Tensor
    offset: Tensor
    stress: Tensor
    slope: Tensor


def start(sets: Sets, dim: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return points and offsets to begin with: classical scaling in the flat space, a little shaken."""
    there = sets.pairs.any(2).double()
    count = there.sum(1)[:, None, None].clamp(min=1)
    square = sets.hops.square() * sets.pairs
    row = square.sum(2, keepdim=True) / count
    centred = -0.5 * (square - row - row.mT + square.sum((1, 2), keepdim=True) / count.square())
    values, vectors = torch.linalg.eigh(centred * there[:, :, None] * there[:, None])
    found = vectors[..., -dim:] * values[:, None, -dim:].clamp(min=0).sqrt()
    noise = torch.randn(found.shape, dtype=found.dtype, generator=generator)
    return 0.5 * (found + 0.1 * noise), found.new_zeros(found.shape[:2])


def fit(sets: Sets, curvature: float, points: Tensor, offset: Tensor, *, steps: int = STEPS) -> Fitted:
    """Return the best points and offsets at a curvature, from those given."""
    weight = sets.weight
    damping = torch.full_like(offset[:, 0], DAMPING)
    now = _state(sets, weight, points, offset, curvature)
    for _ in range(steps):
        moved = _step(weight, now, damping)
        new = _state(sets, weight, points + moved[..., :-1], offset + moved[..., -1], curvature)
        better = new.stress < now.stress
        moved = torch.where(better[:, None, None], moved, 0.0)
        points, offset = points + moved[..., :-1], offset + moved[..., -1]
        gain = torch.where(better, (now.stress - new.stress) / now.stress, 0.0)
        done = (gain < TOLERANCE) & (better | (damping > 1))
        now = now.updated(new, better)
        damping = torch.where(better, damping / 4, damping * 6).clamp(LEAST, MOST)
        if bool(done.all()):
            break
    return Fitted(points, offset, now.stress, _slope(sets, weight, points, offset, curvature))


@dc.dataclass(frozen=True, slots=True)
class _State:
    """What a step needs: residuals h − a_i − a_j − d, and the derivatives of a_i + a_j + d in node i."""

    stress: Tensor
    residual: Tensor
    gradient: Tensor

    def updated(self, new: "_State", better: Tensor) -> "_State":
        return _State(
            torch.where(better, new.stress, self.stress),
            torch.where(better[:, None, None], new.residual, self.residual),
            torch.where(better[:, None, None, None], new.gradient, self.gradient),
        )


def _half_angles(points: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Return P ``(S, m, d)`` and C ``(S, m, 1)``; ``k`` broadcasts to ``(S, 1, 1)``."""
    z = k * points.square().sum(-1, keepdim=True)
    shrink = (REACH / (-z).clamp(min=REACH * REACH).sqrt()).where(z < 0, 1.0)
    ratio, cosine = sin_ratio_and_cos(z * shrink.square())
    return points * (ratio * shrink), cosine


def _quotients(sine: Tensor, cosine: Tensor) -> Tensor:
    """Return q = |C_j P_i − C_i P_j|², ``(S, m, m)``."""
    total = sine.new_zeros(())
    for axis in range(sine.shape[-1]):
        product = sine[..., axis, None] * cosine.mT
        total = total + (product - product.mT).square()
    return total


def _residual(sets: Sets, offset: Tensor, distance: Tensor) -> Tensor:
    return torch.where(sets.pairs, sets.hops - offset[:, :, None] - offset[:, None] - distance, 0.0)


@torch.no_grad()
def _state(sets: Sets, weight: Tensor, points: Tensor, offset: Tensor, curvature: float) -> _State:
    k = points.new_tensor(curvature)
    with torch.enable_grad():
        free = points.detach().requires_grad_()
        sine, cosine = _half_angles(free, k)
        joined = torch.cat((sine, cosine), -1)
        # how P and C of a node move with each coordinate of its u, (S, m, d, d + 1)
        moves = torch.stack(
            [torch.autograd.grad(part.sum(), free, retain_graph=True)[0] for part in joined.unbind(-1)], -1
        )
    sine, cosine = sine.detach(), cosine.detach()
    q = _quotients(sine, cosine)
    root = q.clamp(min=torch.finfo(q.dtype).tiny).sqrt()
    residual = _residual(sets, offset, 2 * root * arsin_ratio(k * q))
    # ∂d/∂q = 1/√(q (1 − κq)), twice: q is a square
    by_q = torch.where(sets.pairs & (k * q < 1), 2 / (root * (1 - k * q).clamp(min=1e-12).sqrt()), 0.0)
    by_sine = cosine.mT[..., None].square() * sine[:, :, None]
    by_sine = by_sine - (cosine * cosine.mT)[..., None] * sine[:, None]
    by_cosine = cosine * sine.square().sum(-1)[:, None] - cosine.mT * (sine @ sine.mT)
    both = torch.cat((by_sine, by_cosine[..., None]), -1) * by_q[..., None]
    gradient = torch.cat((both @ moves.mT, sets.pairs[..., None].to(q.dtype)), -1)
    return _State(0.5 * (weight * residual.square()).sum((1, 2)), residual, gradient)


def _step(weight: Tensor, now: _State, damping: Tensor) -> Tensor:
    """Return the damped Gauss-Newton step of points and offsets, ``(S, m, d + 1)``."""
    count, m, _, free = now.gradient.shape
    weighted = weight[..., None] * now.gradient
    # a pair moves with both ends: blocks (i, i) are sums over j, blocks (i, j) products of the two ends
    normal = (weighted[..., :, None] * now.gradient.transpose(1, 2)[..., None, :]).permute(0, 1, 3, 2, 4)
    normal = normal.contiguous()
    own = torch.arange(m)
    normal[:, own, :, own] += (weighted.mT @ now.gradient).transpose(0, 1)
    normal = normal.reshape(count, m * free, m * free)
    scale = damping * normal.diagonal(dim1=1, dim2=2).mean(1)
    normal.diagonal(dim1=1, dim2=2).add_(scale[:, None])
    right = ((weight * now.residual)[..., None] * now.gradient).sum(2).reshape(count, m * free, 1)
    return torch.linalg.solve(normal, right).reshape(count, m, free)


def _slope(sets: Sets, weight: Tensor, points: Tensor, offset: Tensor, curvature: float) -> Tensor:
    """Return dL/dκ of each set at fixed points and offsets."""
    k = points.new_full((len(points), 1, 1), curvature, requires_grad=True)
    with torch.enable_grad():
        q = _quotients(*_half_angles(points, k))
        far = 2 * q.clamp(min=torch.finfo(q.dtype).tiny).sqrt() * arsin_ratio(k * q)
        stress = 0.5 * (weight * _residual(sets, offset, far).square()).sum()
        (slope,) = torch.autograd.grad(stress, k)
    return slope.flatten()
