"""Lists of near nodes: what may stand on them, and how well they follow."""

import pytest
import torch

from gyroformer.ops.native import build
from gyroformer.ops.near_lists import Draws, no_lists
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.positions import StereographicPositions

needs_compiler = pytest.mark.skipif(build.library() is None, reason="no C++ compiler on this machine")
FORMS = [pytest.param("native", marks=needs_compiler), "eager"]
NODES, COUNT = 1500, 12


def tree(nodes=NODES, arms=3):
    child = torch.arange(1, nodes)
    return torch.stack((child, (child - 1) // arms))


def positions(nodes=NODES, seed=0, width=3):
    """A walk down a tree: children near their parents."""
    random = torch.Generator().manual_seed(seed)
    u = torch.zeros(nodes, 1, width)
    for node in range(1, nodes):
        u[node] = u[(node - 1) // 3] + 0.3 * torch.randn(1, width, generator=random)
    return StereographicPositions.from_tangent(u, torch.tensor([[-0.5]]))


def nearest(points, neighbours, count, pull=None):
    away = points.squared_dist_rows(torch.arange(len(points)))
    away = away if pull is None else away - pull
    away[neighbours.source, neighbours.indices] = torch.inf
    away.fill_diagonal_(torch.inf)
    return away.topk(count, largest=False).indices


def recall(lists, want):
    return float((lists[:, :, None] == want[:, None, :]).any(1).float().mean())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("directed", [False, True])
def test_lists_find_what_is_near(form, directed):
    neighbours = (Neighbours.directed if directed else Neighbours.of)(tree(), NODES)
    points = positions()
    pull = torch.randn(NODES, generator=torch.Generator().manual_seed(3)) if directed else None
    torch.manual_seed(0)
    lists, found = no_lists(NODES, COUNT), []
    want = nearest(points, neighbours, COUNT, pull)
    for _ in range(12):
        lists = points.renewed_lists(lists, neighbours, pull, form=form)
        found.append(recall(lists, want))
    assert found[-1] > 0.88
    assert found[0] < found[-1]
    assert recall(points.renewed_lists(lists, neighbours, pull, exact=True, form=form), want) == 1
    # the points move a little: the lists follow at once
    moved = StereographicPositions(points.sine * 1.02, points.cosine, points.k)
    assert recall(moved.renewed_lists(lists, neighbours, pull, form=form), want) > 0.85


@pytest.mark.parametrize("form", FORMS)
def test_neither_neighbours_nor_the_node_nor_one_twice(form):
    neighbours = Neighbours.of(tree(), NODES)
    torch.manual_seed(1)
    lists = positions().renewed_lists(no_lists(NODES, COUNT), neighbours, form=form)
    lists = positions().renewed_lists(lists, neighbours, form=form)
    rows = torch.arange(NODES)
    assert lists.dtype == torch.int32
    assert not neighbours.contain(rows, lists.long()).any()
    assert not (lists == rows[:, None]).any()
    there = lists[lists.min(1).values >= 0]
    assert len(there) > NODES // 2
    assert (there.diff(dim=1) > 0).all()


@pytest.mark.parametrize("form", FORMS)
def test_a_small_graph_is_listed_whole(form):
    star = Neighbours.of(torch.tensor([[0] * 6, [1, 2, 3, 4, 5, 6]]), 8)
    lists = positions(8).renewed_lists(no_lists(8, 5), star, form=form)
    assert lists[0].tolist() == [7, -1, -1, -1, -1]  # all but one are its neighbours
    assert lists[7].tolist() == nearest(positions(8), star, 5)[7].sort().values.tolist()
    assert Draws.usual(5, 8) is None


@pytest.mark.parametrize("form", FORMS)
def test_lists_of_no_length_stay_empty(form):
    neighbours = Neighbours.of(tree(), NODES)
    assert positions().renewed_lists(no_lists(NODES, 0), neighbours, form=form).shape == (NODES, 0)


@needs_compiler
def test_draws_depend_on_the_seed_and_not_on_threads():
    neighbours, points = Neighbours.of(tree(), NODES), positions()
    before, found = torch.get_num_threads(), []
    try:
        for seed, threads in ((0, 1), (0, 3), (1, 1)):
            torch.set_num_threads(threads)
            torch.manual_seed(seed)
            found.append(points.renewed_lists(no_lists(NODES, COUNT), neighbours))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_contain_finds_every_neighbour_and_no_other():
    edges = torch.randint(0, 60, (2, 400), generator=torch.Generator().manual_seed(0))
    for neighbours in (Neighbours.of(edges, 60), Neighbours.directed(edges[:, :30], 60)):
        rows = torch.tensor([3, 59, 0])
        everyone = torch.arange(60).expand(3, -1)
        assert torch.equal(neighbours.contain(rows, everyone), neighbours.adjacent(rows))
