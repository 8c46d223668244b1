"""The C++ kernels against the torch forms in float64, value and gradient; and what happens without them."""

import contextlib
import math
import os
import subprocess
import sys
from pathlib import Path

import mpmath
import pytest
import torch

from gyroformer import compiled
from gyroformer.ops.attention import TokenLayout
from gyroformer.ops.blockwise import tangent_attention, tangent_sum
from gyroformer.ops.native import build, fused

needs_compiler = pytest.mark.skipif(build.library() is None, reason="no C++ compiler on this machine")
CURVATURES = [[-2.0, -0.3], [-1e-8, 1e-8], [0.0, 0.0], [0.4, 3.0], [-20.0, 20.0]]


def results(dtype, qkv, p, x, k, mask, read=None):
    leaves = [t.detach().to(dtype).requires_grad_() for t in (qkv, p, x, k)]
    layout = TokenLayout(mask, read=read)
    mixed = tangent_attention(leaves[0], leaves[3], kind="linear", layout=layout)
    total = tangent_sum(leaves[1], leaves[2], leaves[3])
    weigh = lambda y: (y * torch.linspace(-1, 1, y.numel(), dtype=dtype).view_as(y)).sum()  # noqa: E731
    grads = (
        *torch.autograd.grad(weigh(mixed), (leaves[0], leaves[3])),
        *torch.autograd.grad(weigh(total), leaves[1:]),
    )
    names = ["attention", "d qkv", "d k", "sum", "d p", "d x", "d k of sum"]
    return dict(zip(names, (mixed, *grads[:2], total, *grads[2:]), strict=True))


def draw(k, width, scale=0.4, tokens=77):
    torch.manual_seed(width)
    qkv = scale * torch.randn(2, tokens, 3, 2, width)
    p, x = scale * torch.randn(100, 2, width), scale * torch.randn(100, 2, width)
    return qkv, p, x, torch.tensor(k)


@needs_compiler
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("width", [2, 3, 8, 17, 32])
@pytest.mark.parametrize("k", CURVATURES)
@pytest.mark.parametrize("read", [None, 1, 70])
def test_kernels_equal_the_torch_forms(k, width, masked, read):
    inputs = draw(k, width)
    mask = torch.rand(2, 77) < 0.7 if masked else None
    got = results(torch.float32, *inputs, mask, read)
    with fused.torch_forms():
        want, plain = (results(dtype, *inputs, mask, read) for dtype in (torch.float64, torch.float32))
    for name, exact in want.items():
        error, conditioning = (((y[name] - exact).norm() / exact.norm()).item() for y in (got, plain))
        # near the light cone and the cut locus float32 itself is off, in whatever form
        assert error < max(2e-5, 4 * conditioning), (
            f"{name}: {error:.1e}, torch in float32 {conditioning:.1e}"
        )


def near_the_cut_locus(away, k=2.0, width=5):
    """Return p and x ``(200, 1, width)`` whose sum is ``away`` (an angle) from the antipode of the origin."""
    generator = torch.Generator().manual_seed(0)
    first, other = torch.randn(2, 200, 1, width, generator=generator, dtype=torch.float64)
    first = first / first.norm(dim=-1, keepdim=True)
    other = other - first * (first * other).sum(-1, keepdim=True)
    aside = first * math.cos(away) + other / other.norm(dim=-1, keepdim=True) * math.sin(away)
    turn = torch.rand(200, 1, 1, generator=generator, dtype=torch.float64) + 0.3  # of a quarter turn and more
    p, x = first * turn, aside * (math.pi / 2 - turn)
    return [(part / math.sqrt(k)).float() for part in (p, x)], torch.tensor([k])


@needs_compiler
@pytest.mark.parametrize("away", [0.2, 3e-2, 3e-3])
def test_derivatives_near_the_cut_locus_lose_the_digits_of_the_angle_not_of_its_square(away):
    (p, x), k = near_the_cut_locus(away)

    def gradients(dtype):
        leaves = [part.to(dtype).requires_grad_() for part in (p, x)]
        total = tangent_sum(*leaves, k.to(dtype))
        return torch.autograd.grad((total * torch.linspace(-1, 1, 5, dtype=dtype)).sum(), leaves)

    unit = torch.finfo(torch.float32).eps / away
    for got, want in zip(gradients(torch.float32), gradients(torch.float64), strict=True):
        error = (got - want).norm(dim=-1) / want.norm(dim=-1)
        # measured: half a unit in the median, up to 14 where the gradient itself is small
        assert error.max() < 50 * unit
        assert error.median() < 3 * unit


@needs_compiler
def test_the_kernels_are_in_use():
    """Were they not, the test above would compare the torch forms with themselves."""
    qkv, p, x, k = draw([-1.0, 1.0], 4)
    assert fused.usable(qkv, p, x, k)
    with fused.torch_forms():
        assert not fused.usable(p, x, k)
    assert not fused.usable(p.double())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not fused.usable(p)
    torch.func.vmap(lambda t: tangent_sum(t, t, k))(p)  # the torch form, without complaint


@needs_compiler
def test_operators_are_sound_for_the_compiler():
    qkv, p, x, k = draw([-1.0, 1.0], 4, tokens=9)
    args = [t.requires_grad_() for t in (qkv, k)]
    torch.library.opcheck(torch.ops.gyroformer.attention.default, (*args, None, 5))
    torch.library.opcheck(torch.ops.gyroformer.gyro_sum.default, (p.requires_grad_(), x, args[1]))


