"""The index of nearest nodes gives what a comparison with all nodes gives."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gyroformer.ops.nearest as nearest
import gyroformer.ops.nearest_index as module
from gyroformer.ops.nearest import compared_with_all, nearest_nodes
from gyroformer.ops.nearest_index import NearestIndex, worthwhile
from gyroformer.ops.pairs import squared_dist_lists, squared_dist_rows
from gyroformer.ops.positions import StereographicPositions


def drawn(seed, curvatures, width, size, nodes=300, dtype=torch.float32, repeated=False):
    generator = torch.Generator().manual_seed(seed)
    u = size * torch.randn(nodes, len(curvatures), width, generator=generator, dtype=dtype)
    if repeated:
        u[nodes // 2 :] = u[: nodes - nodes // 2]  # every node twice: ties everywhere
        u[:20] = u[0]
    return StereographicPositions.from_tangent(u, torch.tensor(curvatures, dtype=dtype)[:, None])


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    curvatures=st.lists(st.sampled_from([-8.0, -1.0, -0.01, 0.0, 0.5, 3.0]), min_size=1, max_size=3),
    width=st.integers(1, 3),
    size=st.sampled_from([0.05, 0.4, 1.5]),
    cells=st.sampled_from([None, 1, 7]),
    repeated=st.booleans(),
    count=st.sampled_from([1, 5, 40]),
)
def test_the_result_is_that_of_all_distances(seed, curvatures, width, size, cells, repeated, count):
    positions = drawn(seed, curvatures, width, size, repeated=repeated)
    rows = torch.randperm(300, generator=torch.Generator().manual_seed(seed))[:60]
    found, squared, unsure = NearestIndex(positions.sine, positions.cosine, positions.k, cells=cells).query(
        rows, count
    )
    expected, true = compared_with_all(positions, rows, count)
    assert torch.equal(squared[~unsure], true[~unsure])
    assert torch.equal(found[~unsure], expected[~unsure])


def test_few_candidates_are_listed_at_once_and_the_result_is_the_same(monkeypatch):
    positions = drawn(0, [-1.0], 3, 1.0, repeated=True)
    index = NearestIndex(positions.sine, positions.cosine, positions.k, cells=7)
    at_once = index.query(torch.arange(300), 5)
    asked = []
    candidates = NearestIndex._candidates
    monkeypatch.setattr(
        NearestIndex,
        "_candidates",
        lambda *given: asked.append(given[2].numel()) or candidates(*given),
    )
    monkeypatch.setattr(module, "LISTED", 2000)
    for part, expected in zip(index.query(torch.arange(300), 5), at_once, strict=True):
        assert torch.equal(part, expected)
    assert max(asked) <= 2000 // 60  # a query may have 60 candidates in a cell, or more
    assert index.query(torch.arange(0), 5)[0].shape == (0, 5)


def test_most_queries_are_answered_by_the_index():
    positions = drawn(0, [-1.0], 2, 1.0, nodes=3000)
    _, _, unsure = NearestIndex(positions.sine, positions.cosine, positions.k).query(torch.arange(3000), 5)
    assert unsure.float().mean() < 0.02


@pytest.mark.parametrize("curvature", [-2.0, 0.0, 1.5])
def test_images_are_never_farther_apart_than_the_points(curvature):
    positions = drawn(3, [curvature, -0.3], 2, 1.0, nodes=40, dtype=torch.float64)
    true = positions.squared_dist_rows(torch.arange(40)).sqrt()
    for centre in (None, (positions.sine[7], positions.cosine[7])):
        images = torch.from_numpy(module._image((positions.sine, positions.cosine, positions.k), centre))
        assert (torch.cdist(images, images, compute_mode="donot_use_mm_for_euclid_dist") <= true + 1e-9).all()


def test_lists_have_the_bits_of_rows():
    positions = drawn(1, [-1.0, 0.7], 3, 0.5)
    rows = torch.arange(50)
    lists = torch.randint(300, (50, 32), generator=torch.Generator().manual_seed(0))
    points = positions.sine, positions.cosine, positions.k
    assert torch.equal(
        squared_dist_lists(*points, rows, lists), squared_dist_rows(*points, rows).gather(1, lists)
    )


def test_it_is_used_where_it_is_faster_and_only_there(monkeypatch):
    few, some, many = (torch.ones(10_000, 1, width) for width in (2, 8, 16))
    flat, curved = torch.zeros(1, 1), -torch.ones(1, 1)
    assert worthwhile(few, curved, 1000)
    assert worthwhile(some, flat, 1000)
    assert not worthwhile(some, 100 * curved, 1000)
    assert not worthwhile(many, flat, 1000)
    assert not worthwhile(few, flat, 3)
    assert not worthwhile(few[:50], flat, 1000)
    monkeypatch.setattr(module, "NODES", 100)
    monkeypatch.setattr(module, "QUERIES", 10)
    used = []
    monkeypatch.setattr(nearest, "NearestIndex", lambda *of: used.append(1) or NearestIndex(*of))
    positions = drawn(5, [-1.0], 2, 0.5, repeated=True)
    found = nearest_nodes(positions, torch.arange(300), 4)
    expected = compared_with_all(positions, torch.arange(300), 4)
    assert used == [1]
    assert all(torch.equal(mine, true) for mine, true in zip(found, expected, strict=True))
