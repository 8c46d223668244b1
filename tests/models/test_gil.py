import pytest
import torch
from small_graphs import graph, renumbered
from torch_geometric.nn import GATConv

from gyroformer.errors import UsageError
from gyroformer.geometry import dist, expmap0, logmap0, mobius_add, mobius_scalar_mul
from gyroformer.models import GIL
from gyroformer.models.gil import Exchange, HyperbolicAttention
from gyroformer.nn.sparse import neighbour_edges

K = torch.tensor([[-1.0]], dtype=torch.float64)


def wide_graph():
    data = graph()
    data.x = data.x.double()
    return data


def test_the_exchange_is_the_equation():
    torch.manual_seed(0)
    exchange = Exchange().double()
    u, h = 0.7 * torch.randn(2, 9, 4, dtype=torch.float64)
    assert torch.allclose(exchange(u, h, K)[0], u)
    assert torch.equal(exchange(u, h, K)[1], h)
    with torch.no_grad():
        exchange.to_ball.fill_(0.3)
        exchange.to_flat.fill_(-0.2)
    x, y = expmap0(u, k=K), expmap0(h, k=K)
    taken = mobius_scalar_mul(0.3 * dist(x, y, k=K, keepdim=True), y, k=K)
    new_u, new_h = exchange(u, h, K)
    torch.testing.assert_close(new_u, logmap0(mobius_add(x, taken, k=K), k=K))
    torch.testing.assert_close(new_h, h - 0.2 * (u - h).square().sum(-1, keepdim=True) * u)


def test_flat_attention_without_the_distance_is_gat():
    torch.manual_seed(0)
    data = wide_graph()
    own = HyperbolicAttention(3, 8, 4, distance="none", dropout=0.0).double()
    gat = GATConv(3, 2, 4).double()
    with torch.no_grad():
        gat.lin.weight.copy_(own.linear.weight)
        gat.att_src.copy_(own.source)
        gat.att_dst.copy_(own.target)
    edges = neighbour_edges(data, loops=True)
    torch.testing.assert_close(own(data.x, edges, 0 * K), gat(data.x, data.edge_index))


@pytest.mark.parametrize("distance, sign", [("grow", 1), ("fall", -1)])
def test_the_factor_grows_or_falls_with_the_distance(distance, sign):
    """Two neighbours with equal positive scores: the farther one weighs more, or less."""
    layer = HyperbolicAttention(2, 2, 1, distance=distance, dropout=0.0).double()
    with torch.no_grad():
        layer.linear.weight.copy_(torch.eye(2))
        layer.source.copy_(torch.tensor([[1.0, 0.0]]))
        layer.target.zero_()
    # node 0 hears 1 and 2, whose first coordinates are equal; 2 is farther away
    u = torch.tensor([[0.0, 0.0], [1.0, 0.2], [1.0, 1.5]], dtype=torch.float64)
    edges = torch.tensor([[1, 2], [0, 0]])
    mean = layer(u, edges, K)[0, 1]
    assert sign * (mean - 0.85) > 0.01


@pytest.mark.parametrize("distance", ["grow", "fall", "none"])
def test_scores_are_logarithms_of_each_nodes_own_mixture(distance):
    torch.manual_seed(0)
    model, data = GIL(3, classes=4, distance=distance).double().eval(), wide_graph()
    scores = model(data)
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(12, dtype=torch.float64))
    # the last node's weights must not reach the others: put another node last
    order = torch.arange(12).roll(1)
    torch.testing.assert_close(model(renumbered(data, order)), scores[order])
    with torch.no_grad():
        model.ball_weight.weight.fill_(50.0)
        model.flat_weight.weight.zero_()
    weights_differ = model(data) - scores
    assert weights_differ.abs().max() > 1e-3


def test_the_positions_are_of_the_ball_and_the_flat_space():
    torch.manual_seed(0)
    model, data = GIL(3, curvature=-0.7).double().eval(), wide_graph()
    u, h = model.streams(data)
    rows = model.positions(data).squared_dist_rows(torch.arange(12))
    x = expmap0(u, k=-0.7)
    curved = dist(x.unsqueeze(0), x.unsqueeze(1), k=torch.tensor(-0.7, dtype=torch.float64))
    torch.testing.assert_close(rows, curved.square() + torch.cdist(h, h).square(), rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(model.curvatures, torch.tensor([[-0.7, 0.0]], dtype=torch.float64))


def test_the_curvature_is_learned_when_asked_for():
    assert not any(p.requires_grad for n, p in GIL(3).named_parameters() if n.endswith("curvature"))
    model = GIL(3, classes=4, learn_curvature=True)
    model(graph()).sum().backward()
    assert model.ball_space.curvature.grad.abs() > 0
    with torch.no_grad():
        model.ball_space.curvature.fill_(9.0)  # a plain curvature would be 9
    assert (model.curvatures <= 0).all()


def test_an_unknown_distance_is_named():
    with pytest.raises(
        UsageError, match="distance must be one of grow, fall, none; got 'falls'; did you mean 'fall'"
    ):
        GIL(3, distance="falls")
