"""The C++ kernels of the geometry against the torch forms: values, gradients, broadcasting, and when each serves."""

import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gyroformer import geometry as g
from gyroformer.compiled import torch_forms
from gyroformer.geometry import rows, trig
from gyroformer.geometry.kernels import KERNELS
from gyroformer.geometry.row_layout import layout_of
from gyroformer.testing.samples import sample_arguments

pytestmark = pytest.mark.skipif(KERNELS.library() is None, reason="no C++ compiler on this machine")

VECTORS = {
    **dict.fromkeys(("expmap0", "logmap0", "project", "dist0", "lambda_x", "inv_sproj"), 1),
    **dict.fromkeys(("antipode", "sproj", "mobius_scalar_mul"), 1),
    **dict.fromkeys(("expmap", "logmap", "mobius_add", "mobius_coadd", "dist", "norm", "egrad2rgrad"), 2),
    **dict.fromkeys(("parallel_transport0", "parallel_transport0back", "mobius_pointwise_mul"), 2),
    **dict.fromkeys(("geodesic", "geodesic_unit"), 2),
    **dict.fromkeys(("parallel_transport", "gyration", "inner", "dist2plane"), 3),
}
NAMES = sorted(VECTORS)
#: those that take a number for each row first
NUMBERED = {"geodesic", "geodesic_unit", "mobius_scalar_mul"}
#: those whose kernels leave some rows to the torch form
PARTIAL = {"antipode", "sproj"}
RATIOS = ("tan_ratio", "artan_ratio", "arsin_ratio", "sin_ratio", "cos_root")
#: those that do not read how long an argument is: in one dimension its gradient is 0, and a kernel rounds in double
#: what the torch form cancels
OF_DIRECTIONS, ROUNDED_ZERO = {"dist2plane", "geodesic_unit"}, 1e-13
CLOSE = {torch.float32: {"rtol": 3e-7, "atol": 1e-14}, torch.float64: {"rtol": 1e-9, "atol": 1e-13}}


def results(function, inputs, *, cotangent=None):
    """Return the value and the gradients in all inputs."""
    leaves = [t.detach().clone().requires_grad_() for t in inputs]
    value = function(*leaves)
    if cotangent is None:
        cotangent = torch.randn(value.shape, generator=torch.Generator().manual_seed(7), dtype=value.dtype)
    return value, torch.autograd.grad(value, leaves, cotangent)


def by_both(function, inputs):
    value, grads = results(function, inputs)
    with torch_forms():
        expected, expected_grads = results(function, inputs)
    return (value, *grads), (expected, *expected_grads)


def with_k(name):
    return lambda *args: getattr(g, name)(*args[:-1], k=args[-1])


