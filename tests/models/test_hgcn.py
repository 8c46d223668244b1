from functools import partial

import graph_model_checks as checks
import pytest
import torch
import torch.nn.functional as F
from graph_model_checks import dense_adjacency, small_graph

from gyroformer import geometry as g
from gyroformer.errors import UsageError
from gyroformer.models import get_model
from gyroformer.models.hgcn import HGCN

VARIANTS = {
    "origin": {},
    "ball": {"manifold": "poincare"},
    "centre": {"aggregation": "centre"},
    "attention": {"attention": True},
    "centre, attention": {"aggregation": "centre", "attention": True},
}
every_variant = pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)


def test_it_is_known_by_its_name():
    assert get_model("hgcn").build is HGCN


def made(data, **options):
    """A model whose biases are not zero, so that its curvatures count."""
    torch.manual_seed(0)
    model = HGCN(data.x.size(1), classes=4, dropout=0.0, activation="elu", **options).double()
    for layer in model.layers:
        torch.nn.init.normal_(layer.bias.bias, std=0.5)
    torch.nn.init.normal_(model.features.linear.weight, std=0.3)
    return model


def weights(layer, u, data):
    """The weights of the neighbours as a dense matrix."""
    mean = dense_adjacency(data, norm="row")
    if layer.attention is None:
        return mean
    centre, neighbour = layer.attention.score(u).unbind(-1)
    score = F.leaky_relu(centre[:, None] + neighbour, 0.2)
    return torch.softmax(torch.where(mean > 0, score, -torch.inf), -1)


class Ball:
    """The operations of the paper on the Poincaré ball."""

    def __init__(self, k):
        self.exp0, self.log0 = partial(g.expmap0, k=k), partial(g.logmap0, k=k)
        self.exp, self.log = partial(g.expmap, k=k), partial(g.logmap, k=k)
        self.dist = partial(g.dist, k=k)
        self.k = k

    def plus(self, x, b):
        return g.mobius_add(x, self.exp0(b), k=self.k)


class Hyperboloid:
    """The operations of the paper on the hyperboloid <x, x> = 1/k, time first, as the paper prints them."""

    def __init__(self, k):
        self.root = (-1 / k).sqrt()

    def inner(self, x, y):
        return (x * y)[..., 1:].sum(-1, keepdim=True) - (x * y)[..., :1]

    def exp(self, x, v):
        size = self.inner(v, v).clamp(min=1e-300).sqrt()
        return (size / self.root).cosh() * x + self.root * (size / self.root).sinh() * v / size

    def dist(self, x, y):
        # arsinh of half the chord, since arcosh of the inner product loses the digits of near points
        chord = self.inner(x - y, x - y).clamp(min=0).sqrt()
        return (2 * self.root * torch.asinh(chord / (2 * self.root))).squeeze(-1)

    def log(self, x, y):
        along = y + self.inner(x, y) / self.root**2 * x
        size = self.inner(along, along).clamp(min=1e-300).sqrt()
        return self.dist(x, y).unsqueeze(-1) * along / size

    def origin(self, x):
        return F.pad(self.root.reshape(1), (0, x.size(-1) - 1)).expand_as(x)

    def exp0(self, u):
        v = F.pad(u, (1, 0))
        return self.exp(self.origin(v), v)

    def log0(self, x):
        return self.log(self.origin(x), x)[..., 1:]

    def plus(self, x, b):
        o, v = self.origin(x), F.pad(b, (1, 0)).expand_as(x)
        moved = v - self.inner(self.log(o, x), v) / self.dist(o, x).unsqueeze(-1) ** 2 * (
            self.log(o, x) + self.log(x, o)
        )
        return self.exp(x, moved)


def written_out(model, data):
    """Scores and distances, with every operation on points."""
    u, space = data.x, None
    for place, layer in enumerate(model.layers):
        k = layer.space().reshape(())
        space = (Hyperboloid if model.config["manifold"] == "hyperboloid" else Ball)(k)
        linear = layer.linear if place else model.features.linear
        h = space.plus(space.exp0(linear(space.log0(space.exp0(u)))), layer.bias.bias.squeeze(0))
        weight = weights(layer, space.log0(h), data)
        if model.config["aggregation"] == "origin":
            y = space.exp0(weight @ space.log0(h))
        else:
            seen = space.log(h[:, None].expand(-1, len(h), -1), h[None].expand(len(h), -1, -1))
            y = space.exp(h, (weight.unsqueeze(-1) * seen).sum(1))
        u = F.elu(space.log0(y))
    x = space.exp0(u)
    return model.decoder(u), space.dist(x[:, None], x[None])


@every_variant
def test_it_is_what_the_paper_writes(options):
    data = small_graph(dtype=torch.float64)
    model = made(data, curvature=-0.7, **options)
    scores, dist = written_out(model, data)
    torch.testing.assert_close(model(data), scores, rtol=1e-7, atol=1e-7)
    ours = model.positions(data).squared_dist_rows(torch.arange(12)).sqrt()
    torch.testing.assert_close(ours, dist, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("aggregation", ["origin", "centre"])
def test_the_two_manifolds_are_isometric(aggregation):
    data = small_graph(dtype=torch.float64)
    torch.manual_seed(0)
    one, other = (
        HGCN(3, manifold=name, aggregation=aggregation).double() for name in ("hyperboloid", "poincare")
    )
    for layer in one.layers:
        torch.nn.init.normal_(layer.bias.bias)
    state = one.state_dict()
    for name in state:
        if name.startswith("features") or name.endswith("bias"):
            state[name] = 0.5 * state[name]
    other.load_state_dict(state)
    rows = torch.arange(12)
    ours, theirs = (model.positions(data).squared_dist_rows(rows) for model in (one, other))
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def flat(model, data):
    u = data.x
    for place, layer in enumerate(model.layers):
        u = (layer.linear if place else model.features.linear)(u) + layer.bias.bias.squeeze(0)
        u = F.elu(weights(layer, u, data) @ u)
    return model.decoder(u)


@every_variant
def test_its_flat_limit(options):
    data = small_graph(dtype=torch.float64)

    def error(c):
        model = made(data, curvature=-c, **options)
        return (model(data) - flat(model, data)).abs().max().item()

    assert error(1e-10) < 1e-8
    # it approaches as fast as c does
    assert error(1e-4) == pytest.approx(10 * error(1e-5), rel=0.05)
    assert error(1.0) > 1e-2


@every_variant
def test_the_curvature_gradient_is_that_of_finite_differences(options):
    data = small_graph(dtype=torch.float64)
    checks.check_curvature_gradient(made(data, **options), data)


@pytest.mark.parametrize("options, steps", [({}, 500), ({"aggregation": "centre", "attention": True}, 200)])
def test_float32_trains_at_a_high_rate(options, steps):
    model = checks.check_training(partial(HGCN, **options), steps=steps)
    assert (model.curvatures + 1).abs().min() > 1e-3
    assert (model.curvatures < 0).all()


def test_wrong_use_is_named():
    with pytest.raises(UsageError, match="did you mean 'centre'"):
        HGCN(3, aggregation="center")
    with pytest.raises(UsageError, match="manifold must be one of"):
        HGCN(3, manifold="klein")
    with pytest.raises(UsageError, match=r"curvature must be .* below 0"):
        HGCN(3, curvature=0.0)
