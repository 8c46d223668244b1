"""Features that are nearly all zero: sparse rows give what the dense table gives, for every model."""

import pytest
import torch
from torch_geometric.data import Data

import gyroformer as gf
from gyroformer.nn import sparse_features
from gyroformer.nn.dropout import dropout
from gyroformer.nn.features import NodeFeatures
from gyroformer.nn.sparse_features import MOST_FILLED, some_rows, sparse_rows_of

NODES, WORDS, CLASSES = 60, 40, 3
BY_POINTS = [name for name in gf.MODELS if name != "points"]


def words(filled=MOST_FILLED / 2, dtype=torch.float32):
    """Return features of which a share is not 0."""
    generator = torch.Generator().manual_seed(0)
    places = torch.randperm(NODES * WORDS, generator=generator)[: int(filled * NODES * WORDS)]
    x = torch.zeros(NODES * WORDS, dtype=dtype)
    x[places] = torch.rand(len(places), generator=generator, dtype=dtype) + 0.5
    return x.view(NODES, WORDS)


@pytest.fixture
def any_size(monkeypatch):
    monkeypatch.setattr(sparse_features, "LEAST", 0)


def graph(x):
    ring = torch.arange(NODES)
    return Data(
        x=x, edge_index=torch.stack((torch.cat((ring, ring.roll(1))), torch.cat((ring.roll(1), ring))))
    )


def outcome(model, data):
    """Return class scores and the gradient of a sum of their squares."""
    model.zero_grad()
    scores = model(data)
    scores.square().sum().backward()
    return scores.detach(), [p.grad.clone() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("name", BY_POINTS)
def test_every_model_gives_the_same(name, monkeypatch):
    torch.manual_seed(0)
    data = graph(words(dtype=torch.float64))
    model = gf.MODELS[name].make(WORDS, classes=CLASSES).double().eval()
    dense = outcome(model, data)
    monkeypatch.setattr(sparse_features, "LEAST", 0)
    scores, gradients = outcome(model, data)
    torch.testing.assert_close(scores, dense[0], rtol=1e-9, atol=1e-12)
    for found, wanted in zip(gradients, dense[1], strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", BY_POINTS)
def test_no_model_makes_the_dense_table_its_own(name, any_size, monkeypatch):
    seen = []
    linear = torch.nn.functional.linear
    monkeypatch.setattr(
        torch.nn.functional, "linear", lambda x, *rest: (seen.append(x.layout), linear(x, *rest))[1]
    )
    model = gf.MODELS[name].make(WORDS, classes=CLASSES, dropout=0.5).train()
    model(graph(words()))
    assert seen[0] == torch.sparse_csr


def test_dropout_of_sparse_rows_draws_for_what_is_there(any_size):
    torch.manual_seed(0)
    x = words()
    rows = sparse_rows_of(x, torch.float32)
    dropped = dropout(rows, 0.5, True)
    there = rows.values()
    kept = dropped.values() != 0
    assert 0 < kept.sum() < len(there)
    torch.testing.assert_close(dropped.values()[kept], 2 * there[kept])
    torch.testing.assert_close(rows.to_dense(), x)  # what is kept for the next step is as it was
    assert dropout(rows, 0.5, False) is rows


def test_sparse_rows_are_made_once_and_anew_where_features_change(any_size):
    x = words()
    rows = sparse_rows_of(x, torch.float32)
    assert sparse_rows_of(x, torch.float32) is rows
    assert sparse_rows_of(x, torch.float64).dtype == torch.float64
    x[0, 0] += 7
    assert sparse_rows_of(x, torch.float32).to_dense()[0, 0] == x[0, 0]


@pytest.mark.parametrize("why", ["filled", "small", "learned"])
def test_other_features_stay_as_they_are(why, any_size, monkeypatch):
    x = words(2 * MOST_FILLED if why == "filled" else MOST_FILLED / 2)
    if why == "small":
        monkeypatch.undo()
    x.requires_grad_(why == "learned")
    assert sparse_rows_of(x, torch.float32) is x


def test_the_gradient_in_features_is_still_there(any_size):
    x = words().requires_grad_()
    NodeFeatures(WORDS, 4)(NODES, x).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("some", [slice(0, 0), slice(0, 20), slice(17, 41), slice(59, 60), slice(0, NODES)])
def test_some_rows_are_those_of_the_dense_table(some, any_size):
    """What each of several processes takes, after the same draws of dropout."""
    x = words()
    rows = sparse_rows_of(x, torch.float32)
    torch.testing.assert_close(some_rows(rows, some).to_dense(), x[some])
    features = NodeFeatures(WORDS, 4, dropout=0.5).train()
    parts = []
    for part in (some, slice(0, NODES)):
        torch.manual_seed(0)
        parts.append(features(NODES, x, part))
    torch.testing.assert_close(parts[0], parts[1][some])
