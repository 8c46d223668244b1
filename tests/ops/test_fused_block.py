"""The parts of a block as one operator each, against the torch forms in float64: value and every gradient."""

import pytest
import torch

from gyroformer import nn
from gyroformer.compiled import torch_forms
from gyroformer.ops.attention import TokenLayout
from gyroformer.ops.blockwise import attention_step, feed_forward
from gyroformer.ops.native import build, fused_block, wide_block
from gyroformer.ops.native.fused_block import Weights

pytestmark = pytest.mark.skipif(build.library() is None, reason="no C++ compiler on this machine")
EPS = 1e-5
#: what rounding alone may do, relative: gradients of four weights are sums of 154 tokens that nearly cancel
ROUNDING = 4e-5


def draw(k, dim, *, hidden=None, batch=2, tokens=77):
    """Return tokens, curvatures and weights; with ``hidden`` those of a feed-forward part."""
    generator = torch.Generator().manual_seed(dim)

    def normal(*shape, scale=0.3):
        return scale * torch.randn(*shape, generator=generator)

    first, second = (3 * dim, dim) if hidden is None else (hidden, hidden)
    small = 0.4 * dim**-0.5  # heads far from the origin would measure their conditioning, not the kernels
    maps = normal(first, dim, scale=small), normal(first), normal(dim, second, scale=small), normal(dim)
    weights = Weights(1 + normal(dim), normal(dim), *maps)
    return normal(batch, tokens, dim, scale=1.0), torch.tensor(k), weights


def results(function, u, k, weights, dtype):
    leaves = [t.detach().to(dtype).requires_grad_() for t in (u, k, *weights)]
    value = function(leaves[0], leaves[1], Weights(*leaves[2:]))
    weighed = value * torch.linspace(-1, 1, value.numel(), dtype=dtype).view_as(value)
    names = ["value", "u", "k", *Weights._fields]
    return dict(zip(names, (value.detach(), *torch.autograd.grad(weighed.sum(), leaves)), strict=True))


def attending(layout=None):
    return lambda *given: attention_step(*given, eps=EPS, layout=layout or TokenLayout())


def feeding(*given):
    return feed_forward(*given, eps=EPS)


def check(function, given, operators=fused_block):
    assert operators.usable(*given, EPS)
    got = results(function, *given, torch.float32)
    with torch_forms():
        want, plain = (results(function, *given, dtype) for dtype in (torch.float64, torch.float32))
    for name, exact in want.items():
        error, conditioning = (((y[name] - exact).norm() / exact.norm()).item() for y in (got, plain))
        assert error < max(ROUNDING, 4 * conditioning), (
            f"{name}: {error:.1e}, torch in float32 {conditioning:.1e}"
        )


CURVATURES = [[-2.0, -0.3], [0.0, 1e-8], [0.4, 1.0]]


@pytest.mark.parametrize("dim", [4, 6, 16, 34])
@pytest.mark.parametrize("k", CURVATURES)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("read", [None, 1, 70])
def test_attention_equals_the_torch_form(k, dim, masked, read):
    mask = torch.rand(2, 77, generator=torch.Generator().manual_seed(1)) < 0.7 if masked else None
    check(attending(TokenLayout(mask, read=read)), draw(k, dim))


@pytest.mark.parametrize("dim, hidden", [(2, 2), (6, 5), (16, 16), (16, 33), (34, 64)])
@pytest.mark.parametrize("k", CURVATURES)
def test_feed_forward_equals_the_torch_form(k, dim, hidden):
    check(feeding, draw(k, dim, hidden=hidden))


@pytest.mark.parametrize("k", CURVATURES)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("read", [None, 70])
def test_wide_attention_equals_the_torch_form(k, masked, read):
    mask = torch.rand(2, 77, generator=torch.Generator().manual_seed(1)) < 0.7 if masked else None
    given = draw(k, 72)
    assert not fused_block.usable(*given, EPS)
    check(attending(TokenLayout(mask, read=read)), given, wide_block)


@pytest.mark.parametrize("dim, hidden", [(72, 72), (8, 80)])
@pytest.mark.parametrize("k", CURVATURES)
def test_a_wide_feed_forward_part_equals_the_torch_form(k, dim, hidden):
    given = draw(k, dim, hidden=hidden)
    assert not fused_block.usable(*given, EPS)
    check(feeding, given, wide_block)


def test_a_wide_part_is_the_same_compiled():
    for function, hidden in ((attending(), None), (feeding, 80)):
        given = draw([-0.7, 0.5], 72, hidden=hidden)
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        eager, found = (results(form, *given, torch.float32) for form in (function, compiled))
        torch.testing.assert_close(found, eager, rtol=0, atol=0)


