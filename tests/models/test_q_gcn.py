from functools import partial

import graph_model_checks as checks
import pytest
import torch
import torch.nn.functional as F
from graph_model_checks import dense_adjacency, small_graph
from hyperbolic_oracle import hyperbolic_dist

from gyroformer.errors import UsageError
from gyroformer.geometry import hyperboloid
from gyroformer.geometry import pseudo_hyperboloid as quadric
from gyroformer.models import get_model
from gyroformer.models.q_gcn import QGCN
from gyroformer.ops.positions import StereographicPositions
from gyroformer.ops.pseudo_positions import PseudoHyperboloidPositions

TIMES = [1, 8, 16]


def test_it_is_known_by_its_name():
    assert get_model("q-gcn").build is QGCN


def made(data, **options):
    torch.manual_seed(0)
    model = QGCN(data.x.size(1), dropout=0.0, layers=2, **options).double()
    for layer in model.layers:
        torch.nn.init.normal_(layer.bias, std=0.5)
    return model


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("time", TIMES)
def test_it_is_what_the_paper_writes(time, skip):
    data = small_graph(dtype=torch.float64)
    model = made(data, classes=4, time_dim=time, skip=skip, curvature=-0.8)
    k, a, u = model.output_curvature.item(), dense_adjacency(data, norm="row"), data.x
    beta = 1 / k
    for place, layer in enumerate(model.layers):
        h = quadric.expmap0((layer.linear if place else model.features.linear)(u), beta=beta, time=time)
        if time > 1:
            h = quadric.translate(h, layer.bias, beta=beta, time=time)
        else:
            h = hyperboloid.translate(h, layer.bias, k=k)
        h = quadric.logmap0(h, beta=beta, time=time)
        u = F.relu(a @ h)
        u = (u + h) / 2 if skip else u
    torch.testing.assert_close(model(data), model.decoder(u), rtol=1e-9, atol=1e-9)
    x = quadric.expmap0(u, beta=beta, time=time)
    expected = quadric.squared_dist(x[:, None], x, beta=beta, time=time)
    rows = model.positions(data).squared_dist_rows(torch.arange(12))
    torch.testing.assert_close(rows, expected, rtol=1e-7, atol=1e-9)


def test_one_time_coordinate_is_hyperbolic():
    data = small_graph(dtype=torch.float64)
    model = made(data, time_dim=1, curvature=-0.6, skip=False)
    positions = model.positions(data)
    assert isinstance(positions, StereographicPositions)
    k = model.output_curvature.item()
    torch.testing.assert_close(positions.k, model.output_curvature)
    a, u = dense_adjacency(data), data.x
    for index, layer in enumerate(model.layers):
        s = (layer.linear if index else model.features.linear)(u)
        u = a @ hyperboloid.translate(hyperboloid.from_space(s, k=k), layer.bias, k=k)[:, 1:]
        u = u if index else F.relu(u)
    rows = positions.squared_dist_rows(torch.arange(12))
    torch.testing.assert_close(rows, hyperbolic_dist(u[:, None], u, k).square())
    # and a metric: no way is longer than one with a stop
    away = rows.sqrt()
    assert (away[:, None] <= away[:, :, None] + away + 1e-9).all()


def test_one_time_coordinate_scores_by_curvature_too():
    """By the biases: at the pole the maps are the identity, and without biases nothing feels the curvature."""
    data = small_graph(dtype=torch.float64)
    model = made(data, classes=4, time_dim=1)
    weight = torch.randn(12, 4, dtype=torch.float64)
    (model(data) * weight).sum().backward()
    assert all(layer.space.curvature.grad.abs() > 1e-6 for layer in model.layers)
    curved = model(data)
    with torch.no_grad():
        for layer in model.layers:
            layer.bias.zero_()
    a, u = dense_adjacency(data, norm="row"), data.x
    for place, layer in enumerate(model.layers):
        u = F.relu(a @ (layer.linear if place else model.features.linear)(u))
    torch.testing.assert_close(model(data), model.decoder(u))
    assert (curved - model(data)).abs().max() > 1e-3


def test_without_space_coordinates_it_is_a_sphere():
    data = small_graph(dtype=torch.float64)
    model = made(data, time_dim=16, curvature=-0.5)
    positions = model.positions(data)
    radius = (-1 / model.output_curvature).sqrt().item()
    x = positions.x / radius
    torch.testing.assert_close(x.norm(dim=1), torch.ones(12, dtype=torch.float64))
    cosine = (x @ x.mT).fill_diagonal_(1).clamp(-1, 1)
    torch.testing.assert_close(
        positions.squared_dist_rows(torch.arange(12)), (radius * cosine.acos()).square(), rtol=1e-6, atol=1e-9
    )


def test_curvatures_stay_negative_and_are_those_of_the_quadric():
    model = QGCN(3, layers=2, time_dim=8, curvature=-0.25)
    torch.testing.assert_close(model.curvatures, torch.full((2, 1), -0.25))
    with torch.no_grad():
        for layer in model.layers:
            layer.space.curvature.fill_(3.0)
    assert (model.curvatures < 0).all()
    positions = model.positions(small_graph())
    assert isinstance(positions, PseudoHyperboloidPositions)
    assert positions.time == 8
    squares = positions.x.double().square()
    fit = squares[:, 8:].sum(-1) - squares[:, :8].sum(-1)
    assert ((fit - 1 / model.output_curvature).abs() <= 1e-5 * squares.sum(-1)).all()


@pytest.mark.parametrize(("time", "steps"), [(1, 100), (8, 500), (16, 100)])
def test_training_in_single_precision_stays_finite(time, steps):
    # the default, 1, goes through 500 steps with every other model
    model = checks.check_training(partial(QGCN, time_dim=time, dropout=0.0), steps=steps)
    assert (model.curvatures < 0).all()


@pytest.mark.parametrize("time", TIMES)
def test_the_curvature_gradient_is_exact(time):
    data = small_graph(dtype=torch.float64)
    checks.check_curvature_gradient(made(data, classes=4, time_dim=time, activation="tanh"), data)


def test_the_skip_is_the_published_choice_of_the_task():
    assert QGCN(3).layers[0].skip
    assert not QGCN(3, classes=4).layers[0].skip
    assert not QGCN(3, skip=False).layers[0].skip


@pytest.mark.parametrize("options", [{"time_dim": 0}, {"time_dim": 17}, {"dim": 1}])
def test_impossible_sizes_are_refused(options):
    with pytest.raises(UsageError, match="must be"):
        QGCN(3, **options)
    with pytest.raises(UsageError, match="activation"):
        QGCN(3, layers=1, activation="rulu")
    with pytest.raises(UsageError, match=r"curvature must be .* below 0"):
        QGCN(3, curvature=1.0)
