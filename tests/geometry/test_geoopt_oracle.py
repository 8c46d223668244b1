"""geoopt as a second oracle, away from its faults (float64, ordinary radius, k far from 0)."""

import inspect
import warnings

import pytest
import torch

from gyroformer import geometry as g
from gyroformer.testing.samples import OPERATIONS, operation, sample_arguments

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import geoopt.manifolds.stereographic.math as oracle

SHARED = sorted(set(OPERATIONS) - {"pairwise_dist"})


@pytest.mark.parametrize("k", [-2.3, -1.0, -0.3, 0.4, 1.0, 1.7])
@pytest.mark.parametrize("name", SHARED)
def test_same_values(name, k, generator):
    args = sample_arguments(name, k=k, generator=generator, dtype=torch.float64)
    curvature = torch.tensor(k, dtype=torch.float64)
    keep = {"keepdim": True} if name == "inner" else {}  # its inner without keepdim is an outer product
    theirs = getattr(oracle, name)
    want = theirs(*args, curvature) if name.endswith("_k") else theirs(*args, k=curvature, **keep)
    got = operation(name)(*args, k=curvature, **keep)
    torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", [n for n in SHARED if not n.endswith("_k")])
def test_same_arguments(name):
    ours, theirs = (inspect.signature(getattr(m, name)).parameters for m in (g, oracle))
    assert list(ours) == list(theirs)
    assert [p.kind for p in ours.values()] == [p.kind for p in theirs.values()]


@pytest.mark.parametrize("flags", [{"lincomb": True}, {"posweight": True}, {"keepdim": True}, {}])
@pytest.mark.parametrize("k", [-1.3, 0.8])
def test_midpoint_options(flags, k, generator):
    if "posweight" in flags and k > 0:
        return  # its choice between a point and the antipode ignores the weights; see test_laws
    (xs,) = sample_arguments("weighted_midpoint", k=k, generator=generator, dtype=torch.float64, count=6)
    weights = torch.linspace(-0.2 if "posweight" in flags else 0.1, 1, 6, dtype=torch.float64)
    curvature = torch.tensor(k, dtype=torch.float64)
    want = oracle.weighted_midpoint(xs, weights, k=curvature, **flags)
    torch.testing.assert_close(
        g.weighted_midpoint(xs, weights, k=curvature, **flags), want, rtol=1e-9, atol=1e-10
    )


@pytest.mark.parametrize("flags", [{"signed": True}, {"scaled": True}, {"signed": True, "keepdim": True}])
@pytest.mark.parametrize("k", [-1.3, 0.8])
def test_plane_options(flags, k, generator):
    args = sample_arguments("dist2plane", k=k, generator=generator, dtype=torch.float64)
    curvature = torch.tensor(k, dtype=torch.float64)
    want = oracle.dist2plane(*args, k=curvature, **flags)
    torch.testing.assert_close(g.dist2plane(*args, k=curvature, **flags), want, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("k", [-1.3, 0.8])
def test_functions_of_functions(k, generator):
    (x,) = sample_arguments("logmap0", k=k, generator=generator, dtype=torch.float64)
    curvature = torch.tensor(k, dtype=torch.float64)
    for ours, theirs in [
        (g.mobius_fn_apply(torch.tanh, x, k=curvature), oracle.mobius_fn_apply(torch.tanh, x, k=curvature)),
        (
            g.mobius_fn_apply_chain(x, torch.tanh, torch.sin, k=curvature),
            oracle.mobius_fn_apply_chain(x, torch.tanh, torch.sin, k=curvature),
        ),
        (
            g.mobiusify(torch.clamp)(x, max=0.1, k=curvature),
            oracle.mobiusify(torch.clamp)(x, max=0.1, k=curvature),
        ),
    ]:
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)
    assert torch.equal(g.mobius_fn_apply_chain(x, k=curvature), x)
