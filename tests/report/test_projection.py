import math

import numpy as np
import pytest
import torch

from gyroformer import geometry
from gyroformer.report.projection import (
    BEND,
    FLAT_REACH,
    draw_head,
    edge_paths,
    on_the_map,
    principal_plane,
    space_kind,
)

CURVATURES = (-2.0, -0.3, 0.0, 1e-8, -1e-8, 0.4, 2.0)


def tangents(width, *, spread=0.4, offset=0.3, nodes=60, seed=0):
    return np.random.default_rng(seed).normal(size=(nodes, width)) * spread + offset


def distances(points, k):
    k = torch.tensor(k, dtype=torch.float64)
    return geometry.pairwise_dist(points, points, k=k)


@pytest.mark.parametrize("k", CURVATURES)
def test_two_dimensions_lose_nothing(k):
    u = tangents(2)
    drawing = draw_head(u, k)
    points = geometry.expmap0(torch.tensor(u), k=torch.tensor(k, dtype=torch.float64))
    assert drawing.fraction == pytest.approx(1)
    torch.testing.assert_close(
        distances(drawing.planar, drawing.planar_k), distances(points, k), rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("k", CURVATURES)
def test_distances_from_the_middle_are_true_in_any_dimension(k):
    u = tangents(7)
    drawing = draw_head(u, k)
    tensor = torch.tensor(k, dtype=torch.float64)
    points = geometry.expmap0(torch.tensor(u), k=tensor)
    middle = geometry.weighted_midpoint(points, k=tensor)
    want = geometry.dist(middle, points, k=tensor).numpy()
    radius = np.linalg.norm(drawing.points, axis=1)
    root = math.sqrt(abs(k))
    read = {  # how each map is read
        "hyperbolic": lambda: 2 * np.arctanh(radius) / root,
        "spherical": lambda: math.pi * radius / root,
        "flat": lambda: radius,
    }[drawing.kind]()
    np.testing.assert_allclose(read, want, rtol=1e-6)
    assert drawing.reach == pytest.approx(want.max())
    assert 2 / 7 < drawing.fraction < 1


def test_points_far_from_the_origin_are_centred():
    near, far = tangents(3, spread=0.2, offset=0), tangents(3, spread=0.2, offset=4)
    for k in (0.0, -0.05):
        drawing = draw_head(far, k)
        assert drawing.reach < 0.5 * 2 * np.linalg.norm(far, axis=1).max()
    np.testing.assert_allclose(draw_head(far, 0.0).points, draw_head(near, 0.0).points, atol=1e-9)


def test_every_map_stays_in_its_disc():
    wide = tangents(4, spread=3.0)
    for k in (-3.0, -0.1):
        assert np.linalg.norm(draw_head(wide, k).points, axis=1).max() <= 1 + 1e-12
    far_side = tangents(4, spread=0.9)
    sphere = draw_head(far_side, 1.0)
    assert np.isfinite(sphere.points).all()
    assert np.linalg.norm(sphere.points, axis=1).max() <= 1 + 1e-12


def test_the_opposite_point_is_on_the_rim():
    both = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [math.pi / 2, 0.0]])
    drawing = draw_head(both, 1.0)
    assert np.isfinite(drawing.points).all()
    assert np.linalg.norm(drawing.points[3]) == pytest.approx(1, abs=1e-6)


def test_spaces_are_named_by_what_is_seen_of_them():
    assert space_kind(0.0, 5.0) == "flat"
    assert space_kind(1.0, FLAT_REACH * 0.9) == "flat"
    assert space_kind(-1.0, FLAT_REACH * 1.1) == "hyperbolic"
    assert space_kind(1.0, FLAT_REACH * 1.1) == "spherical"


def test_narrow_heads_and_single_nodes_can_be_drawn():
    line = draw_head(tangents(1), -1.0)
    assert np.abs(line.points[:, 1]).max() == 0
    assert draw_head(np.array([[0.3, 0.1, 0.2]]), -1.0).points == pytest.approx(np.zeros((1, 2)), abs=1e-9)
    flat, share = principal_plane(torch.zeros(5, 3, dtype=torch.float64))
    assert share == 1
    assert not flat.any()


def test_the_picture_does_not_depend_on_the_solvers_signs(monkeypatch):
    vectors = torch.tensor(tangents(5))
    first, _ = principal_plane(vectors)
    svd = torch.linalg.svd

    def other_solver(matrix, **options):
        left, sizes, right = svd(matrix, **options)
        return -left, sizes, -right

    monkeypatch.setattr(torch.linalg, "svd", other_solver)
    torch.testing.assert_close(principal_plane(vectors)[0], first)


def test_directions_are_those_of_the_principal_components():
    vectors = torch.tensor(tangents(5, offset=0))
    flat, share = principal_plane(vectors)
    values, axes = torch.linalg.eigh(vectors.mT @ vectors)
    want = vectors @ axes[:, [-1, -2]]
    torch.testing.assert_close(flat[:, 0].abs() / flat.norm(dim=1), want[:, 0].abs() / want.norm(dim=1))
    torch.testing.assert_close(flat.norm(dim=1), vectors.norm(dim=1))
    assert share == pytest.approx(float(values[-2:].sum() / values.sum()))


@pytest.mark.parametrize("k", [-1.5, 0.0, 1.0])
def test_edges_are_shortest_paths(k):
    drawing = draw_head(tangents(2, spread=0.5), k)
    edges = np.random.default_rng(1).integers(0, 60, (2, 40))
    edges = edges[:, edges[0] != edges[1]]
    paths = edge_paths(drawing, edges)
    assert len(paths) == edges.shape[1]
    for path, (a, b) in zip(paths, edges.T, strict=True):
        np.testing.assert_allclose(path[[0, -1]], drawing.points[[a, b]], atol=1e-6)
    assert any(len(path) > 2 for path in paths) == (k != 0)
    # the middle of a bent path is as far from both ends
    longest = max(range(len(paths)), key=lambda i: len(paths[i]))
    a, b = edges[:, longest]
    middle = geometry.geodesic(
        torch.tensor(0.5), drawing.planar[a], drawing.planar[b], k=torch.tensor(k, dtype=torch.float64)
    )
    if len(paths[longest]) > 2:
        np.testing.assert_allclose(
            paths[longest][len(paths[longest]) // 2], on_the_map(middle, k).numpy(), atol=1e-6
        )
    assert 0 < BEND < 0.01
