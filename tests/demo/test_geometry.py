import math

import pytest
import torch

from gyroformer.demo import geometry as demo


def test_graphs_have_the_right_hops():
    tree = demo.hop_distances(demo.balanced_tree(2, 3))
    assert tree.shape == (15, 15)
    assert tree[7, 14] == 6  # two leaves on either side of the root
    assert tree[0].max() == 3
    ring = demo.hop_distances(demo.cycle(10))
    assert ring[0].tolist() == [0, 1, 2, 3, 4, 5, 4, 3, 2, 1]


def test_flat_start_is_exact_for_a_flat_graph(generator):
    line = demo.hop_distances([(i, i + 1) for i in range(9)])
    start = demo.flat_start(line, generator)
    assert demo.relative_errors(start, line, torch.zeros(())).abs().mean() < 0.05


def test_a_tree_is_hyperbolic_and_a_ring_spherical():
    tree, ring = (demo.hop_distances(edges) for edges in (demo.balanced_tree(2, 4), demo.cycle(20)))
    errors = {}
    for name, hops in (("tree", tree), ("ring", ring)):
        for learn in (False, True):
            tangents, k = demo.embed(hops, learn=learn, seed=0, steps=120)
            errors[name, learn] = demo.relative_errors(tangents, hops, k).abs().mean().item()
            if not learn:
                assert k == 0
            elif name == "tree":
                assert k < -0.1
            else:
                assert k.item() == pytest.approx((2 * math.pi / 20) ** 2, rel=0.1)
    assert errors["tree", True] < 0.6 * errors["tree", False]
    assert errors["ring", True] < 0.2 * errors["ring", False]


def test_the_seed_decides():
    hops = demo.hop_distances(demo.balanced_tree(3, 2))
    first, again, other = (demo.embed(hops, learn=True, seed=s, steps=5)[0] for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_start_of_a_symmetric_graph_does_not_depend_on_the_solver(monkeypatch):
    # the left-right halves of a tree have equal eigenvalues; a solver may return any mixture of their vectors
    hops = demo.hop_distances(demo.balanced_tree(2, 4))
    want = demo.flat_start(hops, torch.Generator().manual_seed(0))
    eigh = torch.linalg.eigh

    def other_solver(matrix):
        order = torch.arange(len(matrix) - 1, -1, -1)
        values, vectors = eigh(matrix[order][:, order])
        return values, -vectors[order]

    monkeypatch.setattr(torch.linalg, "eigh", other_solver)
    torch.testing.assert_close(demo.flat_start(hops, torch.Generator().manual_seed(0)), want)
