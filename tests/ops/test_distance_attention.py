"""Attention by distance: the C++ kernel and the torch form against the definition in float64."""

import pytest
import torch

from gyroformer import geometry
from gyroformer.compiled import torch_forms
from gyroformer.ops.distance_attention import distance_attention, score
from gyroformer.ops.lifted import sine_cosine
from gyroformer.ops.native import build

needs_compiler = pytest.mark.skipif(build.library() is None, reason="no C++ compiler on this machine")
HEADS, WIDTH, DEPTH = 3, 4, 5
#: what can be learned: queries, keys, values, curvatures, sharpness, threshold
NAMES = ("query", "key", "values", "k", "sharpness", "threshold")


def drawn(nodes=150, k=(-1.0, -0.2, 0.3), spread=0.7, threshold=True, dtype=torch.float32):
    random = torch.Generator().manual_seed(nodes)
    normal = [torch.randn(nodes, HEADS, d, generator=random) for d in (WIDTH, WIDTH, DEPTH)]
    parts = [
        spread * normal[0],
        spread * normal[1],
        normal[2],
        torch.tensor(k),
        torch.rand(HEADS, generator=random) + 0.5,
    ]
    parts.append(torch.linspace(-1, 1, HEADS))
    leaves = {name: part.to(dtype).requires_grad_() for name, part in zip(NAMES, parts, strict=True)}
    return leaves if threshold else leaves | {"threshold": None}


def attended(query, key, values, k, sharpness, threshold, segment):
    points = (sine_cosine(part, k[:, None]) for part in (query, key))
    return distance_attention(*points, values, k, sharpness, threshold, segment)


def defined(query, key, values, k, sharpness, threshold, segment):
    """The definition, by the public geometry and a whole matrix."""
    heads = []
    for h in range(HEADS):
        x, y = (geometry.expmap0(part[:, h], k=k[h]) for part in (query, key))
        far = geometry.dist(x[:, None], y, k=k[h])
        found = score(far, sharpness[h], None if threshold is None else threshold[h])
        heads.append(found.masked_fill(segment[:, None] != segment, -torch.inf).softmax(-1) @ values[:, h])
    return torch.stack(heads, 1)


def wide(leaves):
    return {name: None if x is None else x.detach().double().requires_grad_() for name, x in leaves.items()}


@pytest.mark.parametrize("threshold", [True, False])
@pytest.mark.parametrize("kernel", [pytest.param(True, marks=needs_compiler), False])
def test_values_and_gradients_are_those_of_the_definition(kernel, threshold):
    leaves = drawn(threshold=threshold)
    segment = torch.arange(150) % 2  # two graphs, mixed
    exact = wide(leaves)
    grad = torch.randn(150, HEADS, DEPTH, generator=torch.Generator().manual_seed(1))
    want = defined(**exact, segment=segment)
    want.backward(grad.double())
    if kernel:
        found = attended(**leaves, segment=segment)
        found.backward(grad)
    else:
        with torch_forms():
            found = attended(**leaves, segment=segment)
            found.backward(grad)
    torch.testing.assert_close(found.double(), want, rtol=1e-5, atol=1e-5)
    for name, leaf in leaves.items():
        if leaf is not None:
            error = (leaf.grad.double() - exact[name].grad).norm() / exact[name].grad.norm()
            # the terms of the threshold's gradient nearly cancel
            assert float(error) < (1e-4 if name == "threshold" else 1e-5), name


@needs_compiler
@pytest.mark.parametrize("spread", [1e-3, 0.05, 3.0])
@pytest.mark.parametrize("k", [(-1.0, -0.1, -0.01), (-1e-3, -1e-8, -1e-30), (0.0, 1e-8, 1e-3)])
def test_near_and_far_keys_in_spaces_of_any_curvature(k, spread):
    """The form without branches for k < 0 and the other for what it is not for agree with the definition."""
    leaves = drawn(k=k, spread=spread if k[0] != -1.0 else min(spread, 1.0), threshold=False)
    segment = torch.zeros(150, dtype=torch.int64)
    exact = wide(leaves)
    for kind in (leaves, exact):
        attended(**kind, segment=segment).square().sum().backward()
    for name, leaf in leaves.items():
        if leaf is not None:
            error = (leaf.grad.double() - exact[name].grad).norm() / exact[name].grad.norm()
            assert float(error) < 1e-4, name


@needs_compiler
def test_far_keys_do_not_leave_a_query_without_weights():
    """Scores of hundreds below 0: what counts is how they differ."""
    leaves = drawn(k=(-1.0, -1.0, -1.0), spread=3.0, threshold=False)
    leaves["sharpness"] = torch.full((HEADS,), 200.0)
    segment = torch.zeros(150, dtype=torch.int64)
    want = defined(**wide(leaves), segment=segment)
    torch.testing.assert_close(attended(**leaves, segment=segment).double(), want, rtol=1e-2, atol=1e-2)


@needs_compiler
def test_what_is_not_finite_is_seen():
    leaves = {name: x.detach() for name, x in drawn().items()}
    leaves["key"][3, 1, 2] = torch.nan
    assert attended(**leaves, segment=torch.zeros(150, dtype=torch.int64)).isnan().any()


@needs_compiler
def test_the_operator_is_as_torch_expects():
    leaves = drawn(nodes=70)
    points = [
        part.detach().requires_grad_()
        for x in ("query", "key")
        for part in sine_cosine(leaves[x], leaves["k"][:, None])
    ]
    rest = [leaves[name] for name in NAMES[2:]]
    segment = torch.zeros(70, dtype=torch.int64)
    torch.library.opcheck(
        torch.ops.gyroformer.distance_attention.default,
        (*points, *rest, segment),
        test_utils=("test_schema", "test_faketensor", "test_autograd_registration"),
    )


@needs_compiler
def test_second_derivatives_are_had():
    leaves = drawn(nodes=20, dtype=torch.float32)
    segment = torch.zeros(20, dtype=torch.int64)
    (first,) = torch.autograd.grad(
        attended(**leaves, segment=segment).square().sum(), leaves["query"], create_graph=True
    )
    first.square().sum().backward()
    assert leaves["k"].grad.isfinite().all()
    assert leaves["k"].grad.abs().sum() > 0
