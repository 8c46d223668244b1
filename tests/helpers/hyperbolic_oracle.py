"""Distances on the hyperboloid by way of the stereographic model, for tests of what computes them otherwise."""

from gyroformer import geometry


def stereographic(s, k):
    """Return the stereographic points under the space coordinates ``s`` on the hyperboloid of curvature k."""
    return s / (1 + (1 - k * s.square().sum(-1, keepdim=True)).sqrt())


def hyperbolic_dist(s, other, k):
    """Return the distances between points of the hyperboloid, given by their space coordinates."""
    return geometry.dist(stereographic(s, k), stereographic(other, k), k=k)
