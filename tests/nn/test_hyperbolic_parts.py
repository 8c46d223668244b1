"""Activations of ball coordinates, distances to centroids, translation: exact far from the origin, smooth at k = 0."""

from typing import get_args

import pytest
import torch
import torch.nn.functional as F

from gyroformer import geometry as g
from gyroformer.nn.curvature import MobiusBias
from gyroformer.nn.logits import CentroidScores
from gyroformer.nn.tangent import ACTIVATIONS, ball_activation
from gyroformer.ops.lifted import sine_cosine, translate_hyperbolic
from gyroformer.options.models import ShrinkingName

LENGTHS = [0.0, 1e-3, 0.5, 2.0, 5.0, 7.0]


def directions(rows=10, width=4, *, length=1.0):
    u = torch.randn(rows, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return length * u / u.norm(dim=-1, keepdim=True)


def curvature(k, dtype=torch.float64):
    return torch.tensor([[k]], dtype=dtype)


@pytest.mark.parametrize("name", get_args(ShrinkingName))
@pytest.mark.parametrize("k", [-1.0, -1e-9, 0.0])
def test_ball_activation_is_what_it_says(name, k):
    u = directions(length=1.5)
    sigma = ACTIVATIONS[name]
    expected = g.logmap0(sigma(g.expmap0(u, k=k)), k=k)
    torch.testing.assert_close(ball_activation(u, curvature(k), sigma), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("length", LENGTHS)
def test_ball_activation_keeps_far_points_in_float32(length):
    u = directions(length=length).float()
    exact = ball_activation(u.double(), curvature(-1.0), F.relu)
    ours = ball_activation(u, curvature(-1.0, torch.float32), F.relu)
    torch.testing.assert_close(ours.double(), exact, rtol=2e-5, atol=1e-6)
    # an activation that changes nothing must change nothing, however near the edge
    same = ball_activation(u.abs(), curvature(-1.0, torch.float32), F.relu)
    torch.testing.assert_close(same, u.abs(), rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("k", [-1.0, -1e-9, 0.0])
def test_centroid_distances_are_distances(k, dtype):
    torch.manual_seed(0)
    u = directions(length=2.0)
    scores = CentroidScores(4, 6, 3).to(dtype)
    expected = g.dist(g.expmap0(u, k=k)[:, None], g.expmap0(scores.centroid.double(), k=k), k=k)
    ours = scores.distances(u.to(dtype), curvature(k, dtype))
    tolerance = 1e-6 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(ours.double(), expected, rtol=tolerance, atol=tolerance)


def test_a_point_on_a_centroid_has_a_finite_gradient(dtype):
    scores = CentroidScores(4, 3, 2).to(dtype)
    u = scores.centroid.detach().clone().requires_grad_()
    scores(u, curvature(-1.0, dtype)).sum().backward()
    assert torch.isfinite(u.grad).all()
    assert torch.isfinite(scores.centroid.grad).all()


@pytest.mark.parametrize("k", [-1.0, -1e-9, 0.0])
def test_translation_is_the_mobius_sum(k):
    p, x = directions(length=1.5), directions(length=0.8).flip(0)
    space = curvature(k)
    ours = translate_hyperbolic(sine_cosine(p, space), *sine_cosine(x, space), space)
    expected = g.logmap0(g.mobius_add(g.expmap0(p, k=k), g.expmap0(x, k=k), k=k), k=k)
    torch.testing.assert_close(ours, expected, rtol=1e-11, atol=1e-11)
    bias = MobiusBias(1, 4).double()
    torch.nn.init.normal_(bias.bias)
    b = g.expmap0(bias.bias, k=k)
    expected = g.logmap0(g.mobius_add(g.expmap0(p, k=k), b, k=k), k=k)
    torch.testing.assert_close(bias(p.unsqueeze(1), space).squeeze(1), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_point_seen_from_itself_is_at_the_origin_and_a_near_one_is_near(length):
    x = directions(length=length).float()
    space = curvature(-1.0, torch.float32)
    sine, cosine = sine_cosine(x, space)
    assert (translate_hyperbolic((-sine, cosine), sine, cosine, space) == 0).all()
    y = 1.001 * x
    seen = translate_hyperbolic((-sine, cosine), *sine_cosine(y, space), space).norm(dim=-1)
    # along a ray lengths subtract; what is left of them is known to the rounding of sinh x cosh y
    error = 4 * torch.finfo(torch.float32).eps * torch.tensor(2 * length).sinh() + 1e-6
    torch.testing.assert_close(seen, (y - x).norm(dim=-1), rtol=1e-3, atol=error.item())


def test_centroids_near_far_points_are_resolved_in_float32():
    u = directions(length=4.0).float()
    scores = CentroidScores(4, 10, 3)
    scores.centroid.data = 1.01 * u
    space = curvature(-1.0, torch.float32)
    ours = scores.distances(u, space).diagonal()
    # on a ray the distance is twice the difference of the lengths
    torch.testing.assert_close(ours, torch.full((10,), 0.08), rtol=1e-2, atol=0)
