"""Models used in ways that are legal and seldom tried."""

import pytest
import torch
from torch_geometric.data import Batch, Data

import gyroformer as gf
from gyroformer.errors import UsageError
from gyroformer.ops.native import fused


def tree(nodes=8, features=5):
    child = torch.arange(1, nodes)
    edges = torch.stack([child, child // 2])
    x = torch.randn(nodes, features, generator=torch.Generator().manual_seed(nodes))
    return Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], 1), num_nodes=nodes)


def empty(features=5):
    return Data(x=torch.zeros(0, features), edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=0)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return gf.FPST(5, dim=8, heads=2, identifiers=4, curvature=[-0.5, 0.3])


def second_derivatives(model):
    """Return the gradient, and that of its square, in the features and in all parameters."""
    data = tree()
    data.x.requires_grad_()
    wanted = [data.x, *model.parameters()]
    first = torch.autograd.grad(model(data).square().sum(), wanted, create_graph=True)
    second = torch.autograd.grad(sum(one.square().sum() for one in first), wanted, allow_unused=True)
    return [*first, *second]


def test_second_derivatives_are_those_of_the_torch_forms(model):
    ours = second_derivatives(model)
    with fused.torch_forms():
        theirs = second_derivatives(model)
    assert any(one is not None and one.abs().max() > 0 for one in ours)
    for one, other in zip(ours, theirs, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4 * float(other.detach().abs().max()))


@pytest.mark.parametrize("name", gf.MODELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.float64])
def test_features_of_another_dtype_are_brought_to_the_models(name, dtype):
    torch.manual_seed(0)
    model = gf.MODELS[name].make(5, num_nodes=None, classes=3, dim=8).double().eval()
    data = tree()
    data.x = data.x.to(dtype)
    found = model(data)
    assert found.dtype == torch.float64
    data.x = data.x.double()
    torch.testing.assert_close(found, model(data), rtol=0, atol=0)


def test_what_inference_mode_has_seen_can_be_trained(model, tmp_path):
    data = tree()
    with torch.inference_mode():
        prepared = model.prepare(data)
        model(data)
        model.save_pretrained(tmp_path)
        again = gf.FPST.from_pretrained(tmp_path)
    for one, graph in ((model, data), (model, prepared), (again, data)):
        one(graph).sum().backward()
        assert next(one.parameters()).grad is not None


@pytest.mark.parametrize("options", [{}, {"attention": "softmax"}, {"edge_tokens": "none"}])
def test_a_graph_without_nodes_in_a_batch_is_empty(options):
    torch.manual_seed(0)
    model = gf.FPST(5, dim=8, heads=2, identifiers=4, **options).eval()
    whole = model(Batch.from_data_list([tree(6), empty(), tree(9), empty()]))
    alone = torch.cat([model(tree(6)), model(tree(9))])
    torch.testing.assert_close(whole, alone, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore")  # torch's own, where it breaks the graph
@pytest.mark.parametrize("prepared", [False, True])
def test_a_whole_model_is_compiled(model, prepared):
    torch._dynamo.reset()
    data = model.prepare(tree()) if prepared else tree()
    torch.testing.assert_close(torch.compile(model, backend="eager")(data), model(data))


@pytest.mark.parametrize("heads", [0, -1, None, "2", 3])
def test_heads_that_cannot_be(heads):
    with pytest.raises(UsageError, match="heads"):
        gf.FPST(5, dim=8, heads=heads)
