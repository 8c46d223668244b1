"""The sum over non-neighbours: C++ and torch forms against a float64 whole-matrix reference under autograd."""

import math
import os
import subprocess
import sys

import pytest
import torch

from gyroformer import geometry
from gyroformer.errors import UsageError
from gyroformer.geometry.trig import arsin_ratio, safe_sqrt
from gyroformer.ops.lifted import REACH, sine_cosine
from gyroformer.ops.native import build, fused, fused_pairs
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.pairs import log_partition, pair_squared_dist, squared_dist_rows

needs_compiler = pytest.mark.skipif(build.library() is None, reason="no C++ compiler on this machine")
FORMS = [pytest.param("native", marks=needs_compiler), "eager"]
CURVATURES = [
    [-4.0, -1.0],
    [-1e-8, 0.0, 1e-8],
    [0.5, 2.0],
    [-4.0, -1.0, -1e-8, 0.0, 1e-8, 0.5, 2.0],
    [-1e-3, 1e-3],
]
NAMES = ("value", "sine", "cosine", "k", "rise", "pull")


def graph(nodes, edges, seed=0):
    return Neighbours.of(
        torch.randint(0, nodes, (2, edges), generator=torch.Generator().manual_seed(seed)), nodes
    )


def draw(k, radius, nodes=150, width=3, dtype=torch.float32, seed=0):
    """Points whose √|k| |u| is at most `radius`, in pairs a hundredth of it apart; two coincide."""
    random = torch.Generator().manual_seed(width + 100 * seed)
    k = torch.tensor(k, dtype=torch.float64)
    u = torch.randn(nodes // 2, len(k), width, dtype=torch.float64, generator=random)
    u = u / u.norm(dim=-1, keepdim=True) * torch.rand(*u.shape[:2], 1, dtype=torch.float64, generator=random)
    u = torch.cat((u, u + 0.01 * torch.randn(u.shape, dtype=torch.float64, generator=random)))
    u[0] = u[-1]
    sine, cosine = sine_cosine(u * radius / k.abs().clamp(min=0.25).sqrt()[:, None], k[:, None])
    return sine.to(dtype), cosine.to(dtype), k.to(dtype)


def whole_matrix(sine, cosine, k, *bias, neighbours, columns=None, scale=1.0, squared=True):
    """The definition, all pairs at once."""
    nodes = sine.shape[0]
    columns = torch.arange(nodes) if columns is None else columns
    delta = cosine[columns] * sine[:, None] - cosine[:, None] * sine[columns]
    q = delta.square().sum(-1)
    square = (4 * q * arsin_ratio(k * q).square()).sum(-1)
    counted = torch.ones(nodes, nodes, dtype=torch.bool)
    counted[neighbours.source, neighbours.indices] = False
    counted.fill_diagonal_(False)
    exponent = -square if squared else -safe_sqrt(square)
    if bias:
        exponent = exponent + bias[0][:, None] + bias[1][columns]
    fall = torch.exp(exponent)
    return torch.log(1 + scale * (fall * counted[:, columns]).sum(-1))


def results(function, inputs, dtype=torch.float32, **options):
    leaves = [t.detach().to(dtype).requires_grad_() for t in inputs]
    if len(leaves) > 3 and function is log_partition:
        value = function(*leaves[:3], bias=tuple(leaves[3:]), **options)
    else:
        value = function(*leaves, **options)
    weights = torch.linspace(-1, 2, value.numel(), dtype=dtype)
    return dict(zip(NAMES, (value, *torch.autograd.grad((value * weights).sum(), leaves)), strict=False))


def check(inputs, form, **options):
    check_draws([inputs], form, **options)


def check_draws(draws, form, **options):
    """Compare root mean squares of the errors over draws: of a single pair rounding may be lucky."""
    found = [errors(inputs, form, **options) for inputs in draws]
    for name in found[0]:
        error, plain = torch.tensor([one[name] for one in found]).square().mean(0).sqrt().tolist()
        # far from the origin and at the cut locus float32 itself is off, in whatever form
        assert error < max(5e-6, 4 * plain), f"{name}: {error:.1e}, autograd in float32 {plain:.1e}"


def errors(inputs, form, **options):
    """Return for each result the relative errors of a form and of autograd in float32."""
    want = results(whole_matrix, inputs, torch.float64, **options)
    conditioning = results(whole_matrix, inputs, torch.float32, **options)
    got = results(log_partition, inputs, form=form, **options)
    assert all(exact.isfinite().all() for exact in want.values())
    sizes = {name: exact.norm() if exact.any() else 1.0 for name, exact in want.items()}  # 0: nothing to sum
    return {
        name: [((y[name] - exact).norm() / sizes[name]).item() for y in (got, conditioning)]
        for name, exact in want.items()
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("radius", [1e-6, 0.5, 1.4])
@pytest.mark.parametrize("k", CURVATURES)
def test_value_and_gradients_are_those_of_the_definition(k, radius, squared, form):
    inputs = draw(k, radius)
    check(inputs, form, neighbours=graph(150, 300), squared=squared, scale=2.5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize(
    "k, radius",
    [([-4.0, -1.0], 4.0), ([-1.0], REACH), ([-0.01], REACH), ([2.0], math.pi / 2), ([0.5, 2.0], 3.0)],
)
def test_far_from_the_origin(k, radius, squared, form):
    """Up to the end of the ball's reach; on a sphere past the equator, to the pole of x and beyond."""
    check(draw(k, radius), form, neighbours=graph(150, 300), squared=squared)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("squared", [True, False])
def test_sampled_columns_in_any_order_some_twice(squared, form):
    columns = torch.randint(0, 150, (70,), generator=torch.Generator().manual_seed(1))
    assert columns.unique().numel() < 70
    check(
        draw([-1.0, 0.5], 0.7),
        form,
        neighbours=graph(150, 900),
        columns=columns,
        scale=150 / 70,
        squared=squared,
    )


def directed(nodes, edges, seed=0):
    pairs = torch.randint(0, nodes, (2, edges), generator=torch.Generator().manual_seed(seed))
    return Neighbours.directed(pairs, nodes)


def biases(nodes, size):
    random = torch.Generator().manual_seed(9)
    return [size * torch.randn(nodes, generator=random) for _ in range(2)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("size", [None, 0.0, 0.5, 10.0])
@pytest.mark.parametrize("columns", [None, torch.tensor([5, 149, 2, 2, 40])])
def test_directed_graphs_and_biases(columns, size, squared, form):
    """Each term of a pair has its own exponent and is left out by itself."""
    inputs = [*draw([-1.0, 0.5], 0.7), *(() if size is None else biases(150, size))]
    check(inputs, form, neighbours=directed(150, 900), columns=columns, squared=squared, scale=1.5)
    if size is not None:
        check(inputs, form, neighbours=graph(150, 300), columns=columns, squared=squared)


@pytest.mark.parametrize("form", FORMS)
def test_a_bias_beyond_the_numbers_is_finite(form):
    inputs = [*draw([-1.0], 0.7), torch.full((150,), 200.0), torch.linspace(-1e3, 1e3, 150)]
    found = results(log_partition, inputs, neighbours=directed(150, 100), form=form)
    assert all(value.isfinite().all() for value in found.values())
    poisoned = results(log_partition, [*inputs[:4], inputs[4] / 0], neighbours=directed(150, 100), form=form)
    assert poisoned["value"].isnan().all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "nodes, edges", [(2, 0), (2, 1), (63, 500), (64, 0), (65, 80), (128, 4000), (200, 200)]
)
@pytest.mark.parametrize("width", [1, 8, 33])
def test_sizes(nodes, edges, width, form):
    seeds = range(20 if nodes == 2 else 1)
    draws = [[t[:nodes] for t in draw([-1.0, 0.3], 0.4, 2 * nodes, width, seed=seed)] for seed in seeds]
    check_draws(draws, form, neighbours=graph(nodes, edges))


@pytest.mark.parametrize("form", FORMS)
def test_many_spaces_of_many_dimensions(form):
    check(draw([(-1.0) ** h * 0.1 * h for h in range(16)], 0.1, 70, 128), form, neighbours=graph(70, 100))


@pytest.mark.parametrize("form", FORMS)
def test_one_node_and_complete_graphs_have_no_non_neighbours(form):
    pair = Neighbours.of(torch.tensor([[0], [1]]), 2)
    for inputs, neighbours in (
        ([t[:1] for t in draw([-1.0], 0.5)[:2]], graph(1, 0)),
        (draw([-1.0], 0.5, 2)[:2], pair),
    ):
        found = results(log_partition, [*inputs, torch.tensor([-1.0])], neighbours=neighbours, form=form)
        assert all((value == 0).all() for value in found.values())


@pytest.mark.parametrize("form", FORMS)
def test_coincident_points_have_no_gradient(form):
    """Two points at distance 0: the plain distance has no derivative there, and 0 is taken."""
    sine, cosine, k = draw([-1.0, 0.7], 0.9, 4)
    sine, cosine = sine[[1, 1]], cosine[[1, 1]]
    for squared in (True, False):
        found = results(log_partition, (sine, cosine, k), neighbours=graph(2, 0), squared=squared, form=form)
        assert found["value"].tolist() == pytest.approx([math.log(2)] * 2)
        assert all(found[name].abs().max() < 1e-14 for name in NAMES[1:4])


@pytest.mark.parametrize("form", FORMS)
def test_antipodes_have_finite_gradients(form):
    """At the cut locus z = 1, and beyond it by rounding."""
    sine = torch.tensor([[[0.0]], [[1.0]], [[1.0000001]], [[-1.0]]]) / math.sqrt(0.5)
    cosine = torch.tensor([[[1.0]], [[0.0]], [[-1e-7]], [[1e-7]]])
    found = results(log_partition, (sine, cosine, torch.tensor([0.5])), neighbours=graph(4, 0), form=form)
    assert all(value.isfinite().all() for value in found.values())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("head", [0, 1])
def test_what_is_not_finite_is_not_hidden(head, bad, form):
    sine, cosine, k = draw([-1.0, 0.5], 0.5)
    sine[7, head, 2] = bad
    value = log_partition(sine, cosine, k, graph(150, 300), form=form)
    assert value.isnan().any()


@pytest.mark.slow
@pytest.mark.skipif(build.find_compiler() is None, reason="no C++ compiler on this machine")
def test_the_compiled_form():
    inputs, neighbours = draw([-4.0, -1e-8, 0.0, 2.0], 0.6, width=2), graph(150, 300)
    check(inputs, "compiled", neighbours=neighbours)
    leaf = inputs[0].requires_grad_()
    value = log_partition(leaf, *inputs[1:], neighbours, form="compiled")
    with pytest.raises(UsageError, match="form='eager'"):
        torch.autograd.grad(value.sum(), leaf, create_graph=True)


def test_derivatives_in_double_precision():
    sine, cosine, k = draw([-1.0, 0.0, 0.7], 0.5, 6, 2, torch.float64)
    k.requires_grad_()
    neighbours = graph(6, 3)
    assert neighbours.degree.sum() > 0
    columns = torch.tensor([5, 0, 2, 2])
    sine, cosine = (t.detach()[[0, 1, 2, 3, 5, 4]].requires_grad_() for t in (sine, cosine))
    with torch.no_grad():
        sine[4] *= 0.8  # apart from its twin: the plain distance has a kink where they meet
    for squared in (True, False):
        for some in (None, columns):
            function = lambda *t, s=squared, c=some: log_partition(*t, neighbours, squared=s, columns=c)  # noqa: E731
            torch.autograd.gradcheck(function, (sine, cosine, k))
            torch.autograd.gradgradcheck(function, (sine, cosine, k))


@needs_compiler
def test_operators_are_sound_for_the_compiler():
    inputs = [t.requires_grad_() for t in draw([-1.0, 0.5], 0.5, 40)]
    neighbours = graph(40, 60)
    lists = 2 * (neighbours.indptr, neighbours.indices)
    for columns in (None, torch.tensor([1, 3, 3, 20])):
        for bias in ((None, None), [t.requires_grad_() for t in biases(40, 1.0)]):
            arguments = (*inputs, *bias, *lists, columns, 1.5, True)
            torch.library.opcheck(torch.ops.gyroformer.log_partition.default, arguments)
            plain = [None if t is None else t.detach() for t in (*inputs, *bias)]
            logs = torch.ops.gyroformer.log_partition(*plain, *lists, columns, 1.5, True)
            arguments = (*plain, *lists, columns, 1.5, True, logs, torch.ones(40))
            torch.library.opcheck(torch.ops.gyroformer.log_partition_backward.default, arguments)


@needs_compiler
def test_second_derivatives_are_refused_by_the_kernel():
    leaves = [t.requires_grad_() for t in draw([-1.0], 0.5)]
    value = log_partition(*leaves, graph(150, 300), form="native")
    (first,) = torch.autograd.grad(value.sum(), leaves[0], create_graph=True)
    with pytest.raises(UsageError, match="form='eager'"):
        first.sum().backward()


@needs_compiler
def test_threads_agree_and_repetitions_are_equal_to_the_bit():
    inputs = draw([-1.0, 0.5], 0.7, 300, 8)
    columns = torch.arange(0, 300, 2)
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 1, 2, 2, 3):
            torch.set_num_threads(count)
            options = {"neighbours": graph(300, 600), "form": "native"}
            found.append([results(log_partition, inputs, columns=c, **options) for c in (None, columns)])
    finally:
        torch.set_num_threads(threads)
    for first, second in ((0, 1), (2, 3)):
        for one, other in zip(found[first], found[second], strict=True):
            assert all(torch.equal(one[name], other[name]) for name in one)
    for many in found[2:]:
        for one, other in zip(found[0], many, strict=True):
            for name in one:
                torch.testing.assert_close(
                    other[name], one[name], rtol=1e-4, atol=1e-6 * one[name].abs().max().item()
                )


@needs_compiler
def test_form_auto_is_the_kernel_where_it_can_be(monkeypatch):
    calls = []
    native = fused_pairs.log_partition
    monkeypatch.setattr(fused_pairs, "log_partition", lambda *a, **kw: calls.append(1) or native(*a, **kw))
    inputs, neighbours = draw([-1.0], 0.5), graph(150, 300)
    log_partition(*inputs, neighbours)
    assert calls == [1]
    log_partition(*(t.double() for t in inputs), neighbours)
    with fused.torch_forms():
        log_partition(*inputs, neighbours)
        with pytest.raises(UsageError, match="form='native' needs float32"):
            log_partition(*inputs, neighbours, form="native")
    assert calls == [1]


MEMORY = """
import resource, torch
from gyroformer.ops.pairs import Neighbours, log_partition
def run(nodes):
    sine = torch.rand(nodes, 1, 2, requires_grad=True)
    cosine = (1 + sine.detach().square().sum(-1, keepdim=True)).sqrt()
    ring = torch.stack((torch.arange(nodes), (torch.arange(nodes) + 1) % nodes))
    log_partition(sine, cosine, torch.tensor([-1.0]), Neighbours.of(ring, nodes), form=FORM).sum().backward()
run(1000)  # whole blocks already
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run(NODES)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize(
    "form, nodes", [pytest.param("native", 10_000, marks=needs_compiler), ("eager", 5_000)]
)
def test_no_matrix_of_all_pairs_is_kept(form, nodes):
    script = MEMORY.replace("FORM", repr(form)).replace("NODES", str(nodes))
    # blocks go back to the system when they are freed: what is counted is what is in use, not how the heap is cut up
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    kilobytes = int(subprocess.check_output([sys.executable, "-c", script], env=environment))
    assert kilobytes < 4 * nodes * nodes / 1024 / 2  # half of one float32 matrix


def test_distances_are_those_of_the_geometry():
    sine, cosine, k = draw([-1.0, 0.0, 0.5], 0.6, dtype=torch.float64)
    points = (sine / cosine).unbind(1)
    rows, columns = torch.tensor([3, 80, 4]), torch.tensor([0, 9, 149, 78])
    want = sum(geometry.dist(x[rows, None], x[columns], k=c).square() for x, c in zip(points, k, strict=True))
    got = squared_dist_rows(sine, cosine, k[:, None], rows, columns)
    torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-12)
    source, target = rows.repeat_interleave(4), columns.repeat(3)
    torch.testing.assert_close(
        pair_squared_dist(sine, cosine, k, source, target), got.flatten(), rtol=1e-12, atol=0
    )
    assert torch.equal(squared_dist_rows(sine, cosine, k, rows)[:, columns], got)
    assert squared_dist_rows(sine, cosine, k, rows[:0]).shape == (0, 150)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"form": "nativ"}, "did you mean 'native'"),
        ({"k": torch.zeros(3)}, r"k must have the shape \(2,\)"),
        ({"cosine": torch.ones(150, 2)}, r"got \(150, 2, 3\) and \(150, 2\)"),
        ({"neighbours": graph(149, 10)}, "150 points, but the graph has 149"),
        ({"columns": torch.tensor([150])}, "nodes from 0 to 149"),
        ({"columns": torch.tensor([], dtype=torch.int64)}, "at least one int64"),
        ({"columns": torch.tensor([1.0])}, "torch.float32"),
        (
            {"bias": (torch.zeros(150), torch.zeros(149))},
            r"an entry for each of the 150 points, got \(149,\)",
        ),
    ],
)
def test_wrong_arguments_are_named(change, words):
    sine, cosine, k = draw([-1.0, 0.5], 0.5)
    arguments = {"sine": sine, "cosine": cosine, "k": k, "neighbours": graph(150, 300)} | change
    with pytest.raises(UsageError, match=words):
        log_partition(**arguments)


def test_compiled_needs_a_compiler(monkeypatch):
    monkeypatch.setattr(build, "find_compiler", lambda: None)
    with pytest.raises(UsageError, match="form='compiled' needs a C\\+\\+ compiler"):
        log_partition(*draw([-1.0], 0.5), graph(150, 300), form="compiled")


def test_points_as_close_as_float32_can_say_are_told_apart():
    """The products of matrices are formed in float64, where they do not cancel."""
    u = torch.tensor([[1.0, 0.7, -0.3]]).repeat(5, 1)
    u[:, 0] += torch.arange(5) * torch.finfo(torch.float32).eps
    for k in (-4.0, 0.0, 1.0):
        sine, cosine = sine_cosine(u[:, None], torch.tensor([[k]]))
        wide = squared_dist_rows(
            sine.double(), cosine.double(), torch.tensor([[k]]).double(), torch.arange(5)
        )
        found = squared_dist_rows(sine, cosine, torch.tensor([[k]]), torch.arange(5))
        torch.testing.assert_close(found.double(), wide, rtol=0.1, atol=1e-18)
        assert (found[0, 1:] > 0).all()