@pytest.mark.parametrize("tokens", [1, 63, 64, 65, 200])
def test_any_number_of_tokens_and_threads(tokens):
    threads = torch.get_num_threads()
    for function, hidden in ((attending(), None), (feeding, 12)):
        given, found = draw([-0.7, 0.5], 8, hidden=hidden, tokens=tokens), []
        try:
            for count in (1, 2, 3):
                torch.set_num_threads(count)
                found.append(results(function, *given, torch.float32))
        finally:
            torch.set_num_threads(threads)
        for other in found[1:]:
            torch.testing.assert_close(other, found[0], rtol=1e-4, atol=1e-5)


def test_operators_are_sound_for_the_compiler():
    u, k, weights = draw([-1.0, 1.0], 4, tokens=9)
    given = [t.requires_grad_() for t in (u, k, *weights)]
    torch.library.opcheck(torch.ops.gyroformer.attention_step.default, (*given[:2], given[2:], None, 5, EPS))
    u, k, weights = draw([-1.0, 1.0], 4, hidden=6, tokens=9)
    given = [t.requires_grad_() for t in (u, k, *weights)]
    torch.library.opcheck(torch.ops.gyroformer.feed_forward.default, (*given[:2], given[2:], EPS))


def test_wide_operators_are_sound_for_the_compiler():
    for hidden in (None, 66):
        u, k, weights = draw([-1.0, 1.0], 66, hidden=hidden, tokens=9)
        given = [t.requires_grad_() for t in (u, k, *weights)]
        operators, rest = torch.ops.gyroformer, (None, 5, EPS) if hidden is None else (EPS,)
        called = operators.wide_attention_step if hidden is None else operators.wide_feed_forward
        tests = ("test_schema", "test_faketensor", "test_autograd_registration")
        torch.library.opcheck(called.default, (*given[:2], given[2:], *rest), test_utils=tests)


@pytest.mark.parametrize("dim, hidden", [(4, None), (4, 6), (66, None), (4, 66)])
def test_a_second_derivative_comes_from_the_torch_form(dim, hidden):
    u, k, weights = draw([-1.0, 1.0], dim, hidden=hidden, tokens=9)
    function = feeding if hidden else attending()

    def second():
        leaves = [t.detach().requires_grad_() for t in (u, k, *weights)]
        value = function(leaves[0], leaves[1], Weights(*leaves[2:]))
        first = torch.autograd.grad(value.square().sum(), leaves, create_graph=True)
        return torch.autograd.grad(sum(one.square().sum() for one in first), leaves)

    found = second()
    with torch_forms():
        wanted = second()
    for one, other in zip(found, wanted, strict=True):
        assert (one - other).norm() < 1e-3 * other.norm()


def test_where_the_composition_serves():
    given = draw([-1.0, 1.0], 4)
    assert fused_block.usable(*given, EPS)
    assert not fused_block.usable(*given, 0.0)
    assert not fused_block.usable(given[0].double(), *given[1:], EPS)
    assert not fused_block.usable(*draw([-1.0], fused_block.MOST_WIDTH + 1), EPS)
    assert not fused_block.usable(*draw([-1.0], 4, hidden=fused_block.MOST_WIDTH + 1), EPS)
    with torch_forms():
        assert not fused_block.usable(*given, EPS)


def calls_of(model, tokens, monkeypatch):
    """Return which operators a model calls."""
    called = []
    for name in ("attention_step", "feed_forward"):
        plain = getattr(fused_block, name)
        monkeypatch.setattr(
            fused_block, name, lambda *a, name=name, plain=plain: called.append(name) or plain(*a)
        )
    with torch.no_grad():
        model(tokens)
    monkeypatch.undo()
    return called


def test_a_model_calls_them_where_nothing_else_happens_in_its_modules(monkeypatch):
    torch.manual_seed(0)
    tokens, both = torch.randn(20, 8), ["attention_step", "feed_forward"]

    def calls(**options):
        return calls_of(nn.StereographicTransformer(8, 2, 1, **options), tokens, monkeypatch)

    assert calls() == both
    assert calls(attention="softmax") == both[1:]
    assert calls(activation="gelu") == both[:1]
    assert calls(norm=False) == []
    assert calls(dropout=0.1, dropout_kind="tangent") == []
    assert calls(dropout=0.1, dropout_kind="weight") == []
    model = nn.StereographicTransformer(8, 2, 1, dropout=0.1).eval()
    assert calls_of(model, tokens, monkeypatch) == both


@pytest.mark.parametrize("place", ["norm1", "attention.qkv", "ffn.down", "ffn"])
def test_who_watches_a_module_sees_it_called(place):
    block = nn.StereographicTransformer(8, 2, 1).blocks[0]
    seen = []
    block.get_submodule(place).register_forward_hook(lambda *_: seen.append(place))
    block.tangent(torch.randn(1, 20, 8))
    assert seen


@pytest.mark.parametrize("name", ["ffn.up.weight", "attention.qkv.bias", "norm2.weight"])
def test_weights_that_are_nan_are_not_hidden(name):
    model = nn.StereographicTransformer(8, 2, 1)
    with torch.no_grad():
        model.blocks[0].get_parameter(name).fill_(torch.nan)
        assert model(torch.randn(20, 8)).isnan().all()
