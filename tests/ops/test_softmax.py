"""Softmax attention: the C++ kernel and the torch form against a matrix of all pairs in float64."""

import pytest
import torch

from gyroformer.compiled import torch_forms
from gyroformer.ops.native import build, fused_softmax
from gyroformer.ops.softmax import explicit, softmax_attention

needs_compiler = pytest.mark.skipif(build.library() is None, reason="no C++ compiler on this machine")
#: batch, heads, queries, keys, width, columns of the values: single ones, none a multiple of a block, wide heads
SHAPES = [
    (1, 1, 1, 1, 4, 5),
    (1, 2, 1, 130, 16, 17),
    (2, 1, 67, 1, 8, 9),
    (2, 3, 70, 131, 16, 17),
    (1, 2, 193, 193, 5, 6),
    (1, 1, 64, 48, 64, 65),
    (1, 1, 25, 49, 1, 33),
]


def drawn(batch, heads, queries, keys, width, columns, *, spread=1.0):
    random = torch.Generator().manual_seed(queries + keys)
    sizes = ((queries, width), (keys, width), (keys, columns))
    leaves = [torch.randn(batch, heads, *size, generator=random) for size in sizes]
    for leaf in leaves[:2]:
        leaf *= spread
    return [leaf.requires_grad_() for leaf in leaves]


def with_gradients(form, leaves, **masks):
    leaves = [leaf.detach().clone().requires_grad_() for leaf in leaves]
    found = form(*leaves, **masks)
    weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(1)).to(found.dtype)
    return [found.detach(), *torch.autograd.grad(found, leaves, weight)]


def torch_only(*leaves, **masks):
    with torch_forms():
        return softmax_attention(*leaves, **masks)


def check(leaves, form=softmax_attention, *, within=2e-6, **masks):
    found = with_gradients(form, leaves, **masks)
    exact = with_gradients(explicit, [leaf.double() for leaf in leaves], **masks)
    for name, one, other in zip(("mean", "query", "key", "value"), found, exact, strict=True):
        assert one.isfinite().all(), name
        # a softmax over one key has no gradient by its score but rounding
        assert float((one.double() - other).norm()) <= within * float(other.norm()) + 1e-5, name


@pytest.mark.parametrize("form", [pytest.param(softmax_attention, marks=needs_compiler), torch_only])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_means_and_gradients_are_those_of_all_pairs(shape, causal, form):
    check(drawn(*shape), form, causal=causal)


@pytest.mark.parametrize("form", [pytest.param(softmax_attention, marks=needs_compiler), torch_only])
def test_keys_that_are_left_out(form):
    """One sequence lacks its first blocks of keys, the other single keys."""
    keep = torch.rand(2, 150, generator=torch.Generator().manual_seed(0)) < 0.5
    keep[0, :130] = False
    keep[0, 140] = True
    check(drawn(2, 2, 70, 150, 16, 17), form, keep=keep)


@needs_compiler
def test_what_is_left_out_leaves_no_trace_however_large():
    leaves = [leaf.detach() for leaf in drawn(1, 2, 70, 150, 16, 17)]
    keep = torch.arange(150)[None] < 90
    before = softmax_attention(*leaves, keep=keep)
    for leaf in leaves[1:]:
        leaf[:, :, 90:] = 1e30
    assert torch.equal(softmax_attention(*leaves, keep=keep), before)
    assert torch.equal(
        softmax_attention(*leaves, causal=True),
        softmax_attention(*[x[:, :, :90] for x in leaves], causal=True),
    )


@needs_compiler
def test_a_query_without_keys_gets_zeros_and_no_gradient():
    leaves = drawn(1, 2, 5, 70, 4, 5)
    keep = torch.zeros(1, 70, dtype=torch.bool)
    found, _ = fused_softmax.attend(*leaves, keep, False)
    assert torch.equal(found, torch.zeros_like(found))
    for grad in torch.autograd.grad(found.sum(), leaves):
        assert torch.equal(grad, torch.zeros_like(grad))


@needs_compiler
@pytest.mark.parametrize("spread", [10.0, 1e3, 1e8, 1e18])
def test_huge_scores(spread):
    """Up to where float32 knows scores, the weights are those of all pairs; beyond, the nearest key still wins."""
    leaves = drawn(1, 2, 70, 150, 16, 17, spread=spread)
    found = with_gradients(softmax_attention, leaves)
    assert all(one.isfinite().all() for one in found)
    if spread <= 10:
        check(leaves, within=2e-4)
    else:
        query, key, value = (leaf.detach().double() for leaf in leaves)
        normal = [x / x.norm(dim=-1, keepdim=True) for x in (query, key)]
        score = normal[0] @ normal[1].mT
        best = score.topk(2, -1)
        clear = best.values[..., 0] - best.values[..., 1] > 1e-2 * score.abs().max()
        want = value.gather(2, best.indices[..., :1].expand(-1, -1, -1, 17))
        torch.testing.assert_close(found[0].double()[clear], want[clear], rtol=1e-5, atol=1e-5)


@needs_compiler
def test_weights_below_the_normal_numbers_are_as_cheap_as_others():
    """Values and gradients far apart in size: no product is rounded up to something, none is NaN."""
    query, key, value = (leaf.detach() for leaf in drawn(1, 1, 70, 150, 8, 9, spread=6.0))
    value *= torch.logspace(-30, 12, 150)[:, None]
    check([query, key, value], within=1e-4)


@needs_compiler
def test_what_is_not_finite_is_seen():
    for place in range(3):
        leaves = [leaf.detach() for leaf in drawn(1, 2, 70, 150, 8, 9)]
        leaves[place][0, 1, 3, 2] = torch.nan
        assert softmax_attention(*leaves).isnan().any()
        assert not softmax_attention(*leaves)[:, 0].isnan().any()


@needs_compiler
@pytest.mark.parametrize("heads", [1, 3, 9])
def test_threads_share_heads_or_keys_and_give_the_same_bits_each_time(heads):
    leaves = drawn(1, heads, 130, 330, 8, 9)
    before = torch.get_num_threads()
    alone = with_gradients(softmax_attention, leaves)
    try:
        torch.set_num_threads(2)
        first, second = (with_gradients(softmax_attention, leaves) for _ in range(2))
    finally:
        torch.set_num_threads(before)
    for one, two, three in zip(alone, first, second, strict=True):
        assert torch.equal(two, three)
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)


@needs_compiler
def test_the_operator_is_as_torch_expects():
    leaves = drawn(2, 2, 20, 30, 4, 5)
    keep = torch.ones(2, 30, dtype=torch.bool)
    for mask, causal in ((None, True), (keep, False)):
        torch.library.opcheck(torch.ops.gyroformer.softmax_attention.default, (*leaves, mask, causal))


@needs_compiler
def test_second_derivatives_are_those_of_all_pairs():
    leaves = drawn(1, 2, 20, 30, 4, 5)

    def second(form, inputs):
        (first,) = torch.autograd.grad(
            form(*inputs, causal=True).square().sum(), inputs[0], create_graph=True
        )
        return torch.autograd.grad(first.square().sum(), inputs)

    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    for one, other in zip(second(softmax_attention, leaves), second(explicit, exact), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-5)


@needs_compiler
def test_compiled_code_keeps_the_operator():
    leaves = drawn(1, 2, 33, 65, 8, 9)
    compiled = torch.compile(softmax_attention, fullgraph=True)
    for one, other in zip(
        with_gradients(compiled, leaves), with_gradients(softmax_attention, leaves), strict=True
    ):
        torch.testing.assert_close(one, other)
