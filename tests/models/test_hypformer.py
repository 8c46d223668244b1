from functools import partial

import graph_model_checks as checks
import pytest
import torch
import torch.nn.functional as F
from graph_model_checks import dense_adjacency, small_graph
from hyperbolic_oracle import hyperbolic_dist
from torch import nn

from gyroformer.errors import UsageError
from gyroformer.models import get_model
from gyroformer.models.hypformer import Hypformer, Refinement


def test_it_is_known_by_its_name():
    assert get_model("hypformer").build is Hypformer


def made(data, **options):
    torch.manual_seed(0)
    return Hypformer(data.x.size(1), dropout=0.0, **options).double()


def on(s, k):
    return torch.cat(((s.square().sum(-1, keepdim=True) - 1 / k).sqrt(), s), -1)


def centroid(x, weight, k):
    """The Lorentz mean of points (N, d + 1) by dense weights (M, N), as space parts."""
    total = weight @ x
    square = total[..., :1].square() - total[..., 1:].square().sum(-1, keepdim=True)
    return total[..., 1:] / (-k * square).sqrt()


def normed(norm, s):
    """A layer norm by its weights; nothing for the end of a model without classes."""
    return F.layer_norm(s, s.shape[-1:], norm.weight, norm.bias) if isinstance(norm, nn.LayerNorm) else s


def refined(part, s):
    if not isinstance(part, Refinement):
        return s
    return F.relu(normed(part.norm, s)) if isinstance(part.norm, nn.LayerNorm) else s


def attended(layer, s, k):
    q, key, v = (part.linear(on(s, k)) for part in (layer.query, layer.key, layer.value))
    q, key = (F.relu(y) for y in (q, key))
    q, key = (y**2 * (y.norm(dim=1) / (y**2).norm(dim=1))[:, None] for y in (q, key))
    weight = q @ key.mT
    return weight / weight.sum(1, keepdim=True) @ v + layer.skip(v)


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("classes", [None, 4])
def test_it_is_what_the_documentation_writes(classes, refine):
    data = small_graph(dtype=torch.float64)
    model = made(data, classes=classes, layers=2, curvature=-0.8, graph_weight=0.3, refine=refine)
    with torch.no_grad():
        model.blocks[1].space.curvature += 0.7
    first, last = (space.item() for space in model.spaces)
    assert first != last
    s = g = refined(model.refine, model.enter.linear(on(data.x, first)))
    for block, k in zip(model.blocks, (first, last), strict=True):
        s = s if k == first else s * (first / k) ** 0.5
        both = torch.stack((on(s, k), on(attended(block.attention, s, k), k)), 1)
        s = normed(block.norm, centroid(both, torch.ones(1, 2).double(), k).squeeze(1))
    for linear, refine in zip(model.graph_maps, model.graph_refine, strict=True):
        g = refined(refine, centroid(on(linear.linear(on(g, first)), first), dense_adjacency(data), first))
    both = torch.stack((on(s, last), on(g * (first / last) ** 0.5, last)), 1)
    x = on(centroid(both, torch.tensor([[0.7, 0.3]]).double(), last).squeeze(1), last)
    if classes:
        torch.testing.assert_close(model(data), model.decoder.linear(x))
    rows = model.positions(data).squared_dist_rows(torch.arange(12))
    torch.testing.assert_close(rows, hyperbolic_dist(x[:, None, 1:], x[:, 1:], last).square())


def test_without_graph_layers_the_edges_do_not_matter():
    data, other = small_graph(), small_graph(seed=5)
    model = Hypformer(3, classes=4, graph_layers=0).eval()
    assert torch.equal(model(data), model(other, x=data.x))
    model = Hypformer(3, classes=4).eval()
    assert not torch.equal(model(data), model(other, x=data.x))


def test_200_steps_with_learned_curvature_stay_finite():
    # the default goes through 500 steps with every other model
    checks.check_training(partial(Hypformer, dropout=0.0, learn_curvature=True), steps=200)


def test_curvatures_are_fixed_unless_asked_for():
    assert not any(n.endswith("curvature") and p.requires_grad for n, p in Hypformer(3).named_parameters())
    learned = Hypformer(3, layers=2, learn_curvature=True)
    assert sum(n.endswith("curvature") and p.requires_grad for n, p in learned.named_parameters()) == 2
    torch.testing.assert_close(learned.curvatures, -torch.ones(2, 1))


@pytest.mark.parametrize(
    "options", [{"graph_layers": -1}, {"graph_weight": 1.0}, {"power": 0.5}, {"heads": 3}, {"curvature": 0.5}]
)
def test_impossible_options_are_refused(options):
    with pytest.raises(UsageError, match="must be"):
        Hypformer(3, **options)
