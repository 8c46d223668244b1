"""The attention part of narrow blocks over tokens that processes share: value and gradients of one process."""

import pytest
import several
import several_calls
import torch

from gyroformer.ops.native import build, fused, shared

#: curvatures of two heads: hyperbolic, flat and nearly so, spherical
CURVATURES = [[-2.0, -0.3], [0.0, 1e-8], [0.4, 1.0]]
READ = 40


def draw(k, dim=8, tokens=77):
    generator = torch.Generator().manual_seed(dim)
    shapes = [(1, tokens, dim), (dim,), (dim,), (3 * dim, dim), (3 * dim,), (dim, dim), (dim,)]
    u, norm, *others = (0.3 * torch.randn(shape, generator=generator) for shape in shapes)
    return [3 * u, torch.tensor(k), 1 + norm, *others]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder, given = tmp_path_factory.mktemp("shared"), [draw(k) for k in CURVATURES]
    for count in (1, 2, 3):
        out = str(folder / f"{count}.pt")
        several.run_in(count, several_calls.attention_steps, given, READ, out, folder=folder)
    return {count: torch.load(folder / f"{count}.pt") for count in (1, 2, 3)}


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("case", range(len(CURVATURES)))
def test_parts_give_what_the_whole_gives(found, count, case):
    for one, other in zip(found[1][case], found[count][case], strict=True):
        assert (one - other).norm() <= 3e-5 * one.norm()


@pytest.mark.skipif(build.library() is None, reason="no C++ compiler on this machine")
def test_one_operator_serves_tokens_that_are_shared(monkeypatch):
    """Parts take the path of whole rows: the other costs three times as much."""
    passes = []
    plain = shared.call
    monkeypatch.setattr(shared, "call", lambda *a: passes.append((a[0], a[3][0])) or plain(*a))
    u, k, *weights = (tensor.requires_grad_() for tensor in draw(CURVATURES[0]))
    shared.attention_step(u, k, shared.Weights(*weights), 1e-5, READ).sum().backward()
    names = "gyroformer_attention_step", "gyroformer_attention_step_backward"
    assert passes == [(name, one) for name in names for one in (fused.FIRST, fused.SECOND)]
