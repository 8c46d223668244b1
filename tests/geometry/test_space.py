import pytest
import torch

from gyroformer import geometry as g
from gyroformer.errors import UsageError
from gyroformer.testing import random_points

NAN = float("nan")


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda s: s.logmap0(torch.tensor([[0.1, 0.0], [1.0, 0.1]])),
            r"y lies outside the ball.*first at \[1\]",
        ),
        (lambda s: s.dist(torch.zeros(2), torch.tensor([0.0, 1.0])), "y lies outside the ball"),
        (lambda s: s.expmap0(torch.tensor([[0.1, NAN]])), r"u has 1 values that are not finite.*\[0, 1\]"),
        (lambda s: s.expmap0(torch.tensor([1, 2])), "u must be floating point, got torch.int64"),
        (lambda s: s.expmap0(torch.tensor(1.0)), "at least one dimension"),
        (lambda s: s.expmap0([0.1, 0.2]), "must be a torch tensor, got list"),
    ],
)
def test_wrong_input_is_named(call, message):
    with pytest.raises(UsageError, match=message):
        call(g.Stereographic(-1.0))


@pytest.mark.parametrize("k", [NAN, float("inf")])
def test_a_curvature_must_be_finite(k):
    with pytest.raises(UsageError, match="must be finite"):
        g.Stereographic(k)


def test_shapes_that_do_not_fit():
    with pytest.raises(UsageError, match=r"shape \(5, 2, 4\) does not fit the curvature of shape \(3, 1\)"):
        g.ProductSpace([-1.0, 0.0, 1.0]).expmap0(torch.zeros(5, 2, 4))
    with pytest.raises(UsageError, match="10 coordinates do not divide into 3 factors"):
        g.ProductSpace([-1.0, 0.0, 1.0]).split(torch.zeros(5, 10))
    with pytest.raises(UsageError, match="list of curvatures"):
        g.ProductSpace(torch.tensor(1.0))
    with pytest.raises(UsageError, match="pairwise_dist takes one curvature"):
        g.pairwise_dist(torch.zeros(4, 3), torch.zeros(4, 3), k=torch.zeros(4, 1, 1))


def test_methods_are_the_functions(generator):
    space = g.Stereographic(torch.tensor(-0.7, dtype=torch.float64))
    x, y, u = (random_points(4, 3, k=-0.7, generator=generator) for _ in range(3))
    assert torch.equal(space.dist(x, y), g.dist(x, y, k=space.k))
    assert torch.equal(space.expmap(x, u), g.expmap(x, u, k=space.k))
    assert torch.equal(space.logmap(x, y), g.logmap(x, y, k=space.k))
    assert torch.equal(space.mobius_add(x, y), g.mobius_add(x, y, k=space.k))
    assert torch.equal(space.midpoint(x), g.weighted_midpoint(x, k=space.k))
    assert torch.equal(space.pairwise_dist(x, y), g.pairwise_dist(x, y, k=space.k))
    assert torch.equal(space.parallel_transport(x, y, u), g.parallel_transport(x, y, u, k=space.k))
    assert torch.equal(
        space.geodesic(torch.tensor(0.3), x, y), g.geodesic(torch.tensor(0.3), x, y, k=space.k)
    )
    assert torch.equal(space.project(9 * x), g.project(9 * x, k=space.k))
    assert torch.equal(space.logmap0(space.expmap0(u)), g.logmap0(g.expmap0(u, k=space.k), k=space.k))


def test_product_combines_its_factors(generator):
    curvatures = torch.tensor([-1.2, 0.0, 0.9], dtype=torch.float64)
    space = g.ProductSpace(curvatures)
    x, y = (
        torch.stack([random_points(5, 2, k=k, generator=generator) for k in curvatures.tolist()], 1)
        for _ in "xy"
    )
    factors = torch.stack([g.dist(x[:, h], y[:, h], k=k) for h, k in enumerate(curvatures)])
    torch.testing.assert_close(space.dist(x, y), factors.square().sum(0).sqrt())
    torch.testing.assert_close(space.pairwise_dist(x, y).diagonal(), space.dist(x, y))
    torch.testing.assert_close(space.dist0(x), space.dist(x, torch.zeros_like(x)))
    torch.testing.assert_close(space.norm(x, space.logmap(x, y)), space.dist(x, y))
    torch.testing.assert_close(space.inner(x, y, y), space.norm(x, y).square())
    assert torch.equal(
        space.join(space.split(torch.arange(12.0).reshape(2, 6))), torch.arange(12.0).reshape(2, 6)
    )
    assert space.midpoint(x).shape == (3, 2)
    assert "0.9" in repr(space)


def test_one_factor_is_the_plain_space(generator):
    x, y = (random_points(5, 3, k=-0.4, generator=generator) for _ in "xy")
    product = g.ProductSpace(torch.tensor([-0.4], dtype=torch.float64))
    torch.testing.assert_close(product.dist(x[:, None], y[:, None]), g.dist(x, y, k=-0.4))


def test_pairwise_distances_in_batches(generator):
    x = random_points(2, 5, 3, k=0.5, generator=generator)
    y = random_points(2, 4, 3, k=0.5, generator=generator)
    want = g.dist(x[:, :, None], y[:, None], k=0.5)
    torch.testing.assert_close(g.pairwise_dist(x, y, k=0.5), want)
    torch.testing.assert_close(g.pairwise_dist(x, y, k=0.5, squared=True), want.square())
    assert torch.equal(g.pairwise_dist(x, x, k=0.5).diagonal(dim1=-2, dim2=-1), torch.zeros(2, 5).double())


def test_checks_can_be_left_out_and_do_not_stop_the_compiler(generator):
    assert torch.isfinite(g.Stereographic(-1.0, check=False).logmap0(torch.tensor([2.0]))).all()
    space = g.Stereographic(-1.0)
    compiled = torch.compile(space.expmap0, fullgraph=True, backend="aot_eager")
    u = torch.rand(3, 2, generator=generator)
    torch.testing.assert_close(compiled(u), space.expmap0(u))
