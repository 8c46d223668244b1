from functools import partial

import graph_model_checks as checks
import pytest
import torch
import torch.nn.functional as F
from graph_model_checks import dense_adjacency, small_graph

from gyroformer import geometry
from gyroformer.errors import UsageError
from gyroformer.models import get_model
from gyroformer.models.hyp_attention import ALL_NODES, HypAttention, from_polar
from gyroformer.ops.distance_attention import score

VARIANTS = [
    {"scope": scope, "weights": weights}
    for scope in ("neighbours", "all")
    for weights in ("softmax", "sigmoid")
]


def test_it_is_known_by_its_name():
    assert get_model("hyp-attention").build is HypAttention


def made(data, **options):
    torch.manual_seed(0)
    model = HypAttention(data.x.size(1), dropout=0.0, layers=2, **options).double()
    for layer in model.layers:
        torch.nn.init.normal_(layer.sharpness)
        if layer.threshold is not None:
            torch.nn.init.normal_(layer.threshold)
    return model


def on_hyperboloid(polar):
    """The points (cosh r, sinh r · n) of curvature -1 for (v, r), written out."""
    n, r = F.normalize(polar[..., :-1], dim=-1), polar[..., -1:]
    return torch.cat((r.cosh(), r.sinh() * n), -1)


def minkowski(x, y):
    return (x * y).sum(-1) - 2 * x[..., 0] * y[..., 0]


def weights_of(layer, q, key, linked):
    """α (N, N, heads), dense, normalised."""
    distance = torch.acosh((-minkowski(q[:, None], key)).clamp(min=1))
    score = -F.softplus(layer.sharpness) * distance
    f = score.exp() if layer.threshold is None else torch.sigmoid(score - layer.threshold)
    f = f * linked.unsqueeze(-1)
    return f / f.sum(1, keepdim=True)


def einstein(weight, v):
    klein = v[..., 1:] / v[..., :1]
    gamma = (1 - klein.square().sum(-1)).rsqrt()
    sums = torch.einsum("ijh,jhd->ihd", weight, gamma.unsqueeze(-1) * klein)
    return sums / torch.einsum("ijh,jh->ih", weight, gamma).unsqueeze(-1)


@pytest.mark.parametrize("options", VARIANTS)
def test_it_is_what_the_paper_writes(options):
    data = small_graph(dtype=torch.float64)
    model = made(data, classes=4, **options)
    near = dense_adjacency(data) > 0
    linked = near if options["scope"] == "neighbours" else torch.ones_like(near)
    u = model.features.linear(data.x)
    for layer in model.layers:
        q, key, v = on_hyperboloid(layer.polar(u).unflatten(-1, (3, 4, 5))).unbind(1)
        middle = einstein(weights_of(layer, q, key, linked), v)
        size = middle.norm(dim=-1, keepdim=True)
        u = F.elu((torch.atanh(size) * middle / size).flatten(1))
    torch.testing.assert_close(model(data), model.decoder(u), rtol=1e-7, atol=1e-9)
    # the same way is half the vector in the stereographic model
    x = geometry.expmap0(u.unflatten(-1, (4, 4)) / 2, k=-1.0)
    expected = geometry.dist(x[:, None], x, k=-1.0).square().sum(-1)
    rows = model.positions(data).squared_dist_rows(torch.arange(12))
    torch.testing.assert_close(rows, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("weights", ["softmax", "sigmoid"])
def test_weights_fall_with_the_distance(weights):
    layer = made(small_graph(), weights=weights).layers[0]
    distance = torch.linspace(0, 30, 50, dtype=torch.float64)[:, None].expand(-1, 4)
    found = score(distance, F.softplus(layer.sharpness), layer.threshold)
    assert (found.diff(dim=0) < 0).all()


def test_pseudo_polar_coordinates():
    x = torch.tensor([[3.0, 4.0, 2.0], [3.0, 4.0, -2.0], [0.0, 0.0, 5.0]], requires_grad=True)
    u = from_polar(x)
    torch.testing.assert_close(u.detach(), torch.tensor([[1.2, 1.6], [-1.2, -1.6], [0.0, 0.0]]))
    u.sum().backward()
    assert torch.isfinite(x.grad).all()
    # the length of the direction says nothing
    torch.testing.assert_close(from_polar(torch.tensor([[30.0, 40.0, 2.0]])), u[:1].detach())


def test_all_pairs_in_many_blocks_are_one(monkeypatch):
    data = small_graph(dtype=torch.float64)
    model = made(data, classes=4, scope="all")
    expected = model(data)
    gradient = torch.autograd.grad(expected.square().sum(), list(model.layers.parameters())[:1])
    monkeypatch.setattr("gyroformer.ops.pair_blocks.EAGER_NUMBERS", 5 * 4 * 12)
    found = model(data)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(found.square().sum(), list(model.layers.parameters())[:1]), gradient
    )


def test_all_pairs_of_a_large_graph_are_refused():
    data = small_graph()
    data.num_nodes, data.x = ALL_NODES + 1, torch.zeros(ALL_NODES + 1, 3)
    with pytest.raises(UsageError, match="use scope='neighbours'"):
        HypAttention(3)(data)
    assert HypAttention(3, dim=4, heads=1, scope="neighbours")(data).shape == (ALL_NODES + 1, 1, 4)


@pytest.mark.parametrize("options", [VARIANTS[3], {"learn_curvature": True}])
def test_200_steps_in_single_precision_stay_finite(options):
    # the default goes through 500 steps with every other model
    model = checks.check_training(partial(HypAttention, dropout=0.0, **options), steps=200)
    assert (model.curvatures < 0).all()


@pytest.mark.parametrize("scope", ["neighbours", "all"])
def test_the_curvature_gradient_is_exact(scope):
    data = small_graph(dtype=torch.float64)
    model = made(data, classes=4, activation="tanh", learn_curvature=True, scope=scope)
    with torch.no_grad():
        for layer in model.layers:
            # radii at which the curvature is felt
            layer.polar.weight *= 8
    checks.check_curvature_gradient(model, data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scope": "neighbors"}, r"scope must be one of .* did you mean 'neighbours'"),
        ({"weights": "exp"}, "weights must be one of softmax, sigmoid"),
        ({"heads": 3}, "dim must be a positive multiple of heads"),
        ({"layers": 1, "activation": "rulu"}, "activation must be one of"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        HypAttention(3, **options)
