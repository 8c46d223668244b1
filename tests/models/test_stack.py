"""The flat models against torch_geometric's own layers, which normalise and add self-loops in each call."""

import gc

import pytest
import torch
from small_graphs import graph
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, SGConv

from gyroformer.errors import UsageError
from gyroformer.models import get_model
from gyroformer.models import stack as module


def build(name, **options):
    torch.manual_seed(0)
    return get_model(name).make(3, classes=4, **options).double().eval()


def wide_graph():
    data = graph()
    data.x = data.x.double()
    return data


@pytest.mark.parametrize(
    "name, first, last",
    [
        ("gcn", GCNConv(3, 16), GCNConv(16, 4)),
        ("gat", GATConv(3, 4, 4), GATConv(16, 4, 4, concat=False)),
        ("sage", SAGEConv(3, 16), SAGEConv(16, 4)),
    ],
)
def test_two_layers_are_those_of_torch_geometric(name, first, last):
    model, data = build(name, activation="tanh"), wide_graph()
    for own, reference in zip(model.layers, (first, last), strict=True):
        reference.double().load_state_dict(own.state_dict())
    expected = last(first(data.x, data.edge_index).tanh(), data.edge_index)
    torch.testing.assert_close(model(data), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_sgc_is_that_of_torch_geometric(steps):
    model, data = build("sgc", layers=steps), wide_graph()
    reference = SGConv(3, 4, K=steps).double()
    with torch.no_grad():
        reference.lin.weight.copy_(model.linear.weight)
        reference.lin.bias.copy_(model.bias.fill_(0.3))
    torch.testing.assert_close(model(data), reference(data.x, data.edge_index), rtol=1e-12, atol=1e-12)


def test_the_perceptron_does_not_see_the_edges():
    model, data, other = build("mlp"), wide_graph(), wide_graph()
    other.edge_index = other.edge_index[:, :2]
    assert torch.equal(model(data), model(other))


@pytest.mark.parametrize("name", ["gcn", "gat", "sage", "sgc"])
def test_the_others_do(name):
    model, data, other = build(name), wide_graph(), wide_graph()
    other.edge_index = other.edge_index[:, :2]
    assert not torch.allclose(model(data), model(other))


def test_the_graph_is_normalised_once(monkeypatch):
    model, data = build("gcn"), wide_graph()
    model.prepare(data)
    monkeypatch.setattr(torch.Tensor, "to_sparse_csr", None)
    assert torch.isfinite(model(data)).all()


def test_a_forgotten_graph_leaves_nothing_behind():
    model, before = build("gcn"), len(module._rows)
    model(wide_graph())
    gc.collect()
    assert len(module._rows) == before


def test_dropout_is_the_papers_for_classes_and_none_for_places():
    assert [build(name).dropout for name in ("mlp", "gcn", "gat", "sage", "sgc")] == [0.5, 0.5, 0.6, 0.5, 0.0]
    assert get_model("gcn").make(3).dropout == 0.0
    assert build("gcn", dropout=0.2).dropout == 0.2
    torch.manual_seed(0)
    model, data = build("gcn").train(), wide_graph()
    assert not torch.equal(model(data), model(data))


def test_wrong_values_are_named():
    with pytest.raises(
        UsageError, match="dropout must be a finite number of at least 0 and below 1 or none; got 1"
    ):
        build("gcn", dropout=1.0)
    with pytest.raises(UsageError, match="multiple of heads"):
        build("gat", heads=3)
    with pytest.raises(UsageError, match="built without classes"):
        get_model("gcn").make(3).scores(graph())
