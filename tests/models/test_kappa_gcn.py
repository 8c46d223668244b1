import copy
from functools import partial

import graph_model_checks as checks
import pytest
import torch
import torch.nn.functional as F
from graph_model_checks import dense_adjacency, small_graph

from gyroformer import geometry as g
from gyroformer.errors import UsageError
from gyroformer.models import get_model
from gyroformer.models.kappa_gcn import KappaGCN, left_product

CURVED = partial(KappaGCN, curvature=[-0.7, 0.6])


def test_it_is_known_by_its_name():
    assert get_model("kappa-gcn").build is KappaGCN


def flat_gcn(model, data):
    """A GCN with the model's weights, block by block for its heads."""
    matrix = dense_adjacency(data)
    h = data.x @ model.features.linear.weight.mT
    for place, layer in enumerate(model.layers):
        if place:
            h = h @ torch.block_diag(*layer.linear.weight).mT
        h = F.relu(matrix @ h)
    weight = 4 * model.logits.normal.flatten(1)
    bias = -4 * (model.logits.offset * model.logits.normal).sum((1, 2))
    return matrix @ (h @ weight.mT + bias)


@pytest.mark.parametrize("layers", [1, 3])
def test_at_zero_curvature_it_is_a_gcn_in_value_and_gradient(layers):
    torch.manual_seed(0)
    data = small_graph(dtype=torch.float64)
    model = KappaGCN(3, classes=4, layers=layers, dropout=0.0).double()
    torch.nn.init.normal_(model.logits.offset)
    twin = copy.deepcopy(model)
    ours, theirs = model(data), flat_gcn(twin, data)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    for scores in (ours, theirs):
        F.cross_entropy(scores, torch.arange(12) % 4).backward()
    pairs = zip(model.named_parameters(), twin.parameters(), strict=True)
    for (name, mine), other in pairs:
        if not name.endswith("curvature"):
            torch.testing.assert_close(mine.grad, other.grad, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("k", [0.0, 1e-9, -1e-9, -0.8, 0.5])
def test_the_curvature_gradient_is_that_of_finite_differences(k):
    torch.manual_seed(0)
    data = small_graph(dtype=torch.float64)
    model = KappaGCN(3, classes=4, layers=2, heads=4, curvature=k, dropout=0.0).double()
    torch.nn.init.normal_(model.logits.offset, std=0.3)
    checks.check_curvature_gradient(model, data)


@pytest.mark.parametrize("k", [-1.0, 0.0, 0.7])
def test_the_left_product_is_the_scaled_midpoint(k):
    torch.manual_seed(0)
    data = small_graph(dtype=torch.float64)
    weights = dense_adjacency(data)
    u = 0.5 * torch.randn(12, 1, 3, dtype=torch.float64)
    expected = g.weighted_midpoint(
        g.expmap0(u, k=k).movedim(1, 0).expand(12, 12, 3), weights, k=k, reducedim=[1], lincomb=True
    )
    space = torch.full((1, 1), k, dtype=torch.float64)
    ours = g.expmap0(left_product(weights.to_sparse_coo(), u, space), k=k)
    torch.testing.assert_close(ours.squeeze(1), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("curvature, steps", [(0.0, 500), ([-2.0, 2.0], 200)])
def test_float32_trains_at_a_high_rate(curvature, steps):
    model = checks.check_training(partial(KappaGCN, curvature=curvature), steps=steps)
    start = torch.tensor(curvature).expand(2)
    assert (model.curvatures - start).abs().min() > 1e-3


def test_wrong_use_is_named():
    with pytest.raises(UsageError, match="layers must be a whole number of at least 1"):
        KappaGCN(3, layers=0)
    with pytest.raises(UsageError, match="dropout must be"):
        KappaGCN(3, dropout=1.0)
    with pytest.raises(UsageError, match="multiple of heads"):
        KappaGCN(3, dim=15)
    with pytest.raises(UsageError, match="built without classes"):
        KappaGCN(3).scores(small_graph())
