from functools import partial

import graph_model_checks as checks
import pytest
import torch
import torch.nn.functional as F
from graph_model_checks import dense_adjacency, small_graph

from gyroformer import geometry as g
from gyroformer.models import get_model
from gyroformer.models.hat import HAT


def test_it_is_known_by_its_name():
    assert get_model("hat").build is HAT


def made(data, **options):
    torch.manual_seed(0)
    model = HAT(data.x.size(1), classes=4, dropout=0.0, **options).double()
    for layer in model.layers:
        torch.nn.init.normal_(layer.bias.bias, std=0.5)
    return model


def attention(data, distance):
    """Softmax of minus the distances (N, N, heads) over the neighbours, dense."""
    linked = dense_adjacency(data).unsqueeze(-1) > 0
    return torch.softmax(torch.where(linked, -distance, -torch.inf), 1)


def test_it_is_what_the_paper_writes():
    data = small_graph(dtype=torch.float64)
    model = made(data, curvature=-0.8)
    k = model.output_curvature[0].item()
    u = data.x
    for place, layer in enumerate(model.layers):
        u = (layer.linear if place else model.features.linear)(u).unflatten(-1, (4, 4))
        h = g.mobius_add(g.expmap0(u, k=k), g.expmap0(layer.bias.bias, k=k), k=k)
        weight = attention(data, g.dist(h[:, None], h, k=k))
        u = F.elu(torch.einsum("ijh,jhd->ihd", weight, g.logmap0(h, k=k)).flatten(1))
    torch.testing.assert_close(model(data), model.decoder(u), rtol=1e-9, atol=1e-9)
    points = g.expmap0(u.unflatten(-1, (4, 4)), k=k)
    # the distance of a product
    dist = g.dist(points[:, None], points, k=k).square().sum(-1)
    torch.testing.assert_close(model.positions(data).squared_dist_rows(torch.arange(12)), dist)


def test_weights_fall_with_distance():
    data = small_graph(dtype=torch.float64)
    model = made(data, curvature=-1.3)
    layer, k = model.layers[0], model.curvatures[0, 0].item()
    target, source = model.matrix(data).indices()
    mapped = layer.mapped(model.features.linear(data.x))
    weight = layer.weights(mapped, target, source)
    points = g.expmap0(mapped, k=k)
    distance = g.dist(points[target], points[source], k=k)
    for node in range(12):
        mine = target == node
        torch.testing.assert_close(weight[mine].sum(0), torch.ones(4, dtype=torch.float64))
        for head in range(4):
            near_first = distance[mine, head].argsort()
            assert (weight[mine, head][near_first].diff() < 0).all()
        # nothing is nearer than the node itself
        own = (source[mine] == node).nonzero().item()
        assert (weight[mine].argmax(0) == own).all()


def test_a_neighbour_that_moves_away_loses_weight():
    data = small_graph(dtype=torch.float64)
    layer = made(data).layers[0]
    target, source = torch.tensor([0, 0, 0]), torch.tensor([0, 1, 2])
    u = torch.randn(3, 4, 4, dtype=torch.float64)
    u[0] = 0
    before = layer.weights(u, target, source)
    u[1] *= 1.5
    after = layer.weights(u, target, source)
    assert (after[1] < before[1]).all()
    assert (after[[0, 2]] > before[[0, 2]]).all()


def test_its_flat_limit():
    data = small_graph(dtype=torch.float64)

    def error(c):
        model = made(data, curvature=-c)
        u = data.x
        for place, layer in enumerate(model.layers):
            u = (layer.linear if place else model.features.linear)(u).unflatten(-1, (4, 4)) + layer.bias.bias
            weight = attention(data, 2 * (u[:, None] - u).norm(dim=-1))
            u = F.elu(torch.einsum("ijh,jhd->ihd", weight, u).flatten(1))
        return (model(data) - model.decoder(u)).abs().max().item()

    assert error(1e-10) < 1e-8
    assert error(1e-4) == pytest.approx(10 * error(1e-5), rel=0.05)
    assert error(1.0) > 1e-2


def test_the_curvature_gradient_is_that_of_finite_differences():
    data = small_graph(dtype=torch.float64)
    checks.check_curvature_gradient(made(data, learn_curvature=True), data)


def test_float32_trains_at_a_high_rate():
    model = checks.check_training(partial(HAT, learn_curvature=True))
    assert (model.curvatures + 1).abs().min() > 1e-3
    assert (model.curvatures < 0).all()


def test_the_papers_curvature_is_fixed():
    assert not any(p.requires_grad for n, p in HAT(3).named_parameters() if n.endswith("curvature"))