@needs_compiler
@pytest.mark.parametrize("tokens", [1, 63, 64, 65, 200])
def test_any_number_of_tokens_and_threads(tokens):
    inputs = draw([-0.7, 0.5], 8, tokens=tokens)
    threads = torch.get_num_threads()
    found = []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            found.append(results(torch.float32, *inputs, None))
    finally:
        torch.set_num_threads(threads)
    for other in found[1:]:
        for name, value in other.items():
            torch.testing.assert_close(value, found[0][name], rtol=1e-4, atol=1e-5)


@needs_compiler
def test_fewer_threads_than_asked_for():
    script = """
import torch
from gyroformer.ops.blockwise import tangent_attention
torch.set_num_threads(4)
qkv = torch.randn(2, 300, 3, 2, 8, generator=torch.Generator().manual_seed(0)).requires_grad_()
tangent_attention(qkv, torch.tensor([-1.0, 1.0]), kind='linear').sum().backward()
print(qkv.grad.abs().sum().item())
"""
    sums = [
        float(subprocess.check_output([sys.executable, "-c", script], env=os.environ | limit))
        for limit in ({}, {"OMP_THREAD_LIMIT": "1"})
    ]
    assert sums[0] == pytest.approx(sums[1], rel=1e-4)


@pytest.fixture
def _all_is_said():
    """What was said once in this process is to be said again."""
    compiled._say_once.cache_clear()


@pytest.mark.usefixtures("_all_is_said")
def test_without_a_compiler_the_torch_forms_serve(monkeypatch, caplog, tmp_path):
    monkeypatch.setattr(compiled.shutil, "which", lambda name: None)
    monkeypatch.delenv("CXX", raising=False)
    assert build.KERNELS.load() is None
    assert "no C++ compiler" in caplog.text


@pytest.mark.usefixtures("_all_is_said")
def test_a_failing_compiler_is_reported_in_one_line(monkeypatch, caplog, tmp_path):
    broken = tmp_path / "c++"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "no such flag" >&2\nexit 1\n')
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert build.KERNELS.load() is None
    assert "could not be built (no such flag)" in caplog.text
    assert list((tmp_path / "gyroformer" / "kernels").iterdir()) == []


@needs_compiler
@pytest.mark.usefixtures("_all_is_said")
def test_without_a_home_folder_the_torch_forms_serve(monkeypatch, caplog):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setattr(Path, "home", lambda: Path("relative"))
    assert build.KERNELS.load() is None
    assert "no home folder is known" in caplog.text


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("GYROFORMER_NATIVE", "0")
    assert build.KERNELS.load() is None


@needs_compiler
@pytest.mark.usefixtures("_all_is_said")
def test_the_build_is_said_and_kept(monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    caplog.set_level("INFO", logger="gyroformer.compiled")
    assert build.KERNELS.load() is not None
    assert caplog.messages == ["compiling C++ kernels, once on this machine: a minute or so"]
    calls = []
    run = subprocess.run
    monkeypatch.setattr(compiled.subprocess, "run", lambda args, **kw: calls.append(args) or run(args, **kw))
    assert build.KERNELS.load() is not None
    assert [call[1] for call in calls] == ["--version"]


def test_all_libraries_can_be_made_ready(monkeypatch):
    asked = []
    for kernels in compiled._every:
        monkeypatch.setattr(kernels, "library", lambda kernels=kernels: asked.append(kernels))
    compiled.make_ready()
    assert asked == compiled._every
    assert build.KERNELS in asked


def exact_sum(p, x):
    """The tangent vector of exp(p) ⊕ exp(x) at k = -1, with 60 digits."""
    with mpmath.workdps(60):
        p, x = (mpmath.matrix([mpmath.mpf(v) for v in u.tolist()]) for u in (p, x))
        a, b = (u * (mpmath.tanh(mpmath.norm(u)) / mpmath.norm(u)) for u in (p, x))
        ab, aa, bb = (sum(i * j for i, j in zip(u, v, strict=True)) for u, v in ((a, b), (a, a), (b, b)))
        w = ((1 + 2 * ab + bb) * a + (1 - aa) * b) / (1 + 2 * ab + aa * bb)
        w = w * (mpmath.atanh(mpmath.norm(w)) / mpmath.norm(w))
        return torch.tensor([float(v) for v in w], dtype=torch.float64)


@pytest.mark.parametrize("form", ["kernel", "torch"])
@pytest.mark.parametrize("radius, most", [(1.0, 3e-4), (3.0, 1e-3), (5.0, 3e-4), (7.0, 1e-4)])
def test_far_points_that_nearly_oppose_keep_their_digits(radius, most, form):
    generator = torch.Generator().manual_seed(0)
    d = torch.nn.functional.normalize(torch.randn(24, 4, generator=generator), dim=-1)
    p, x = radius * d, -radius * (d + 1e-3 * torch.randn(24, 4, generator=generator))
    exact = torch.stack([exact_sum(*pair) for pair in zip(p, x, strict=True)])
    inputs = (
        p[:, None].requires_grad_(),
        x[:, None].requires_grad_(),
        torch.tensor([-1.0], requires_grad=True),
    )
    with contextlib.nullcontext() if form == "kernel" else fused.torch_forms():
        found = tangent_sum(*inputs)
        grads = torch.autograd.grad(found.sum(), inputs)
    error = (found[:, 0].detach().double() - exact).norm(dim=-1) / exact.norm(dim=-1)
    # what inputs that are rounded in float32 allow: the points' distance is a thousandth of theirs from the origin
    assert float(error.max()) < most
    wide = [t.detach().double().requires_grad_() for t in inputs]
    for one, other in zip(grads, torch.autograd.grad(tangent_sum(*wide).sum(), wide), strict=True):
        assert float((one.double() - other).norm() / other.norm()) < 2e-3
