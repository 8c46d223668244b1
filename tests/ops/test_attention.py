import pytest
import torch

from gyroformer.ops import attention as ops


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True) for _ in "qkv"]


def direction(ambient):
    return ambient / ambient.norm(dim=-1, keepdim=True)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", ops.KINDS)
def test_fast_equals_explicit_matrix_with_gradients(kind, masked):
    leaves = draw(2, 3, 7, 4)
    mask = torch.arange(7).expand(2, 7) < torch.tensor([[5], [7]]) if masked else None
    outs = [direction(f(*leaves, kind=kind, mask=mask)) for f in (ops.attend, ops.attend_reference)]
    torch.testing.assert_close(outs[0], outs[1])
    grads = [torch.autograd.grad(o[..., :2].square().sum(), leaves) for o in outs]
    torch.testing.assert_close(grads[0], grads[1])


@pytest.mark.parametrize("kind", ops.KINDS)
def test_padding_leaves_no_trace(kind):
    q, k, v = draw(1, 2, 6, 4)
    mask = torch.tensor([[True, True, True, True, False, False]])
    short = ops.attend(q[:, :, :4], k[:, :, :4], v[:, :, :4], kind=kind)
    torch.testing.assert_close(ops.attend(q, k, v, kind=kind, mask=mask)[:, :, :4], short)
    k, v = k.detach().clone(), v.detach().clone()
    k[:, :, 4:], v[:, :, 4:] = 1e3, -1e3
    torch.testing.assert_close(ops.attend(q, k, v, kind=kind, mask=mask)[:, :, :4], short)


@pytest.mark.parametrize("kind", ops.KINDS)
def test_a_sequence_of_padding_only_stays_finite(kind):
    q, k, v = draw(2, 1, 3, 4)
    mask = torch.tensor([[True, True, False], [False, False, False]])
    assert torch.isfinite(ops.attend(q, k, v, kind=kind, mask=mask)).all()


def test_ragged_equals_each_sequence_alone():
    q, k, v = (t[0] for t in draw(1, 2, 9, 3))
    lengths = [4, 1, 4]
    segment = torch.repeat_interleave(torch.arange(3), torch.tensor(lengths))
    got = ops.ragged_linear_attention(q, k, v, segment, 3)
    start = 0
    for length in lengths:
        part = [t[None, :, start : start + length] for t in (q, k, v)]
        torch.testing.assert_close(got[:, start : start + length], ops.attend(*part, kind="linear")[0])
        start += length


@pytest.mark.parametrize("kind", ops.KINDS)
def test_no_kind_keeps_a_matrix_of_pairs(kind):
    from torch.profiler import profile

    q, k = (torch.randn(1, 2, 2000, 8) for _ in "qk")
    v = torch.randn(1, 2, 2000, 9)
    with profile(profile_memory=True) as seen:
        ops.attend(q, k, v, kind=kind)
    largest = max(event.self_cpu_memory_usage for event in seen.key_averages())
    assert largest < 2000 * 2000, "a matrix of all pairs would take 32 MB"
