"""New points: their loss and its derivative, what moves, and the order in which nodes get their place."""

import pytest
import torch

from gyroformer.ops import placing
from gyroformer.ops.lifted import sine_cosine
from gyroformer.ops.native import build
from gyroformer.ops.placing import _Edges, _Field, place_nodes, rounds
from gyroformer.ops.positions import StereographicPositions

K = torch.tensor([[-1.3], [0.0], [0.4]])


def positions(count, k=K, seed=0, dtype=torch.float64):
    u = 0.5 * torch.randn(
        count, len(k), 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return StereographicPositions.from_tangent(u.to(dtype), k.to(dtype))


def test_slopes_are_the_derivatives_of_the_loss():
    count, nodes = 12, torch.tensor([10, 11])
    where = positions(count)
    source, target = torch.tensor([10, 10, 11]), torch.tensor([0, 3, 3])
    placed = torch.arange(count) < 10
    crowd = torch.randn(count, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    u = where.coordinates()[nodes].requires_grad_()

    def loss(u):
        sine, cosine = sine_cosine(u, where.k)
        # of the other new node the place counts, not how it moves
        whole = StereographicPositions(
            torch.cat((where.sine[:10], sine)), torch.cat((where.cosine[:10], cosine)), where.k
        )
        total = 0.0
        for row, near in ((0, [0, 3]), (1, [3])):
            node = torch.tensor([10 + row])
            others = [w for w in range(count) if w not in near and w != 10 + row]
            here = StereographicPositions(
                torch.cat((whole.sine.detach(), sine[row : row + 1])),
                torch.cat((whole.cosine.detach(), cosine[row : row + 1])),
                where.k,
            )
            squared = here.squared_dist_rows(torch.tensor([count]))[0, :count]
            assert node.numel() == 1
            for v in near:
                spread = ((squared[v] - squared[others]) / placing.TEMPERATURE).logsumexp(0)
                total = total + placing.TEMPERATURE * torch.nn.functional.softplus(spread) / len(near)
                total = total + placing.SEEN * torch.nn.functional.softplus(squared[v] + crowd[v]) / len(near)
        return total

    (want,) = torch.autograd.grad(loss(u), u)
    field = _Field(where, nodes, placed, crowd)
    sine, cosine = sine_cosine(u, where.k)
    with torch.no_grad():
        field.move(sine.detach(), cosine.detach())
        field.find(_Edges(source - 10, target, placed[target], 2))
    torch.autograd.backward((sine, cosine), field.slopes())
    torch.testing.assert_close(u.grad, want, rtol=1e-6, atol=1e-8)


@pytest.mark.skipif(build.library() is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("k", [[[-1.3], [0.0], [0.4]], [[-4.0]], [[1e-7]], [[2.0], [-1e-5]]])
def test_the_kernel_has_the_slopes_of_the_torch_form(k):
    # neighbours of one node fill more than a tile; of another, all there are
    where = positions(300, torch.tensor(k), dtype=torch.float32)
    nodes, stream = torch.arange(280, 300), torch.Generator().manual_seed(2)
    row = torch.cat((torch.zeros(90), torch.arange(1, 20))).long()
    target = torch.cat((torch.arange(90), torch.randint(280, (19,), generator=stream)))
    placed, crowd = torch.arange(300) < 280, torch.randn(300, generator=stream)
    found = []
    for form in ("native", "eager"):
        field = _Field(where, nodes, placed, crowd, form=form)
        field.find(_Edges(row, target, placed[target], 20))
        found.append(torch.cat([slope.flatten(1) for slope in field.slopes()], 1))
    torch.testing.assert_close(*found, rtol=1e-4, atol=2e-5 * float(found[1].abs().max()))


def test_few_nodes_leave_places_of_the_lists_empty():
    where = positions(5, dtype=torch.float32)
    arguments = (
        torch.tensor([4]),
        torch.tensor([4, 4]),
        torch.tensor([0, 1]),
        torch.arange(5) < 4,
        torch.zeros(5),
    )
    for form in ("native", "eager") if build.library() is not None else ("eager",):
        found = place_nodes(where, *arguments, form=form)
        assert torch.isfinite(found.sine).all()
        order = found.squared_dist_rows(torch.tensor([4]))[0, :4].argsort()
        assert set(order[:2].tolist()) == {0, 1}


@pytest.mark.parametrize("k", [[[-2.0]], [[0.0]], [[0.3]], [[-1.0], [0.5]]])
def test_a_node_comes_to_its_neighbours_and_nothing_else_moves(k):
    where = positions(60, torch.tensor(k), dtype=torch.float32)
    squared = where.squared_dist_rows(torch.tensor([7]))[0]
    near = squared.topk(4, largest=False).indices  # a node and the three nearest to it
    sine = torch.cat((where.sine, torch.zeros_like(where.sine[:1])))
    cosine = torch.cat((where.cosine, torch.ones_like(where.cosine[:1])))
    start = StereographicPositions(sine, cosine, where.k)
    placed = torch.arange(61) < 60
    crowd = torch.zeros(61)
    found = place_nodes(start, torch.tensor([60]), torch.full((4,), 60), near, placed, crowd)
    assert torch.equal(found.sine[:60], where.sine)
    order = found.squared_dist_rows(torch.tensor([60]))[0, :60].argsort()
    assert set(order[:4].tolist()) == set(near.tolist())
    again = place_nodes(start, torch.tensor([60]), torch.full((4,), 60), near, placed, crowd)
    assert torch.equal(again.sine, found.sine)


def test_two_nodes_of_one_neighbour_do_not_lie_on_each_other():
    where = positions(40, dtype=torch.float32)
    sine = torch.cat((where.sine, torch.zeros_like(where.sine[:2])))
    cosine = torch.cat((where.cosine, torch.ones_like(where.cosine[:2])))
    found = place_nodes(
        StereographicPositions(sine, cosine, where.k),
        torch.tensor([40, 41]),
        torch.tensor([40, 41]),
        torch.tensor([5, 5]),
        torch.arange(42) < 40,
        torch.zeros(42),
    )
    squared = found.squared_dist_rows(torch.tensor([40, 41]))
    for row, own in ((0, 40), (1, 41)):
        squared[row, own] = torch.inf
        assert squared[row].argmin() == 5


def test_nodes_wait_for_their_neighbours():
    known = torch.tensor([True, True, False, False, False, False])
    source, target = torch.tensor([2, 2, 3, 3, 4, 5]), torch.tensor([0, 3, 2, 4, 3, 5])
    assert [ready.tolist() for ready in rounds(known, source, target)] == [[2], [3], [4]]
