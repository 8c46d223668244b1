from functools import partial

import graph_model_checks as checks
import pytest
import torch
import torch.nn.functional as F
from graph_model_checks import dense_adjacency, small_graph

from gyroformer import geometry as g
from gyroformer.errors import UsageError
from gyroformer.models import get_model
from gyroformer.models.hgnn import HGNN


def test_it_is_known_by_its_name():
    assert get_model("hgnn").build is HGNN


def made(data, **options):
    torch.manual_seed(0)
    return HGNN(data.x.size(1), classes=4, dropout=0.0, **options).double()


ACTIVATIONS = {"relu": F.relu, "elu": F.elu, "tanh": torch.tanh, "gelu": F.gelu}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_it_is_what_the_paper_writes(activation):
    data = small_graph(dtype=torch.float64)
    model = made(data, activation=activation, curvature=-0.8)
    sigma, k = ACTIVATIONS[activation], model.output_curvature.item()
    h = g.expmap0(sigma(model.features.linear(data.x)), k=k)
    for layer in model.layers:
        h = sigma(g.expmap0(dense_adjacency(data) @ layer.linear(g.logmap0(h, k=k)), k=k))
    centroids = g.expmap0(model.centroids.centroid, k=k)
    expected = model.centroids.linear(g.dist(h[:, None], centroids, k=k))
    torch.testing.assert_close(model(data), expected, rtol=1e-9, atol=1e-9)
    places = model.positions(data).squared_dist_rows(torch.arange(12)).sqrt()
    torch.testing.assert_close(places, g.dist(h[:, None], h, k=k), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("activation", ["relu", "elu"])
def test_its_flat_limit(activation):
    data = small_graph(dtype=torch.float64)
    sigma = ACTIVATIONS[activation]

    def error(c):
        model = made(data, activation=activation, curvature=-c)
        h = sigma(model.features.linear(data.x))
        for layer in model.layers:
            h = sigma(dense_adjacency(data) @ layer.linear(h))
        flat = model.centroids.linear(2 * (h[:, None] - model.centroids.centroid).norm(dim=-1))
        return (model(data) - flat).abs().max().item()

    assert error(1e-10) < 1e-8
    # it approaches as fast as c does
    assert error(1e-4) == pytest.approx(10 * error(1e-5), rel=0.05)
    assert error(1.0) > 1e-2


def test_the_curvature_gradient_is_that_of_finite_differences():
    data = small_graph(dtype=torch.float64)
    checks.check_curvature_gradient(made(data, learn_curvature=True, activation="tanh"), data)


def test_float32_trains_at_a_high_rate():
    model = checks.check_training(partial(HGNN, learn_curvature=True))
    assert (model.curvatures + 1).abs().min() > 1e-3
    assert (model.curvatures < 0).all()


def test_the_papers_curvature_is_fixed():
    assert not any(p.requires_grad for n, p in HGNN(3).named_parameters() if n.endswith("curvature"))


def test_wrong_use_is_named():
    with pytest.raises(UsageError, match="activation must be one of elu, gelu, relu, tanh; got 'sigmoid'"):
        HGNN(3, activation="sigmoid")
    with pytest.raises(UsageError, match="did you mean 'relu'"):
        HGNN(3, activation="rellu")
    with pytest.raises(UsageError, match="centroids must be a whole number of at least 1"):
        HGNN(3, classes=2, centroids=0)