def close(found, expected, dtype, zero=0.0):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        scale = float(other.detach().abs().max())
        tolerance = CLOSE[dtype]
        torch.testing.assert_close(
            one, other, rtol=tolerance["rtol"], atol=max(tolerance["atol"], tolerance["rtol"] * scale, zero)
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("width", [1, 3, 8, 19])
@pytest.mark.parametrize("name", NAMES)
def test_values_and_gradients_are_those_of_the_torch_form(name, width, dtype, generator):
    for k in (-1.7, -1e-8, 0.0, 1e-8, 0.9):
        points = sample_arguments(name, k=k, generator=generator, dtype=dtype, count=21, size=width)
        found, expected = by_both(with_k(name), [*points, torch.tensor(k, dtype=dtype)])
        served = any(one in found[0].grad_fn.name() for one in ("Rows", "Negated"))
        assert served or (dtype == torch.float64 and name in ("parallel_transport", "gyration"))
        close(found, expected, dtype, ROUNDED_ZERO if width == 1 and name in OF_DIRECTIONS else 0.0)


SHAPES = {  # of the first and the other vectors without coordinates, and of k
    "one k": ((30,), (30,), ()),
    "a k for each row": ((30,), (30,), (30, 1)),
    "a k for each head": ((10, 3), (10, 3), (3, 1)),
    "a k for each graph": ((4, 7), (4, 7), (4, 1, 1)),
    "one second point": ((10, 3), (), (3, 1)),
    "one first point": ((), (30,), (1,)),
    "all pairs": ((5, 1), (7,), ()),
    "heads with a bias each": ((10, 3), (3,), (3, 1)),
    "more curvatures than points": ((3,), (3,), (5, 1, 1)),
}


@pytest.mark.parametrize("case", SHAPES)
@pytest.mark.parametrize("name", ["dist0", "mobius_add", "dist", "parallel_transport"])
def test_shapes_that_broadcast(name, case, generator):
    first, others, curvatures = SHAPES[case]
    k = torch.linspace(-1.3, 0.9, math.prod(curvatures)).reshape(curvatures)
    draw = [first, *[others] * (VECTORS[name] - 1)]
    points = [0.4 * torch.randn(*shape, 6, generator=generator) / 6**0.5 for shape in draw]
    found, expected = by_both(with_k(name), [*points, k])
    assert layout_of(tuple(p.shape for p in points), torch.Size(), k.shape, -1, 1) is not None
    close(found, expected, torch.float32)


NUMBERS = {  # shapes of the number, of the points without coordinates, and of k
    "one number": ((), (30,), ()),
    "a number for each row": ((30, 1), (30,), (30, 1)),
    "a number for each head": ((3, 1), (10, 3), ()),
    "steps between two points": ((30, 1), (), ()),
    "a row of numbers for each point": ((7, 1, 1), (5,), (5, 1)),
}


@pytest.mark.parametrize("case", NUMBERS)
@pytest.mark.parametrize("name", sorted(NUMBERED))
def test_numbers_that_broadcast(name, case, generator):
    number, heads, curvatures = NUMBERS[case]
    k = torch.linspace(-1.3, 0.9, math.prod(curvatures)).reshape(curvatures)
    t = torch.rand(number, generator=generator)
    points = [0.4 * torch.randn(*heads, 6, generator=generator) / 6**0.5 for _ in range(VECTORS[name])]
    found, expected = by_both(with_k(name), [t, *points, k])
    assert "Rows" in found[0].grad_fn.name()
    close(found, expected, torch.float32)
    with torch_forms():
        plain = getattr(g, name)(0.3, *points, k=k)
    torch.testing.assert_close(getattr(g, name)(0.3, *points, k=k), plain)


def test_numbers_that_are_coordinates_are_the_torch_forms(generator):
    t, x = torch.rand(6, generator=generator), torch.randn(30, 6, generator=generator) / 9
    assert "Rows" not in g.mobius_scalar_mul(t, x.requires_grad_(), k=-1.0).grad_fn.name()


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_kinds_of_distances_to_planes(signed, scaled, generator):
    points = sample_arguments("dist2plane", k=0.9, generator=generator, dtype=torch.float32, count=21, size=5)

    def distance(x, p, a, k):
        return g.dist2plane(x, p, a, k=k, signed=signed, scaled=scaled)

    close(*by_both(distance, [*points, torch.tensor(0.9)]), torch.float32)


def test_poles_are_the_torch_forms():
    """The kernels say that they do not know these rows."""
    x, k = torch.tensor([[0.3, 0.4], [0.0, 0.0]]), torch.tensor(0.25)
    close(*by_both(with_k("antipode"), [x, k]), torch.float32)
    assert float(g.antipode(x, k=k)[1, 0]) > 1e15
    ambient = torch.tensor([[0.3, 0.4, 1.0], [0.0, 0.0, -2.0]])
    close(*by_both(with_k("sproj"), [ambient, k]), torch.float32)
    assert float(g.sproj(ambient, k=k)[1, 0]) > 1e15


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("sizes", [(1, 1), (8, 8), (3, 19), (20, 5)], ids=str)
def test_matrices_are_those_of_the_torch_form(sizes, dtype, generator):
    m = torch.randn(*sizes, generator=generator, dtype=dtype) / sizes[1] ** 0.5
    for shape in ((), (131, 1)):
        k = torch.linspace(-1.3, 0.9, math.prod(shape), dtype=dtype).reshape(shape)
        x = torch.randn(131, sizes[1], generator=generator, dtype=dtype) / (3 * sizes[1] ** 0.5)
        found, expected = by_both(with_k("mobius_matvec"), [m, x, k])
        assert "MatVec" in found[0].grad_fn.name()
        close(found, expected, dtype)
    large = [1e38 * m.float().sign(), 1e38 * x.float().sign(), torch.tensor(-1e38)]
    for one, other in zip(*by_both(with_k("mobius_matvec"), large), strict=True):
        assert torch.equal(one.isnan(), other.isnan())  # left to the torch form
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        x = torch.randn(40_000, sizes[1], generator=generator, dtype=dtype) / (3 * sizes[1] ** 0.5)
        close(*by_both(with_k("mobius_matvec"), [m, x, torch.tensor(-0.7, dtype=dtype)]), dtype)
    finally:
        torch.set_num_threads(threads)


def test_a_shape_that_is_no_outer_times_inner_is_the_torch_forms(generator):
    x, y = torch.randn(2, 1, 3, 1, 4), torch.randn(1, 5, 1, 6, 4)
    assert layout_of((x.shape, y.shape), torch.Size(), torch.Size(), -1, 1) is None
    with torch_forms():
        expected = g.dist(x, y, k=0.5)
    assert torch.equal(g.dist(x, y, k=0.5), expected)


@pytest.mark.parametrize("name", NAMES)
def test_memory_that_is_not_contiguous(name, generator):
    points = sample_arguments(name, k=-0.5, generator=generator, dtype=torch.float32, count=12, size=8)
    wide = [torch.stack((p, p), -1)[..., 0] for p in points]
    turned = [p.mT.contiguous().mT for p in points]
    k = torch.tensor(-0.5)
    want = with_k(name)(*points, k)
    assert torch.equal(with_k(name)(*wide, k), want)
    assert torch.equal(with_k(name)(*turned, k), want)


def test_sums_over_threads_are_the_same_sums(generator):
    x, y = torch.randn(20_000, 4, generator=generator) / 5, torch.randn(4, generator=generator) / 5
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(results(with_k("mobius_add"), [x, y, torch.tensor(-0.8)])[1])
    finally:
        torch.set_num_threads(before)
    close(found[1], found[0], torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", RATIOS)
def test_ratios_are_those_of_the_torch_form(name, dtype):
    z = torch.cat((torch.linspace(-0.99, 0.99, 333), torch.linspace(-30, -1, 50), torch.linspace(1, 2, 50)))
    z = z[z < 1] if name == "arsin_ratio" else z
    function = getattr(trig, name)
    with torch_forms():
        expected = [
            t.to(dtype) for t in flat(results(function, [z.double()], cotangent=torch.ones_like(z).double()))
        ]
    found = flat(results(function, [z.to(dtype)], cotangent=torch.ones_like(z, dtype=dtype)))
    z = z.to(dtype)
    for one, other in zip(found, expected, strict=True):
        eps = torch.finfo(dtype).eps
        torch.testing.assert_close(
            one, other, rtol=1e3 * eps if dtype == torch.float64 else 4 * eps, atol=1e-14
        )


def flat(value_and_grads):
    return [value_and_grads[0].detach(), *value_and_grads[1]]


FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40, deadline=None)
@given(numbers=st.lists(FINITE, min_size=6, max_size=6), k=FINITE)
@example(numbers=[3.4028234663852886e38, 0.0, 0.0, 0.0, 7410124792528896.0, 0.0], k=-392098840576.0)
def test_no_finite_input_gives_a_nan_that_the_torch_form_does_not(name, numbers, k):
    vectors = torch.tensor(numbers).view(3, 1, 2)[: VECTORS[name]]
    inputs = [*([vectors[0, :, :1]] if name in NUMBERED else []), *vectors, torch.tensor(k)]
    value, grads = results(with_k(name), inputs)
    with torch_forms():
        expected, expected_grads = results(with_k(name), inputs)
    for one, other in zip((value, *grads), (expected, *expected_grads), strict=True):
        assert not (one.isnan() & ~other.isnan()).any()


def test_where_the_torch_form_serves(monkeypatch):
    x, k = torch.randn(5, 4, requires_grad=True), torch.tensor(-0.1, requires_grad=True)
    calls = []
    plain = rows._forward
    monkeypatch.setattr(rows, "_forward", lambda *args: calls.append(1) or plain(*args))

    def served(run):
        calls.clear()
        run()
        return not calls

    assert not served(lambda: g.expmap0(x, k=k))
    assert not served(lambda: g.expmap0(x, k=-0.1))
    assert served(lambda: g.expmap0(x, k=k, dim=0))
    assert served(lambda: g.expmap0(x.half(), k=k))
    assert served(lambda: g.expmap0(x[:0], k=k))
    assert served(lambda: torch.func.vmap(lambda row: g.expmap0(row, k=-0.1))(x))
    assert served(lambda: torch.func.jvp(lambda t: g.expmap0(t, k=-0.1), (x.detach(),), (x.detach(),)))
    with torch_forms():
        assert served(lambda: g.expmap0(x, k=k))
    monkeypatch.setattr(rows.KERNELS, "library", lambda: None)
    absent = rows.Declared(1)
    assert absent.kernels is None  # as on a machine without a compiler
    assert rows._by_kernel(absent, (x,), {"k": k}) is None


def test_a_second_derivative_comes_from_the_torch_form():
    x = torch.tensor([[0.3, -0.2]], dtype=torch.float64, requires_grad=True)
    k = torch.tensor(-0.7, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(g.dist0(x, k=k).sum(), k, create_graph=True)
    found = torch.autograd.grad(slope, (x, k))
    with torch_forms():
        (slope,) = torch.autograd.grad(g.dist0(x, k=k).sum(), k, create_graph=True)
        expected = torch.autograd.grad(slope, (x, k))
    torch.testing.assert_close(found, expected)


ONE_VECTOR = [name for name in NAMES if VECTORS[name] == 1 and name not in NUMBERED | PARTIAL]


def operators(function, *inputs):
    """Return the operators of the graph that ``torch.compile`` takes of a function."""
    found = []

    def backend(graph, example):
        found.extend(str(node.target) for node in graph.graph.nodes)
        return graph

    torch._dynamo.reset()
    torch.compile(function, fullgraph=True, backend=backend)(*inputs)
    return found


@pytest.mark.parametrize("name", ONE_VECTOR)
def test_compiled_a_function_of_one_vector_is_its_kernel(name, generator):
    for k in (torch.tensor(-0.7), torch.tensor([[-0.7], [0.4]])):
        (points,) = sample_arguments(name, k=-0.7, generator=generator, dtype=torch.float32, count=14, size=3)
        inputs = [points.view(7, 2, 3), k]
        assert any("gyroformer.row" in one for one in operators(with_k(name), *inputs))
        torch._dynamo.reset()
        compiled = torch.compile(with_k(name), fullgraph=True, backend="aot_eager")
        (value, grads), (expected, expected_grads) = results(compiled, inputs), results(with_k(name), inputs)
        torch.testing.assert_close((value, *grads), (expected, *expected_grads), rtol=0, atol=0)
    leaves = [t.detach().requires_grad_() for t in inputs]
    option = 0.996 if name == "project" else 0.0
    torch.library.opcheck(torch.ops.gyroformer.row.default, (*leaves, f"gyroformer_{name}", option))


def test_where_the_torch_form_is_compiled():
    x, k = torch.randn(5, 4), torch.tensor(-0.1)

    def by_operator(function, *inputs):
        return any("gyroformer" in one for one in operators(function, *inputs))

    assert by_operator(lambda t: g.expmap0(t, k=-0.1), x)
    assert not by_operator(with_k("expmap0"), x.double(), k.double())
    assert not by_operator(with_k("expmap0"), x.half(), k.half())
    assert not by_operator(with_k("expmap0"), x, torch.full((3, 1, 1), -0.1))
    assert not by_operator(lambda t: g.expmap0(t, k=-0.1, dim=0), x)
    assert not by_operator(torch.func.vmap(lambda row: g.expmap0(row, k=-0.1)), x)
    with torch_forms():
        assert not by_operator(with_k("expmap0"), x, k)


HUGE = [0.0, 1e-45, 1e-30, 1.0, -1e19, 1e30, -3.4e38]


@pytest.mark.parametrize("name", ONE_VECTOR)
def test_no_vector_leads_a_compiled_function_to_nan(name):
    """The torch form gives numbers here, and a compiled graph has no way back to it."""
    vectors = torch.cartesian_prod(torch.tensor(HUGE), torch.tensor(HUGE))
    option = 0.996 if name == "project" else 0.0
    for k in [*HUGE, 3.4e38, -1.0]:
        curvature = torch.tensor(k)
        value = rows._row(vectors, curvature, f"gyroformer_{name}", option)
        found = rows._row_backward(vectors, curvature, torch.ones_like(value), f"gyroformer_{name}", option)
        with torch_forms():
            wanted = results(with_k(name), [vectors, curvature], cotangent=torch.ones_like(value))
        for one, other in zip((value, *found), (wanted[0], *wanted[1]), strict=True):
            assert not (one.isnan() & ~other.isnan()).any()
