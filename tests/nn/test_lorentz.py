import pytest
import torch
import torch.nn.functional as F
from hyperbolic_oracle import hyperbolic_dist

from gyroformer.errors import UsageError
from gyroformer.nn.lorentz import FocusedAttention, LorentzLinear, focused, mean_of_two, rescaled

K = torch.tensor([[-0.7]], dtype=torch.float64)


def test_the_linear_map_reads_the_time():
    torch.manual_seed(0)
    linear, s = LorentzLinear(3, 5).double(), torch.randn(4, 3, dtype=torch.float64)
    time = (s.square().sum(-1, keepdim=True) - 1 / K).sqrt()
    weight, bias = linear.linear.weight, linear.linear.bias
    torch.testing.assert_close(linear(s, K), time * weight[:, 0] + s @ weight[:, 1:].mT + bias)


def test_another_curvature_changes_the_unit_of_length_only():
    a, b = torch.randn(2, 4, 3, dtype=torch.float64)
    other = 4 * K
    there = hyperbolic_dist(rescaled(a, K, other), rescaled(b, K, other), other)
    torch.testing.assert_close(there, hyperbolic_dist(a, b, K) / 2)


def test_the_mean_of_two_lies_between_them():
    a, b = torch.randn(2, 4, 3, dtype=torch.float64)
    middle = mean_of_two(a, b, 0.5, K)
    half = hyperbolic_dist(a, b, K) / 2
    torch.testing.assert_close(hyperbolic_dist(a, middle, K), half)
    torch.testing.assert_close(hyperbolic_dist(middle, b, K), half)
    torch.testing.assert_close(mean_of_two(a, b, 0.0, K), a)


def test_the_feature_map_keeps_the_length_and_sharpens():
    x = torch.tensor([[3.0, 1.0, -5.0], [0.0, -1.0, -2.0], [1e-30, 2e-30, 0.0], [1e30, 2e30, 0.0]])
    x.requires_grad_()
    y = focused(x, 3.0)
    torch.testing.assert_close(y[0].norm(), torch.tensor(10.0).sqrt())
    torch.testing.assert_close(y[0, 0] / y[0, 1], torch.tensor(27.0))
    assert (y[1] == 0).all()
    torch.testing.assert_close(y[2:].detach() / y[2:, 1:2].detach(), torch.tensor([[0.125, 1.0, 0.0]] * 2))
    (y / torch.tensor([1.0, 1.0, 1e-30, 1e30])[:, None]).sum().backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("heads", [1, 2])
def test_attention_is_the_quadratic_one_within_each_graph(heads):
    torch.manual_seed(0)
    attention, s = FocusedAttention(6, heads, 2.0).double(), torch.randn(9, 6, dtype=torch.float64)
    segment = torch.tensor([0, 0, 1, 1, 1, 1, 2, 2, 2])
    value = attention.value(s, K)
    q, k = (F.relu(part(s, K)).unflatten(-1, (heads, -1)) for part in (attention.query, attention.key))
    q, k = (y**2 * (y.norm(dim=-1) / (y**2).norm(dim=-1).clamp(min=1e-99)).unsqueeze(-1) for y in (q, k))
    score = torch.einsum("nhd,mhd->hnm", q, k)
    for together, graphs in ((torch.ones(9, 9).bool(), None), (segment[:, None] == segment, segment)):
        weight = score * together
        weight = weight / weight.sum(-1, keepdim=True).clamp(min=1e-99)
        mean = torch.einsum("hnm,mhd->nhd", weight, value.unflatten(-1, (heads, -1))).flatten(1)
        torch.testing.assert_close(attention(s, K, graphs, 3), mean + attention.skip(value))


def test_queries_without_keys_get_the_skip_alone():
    torch.manual_seed(0)
    attention, s = FocusedAttention(4, 1, 2.0), torch.randn(5, 4)
    with torch.no_grad():
        attention.key.linear.weight.zero_()
        attention.key.linear.bias.fill_(-1.0)
    result = attention(s, K.float())
    torch.testing.assert_close(result, attention.skip(attention.value(s, K.float())))
    result.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in attention.parameters())


def test_a_power_below_one_is_refused():
    with pytest.raises(UsageError, match="power must be at least 1"):
        FocusedAttention(4, 1, 0.5)
