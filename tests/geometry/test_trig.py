"""The ratio functions against 60 digits, on both sides of every seam, value and two derivatives."""

import mpmath as mp
import pytest
import torch

from gyroformer.geometry import arsin_k, artan_k, sin_k, tan_k, trig

SEAMS = [trig.CIRCULAR_RADIUS, trig.ARCTANGENT_RADIUS, trig.ARCSINE_RADIUS]
AROUND = [sign * seam * (1 + step) for seam in SEAMS for sign in (1, -1) for step in (-1e-4, 0, 1e-4)]
SMALL = [0.0, 1e-30, -1e-30, 1e-9, -1e-9, 1e-3, -1e-3, 0.1, -0.1]
LARGE_NEGATIVE = [-1.5, -4.0, -20.0, -300.0]


def root_ratio(f):
    return lambda z: f(mp.sqrt(z)) / mp.sqrt(z) if z else mp.mpf(1)


CASES = {
    "tan_ratio": (root_ratio(mp.tan), [*SMALL, *AROUND, *LARGE_NEGATIVE, 1.7, 2.2, 3.0, 9.0]),
    "artan_ratio": (
        root_ratio(mp.atan),
        [*SMALL, *(z for z in AROUND if z > -1), 4.0, 1e3, 1e8, -0.99, -0.999999],
    ),
    "sin_ratio": (root_ratio(mp.sin), [*SMALL, *AROUND, *LARGE_NEGATIVE, 4.0, 30.0]),
    "cos_root": (lambda z: mp.cos(mp.sqrt(z)), [*SMALL, *AROUND, *LARGE_NEGATIVE, 4.0, 30.0]),
    "arsin_ratio": (
        root_ratio(mp.asin),
        [*SMALL, *(z for z in AROUND if z < 1), *LARGE_NEGATIVE, 0.99, -1e10],
    ),
    "sech_squared_root": (
        lambda z: 1 / mp.cosh(mp.sqrt(-z)) ** 2,
        [z for z in [*SMALL, *AROUND, *LARGE_NEGATIVE] if z <= 0],
    ),
}
# units in the last place, for the value and its first two derivatives; second derivatives lose 1/z² at a seam
ULPS = (32, 300, 5000)


def derivatives(f, z):
    # mpmath loses half its digits in the complex asin of small numbers
    with mp.workdps(150):
        z = mp.mpc(z)
        h = mp.mpf(10) ** -15 * max(abs(z), mp.mpf(10) ** -3)
        low, here, high = f(z - h), f(z), f(z + h)
        return [mp.re(here), mp.re((high - low) / (2 * h)), mp.re((high - 2 * here + low) / h**2)]


@pytest.mark.parametrize("name", CASES)
def test_values_and_two_derivatives_match_60_digits(name, dtype):
    truth, points = CASES[name]
    for point in points:
        z = torch.tensor(point, dtype=dtype, requires_grad=True)
        value = getattr(trig, name)(z)
        (slope,) = torch.autograd.grad(value, z, create_graph=True)
        (bend,) = torch.autograd.grad(slope, z)
        for got, want, ulps in zip((value, slope, bend), derivatives(truth, z.item()), ULPS, strict=True):
            error = abs(got.item() - want) / abs(want)
            assert error <= ulps * torch.finfo(dtype).eps, (
                f"{name}({point}): {float(error):.1e}, {got.item()}"
            )


@pytest.mark.parametrize("name", CASES)
def test_no_finite_argument_gives_nan_in_value_or_slope(name, dtype):
    top = torch.finfo(dtype).max
    inside = [-top, -1e30, -1.0, -0.0, 0.0, 1.0, 1e30, top]
    grows = name in ("sin_ratio", "cos_root")  # the true value leaves the format below about -7e5
    z = torch.tensor([x for x in inside if not (grows and x < -1)], dtype=dtype, requires_grad=True)
    value = getattr(trig, name)(z)
    (slope,) = torch.autograd.grad(value.sum(), z)
    assert torch.isfinite(value).all()
    assert torch.isfinite(slope).all()


@pytest.mark.parametrize("name", CASES)
def test_nan_stays_nan(name):
    assert getattr(trig, name)(torch.tensor([float("nan"), 0.5]))[0].isnan()


@pytest.mark.parametrize("forward, back", [(tan_k, artan_k), (sin_k, arsin_k)])
@pytest.mark.parametrize("k", [-2.3, -1e-8, 0.0, 1e-8, 0.7])
def test_functions_and_inverses(forward, back, k, dtype):
    x = torch.linspace(-1.2, 1.2, 25, dtype=dtype)
    curvature = torch.tensor(k, dtype=dtype)
    torch.testing.assert_close(back(forward(x, curvature), curvature), x)


def test_outside_their_domain_the_inverses_stop_at_its_end():
    assert arsin_k(torch.tensor([3.0, -3.0]), torch.tensor(1.0)).tolist() == pytest.approx(
        [mp.pi / 2, -mp.pi / 2]
    )
    beyond = artan_k(torch.tensor([1.0, 1.5], dtype=torch.float64), torch.tensor(-1.0))
    assert torch.isfinite(beyond).all()
    assert (beyond > 17).all()
