"""The pseudo-hyperboloid against 60 digits of its definitions, case by case, and the laws it must obey."""

import math

import mpmath as mp
import pytest
import torch
from hyperbolic_oracle import hyperbolic_dist
from hypothesis import given, settings
from hypothesis import strategies as st

from gyroformer.geometry import hyperboloid as hyp
from gyroformer.geometry import pseudo_hyperboloid as pseudo
from gyroformer.testing import assert_matches_reference

BETAS = [-10.0, -2.3, -1.0, -1e-3, -1e-6, -1e-8]
RTOL = {torch.float32: 1.2e-7, torch.float64: 1e-10}
TIME, SPACE = 3, 2


# -- the definitions, in ambient coordinates --------------------------------------------------------------


def euclid(a, b):
    return mp.fsum(p * q for p, q in zip(a, b, strict=True))


def direction(t):
    return [p / mp.sqrt(euclid(t, t)) for p in t]


def on(theta, s, beta):
    return [p * mp.sqrt(euclid(s, s) - beta) for p in theta] + list(s)


def projected(x, beta):
    return on(direction(x[:TIME]), x[TIME:], beta)


def quotient(x, y, beta):
    x, y = projected(x, beta), projected(y, beta)
    return (euclid(x[TIME:], y[TIME:]) - euclid(x[:TIME], y[:TIME])) / beta


def distance(x, y, beta):
    with mp.workdps(130):
        q, radius = quotient(x, y, beta), mp.sqrt(-beta)
        if q >= 1:
            return radius * mp.acosh(q)
        return radius * (mp.acos(q) if q >= -1 else mp.pi + mp.acosh(-q))


def exp0(u, beta):
    radius, turn = mp.sqrt(-beta), u[: TIME - 1]
    angle = mp.sqrt(euclid(turn, turn)) / radius
    theta = [mp.cos(angle), *[mp.sin(angle) / angle * p / radius for p in turn]]
    return on(theta, u[TIME - 1 :], beta)


def log0(x, beta):
    theta, radius = direction(x[:TIME]), mp.sqrt(-beta)
    sine = mp.sqrt(euclid(theta[1:], theta[1:]))
    return [radius * mp.atan2(sine, theta[0]) / sine * p for p in theta[1:]] + x[TIME:]


def moved(x, u, beta):
    """Rotate in the plane of pole and θ, which carries the pole to θ; then walk the image of the vector."""
    theta, radius = direction(x[:TIME]), mp.sqrt(-beta)
    a = [p / radius for p in u[: TIME - 1]]
    sine = mp.sqrt(euclid(theta[1:], theta[1:]))
    axis = [p / sine for p in theta[1:]]
    along = euclid(a, axis)
    v = [-along * sine, *[p + along * (theta[0] - 1) * q for p, q in zip(a, axis, strict=True)]]
    size = mp.sqrt(euclid(a, a))
    new = [mp.cos(size) * p + mp.sin(size) / size * q for p, q in zip(theta, v, strict=True)]
    return on(new, [p + q for p, q in zip(x[TIME:], u[TIME - 1 :], strict=True)], beta)


DEFINITIONS = {
    "to_sphere_product": lambda x, beta: [mp.sqrt(-beta) * p for p in direction(x[:TIME])] + x[TIME:],
    "expmap0": exp0,
    "logmap0": log0,
    "translate": moved,
    "squared_dist": lambda x, y, beta: [distance(x, y, beta) ** 2],
}


def run(name):
    """Return the function as the definitions take its arguments, with β in the place of k."""
    function = getattr(pseudo, name)
    if name == "to_sphere_product":
        return lambda x, k: torch.cat(function(x, beta=k, time=TIME), dim=-1)
    return lambda *args, k: function(*args, beta=k, time=TIME)


def unit(size, generator):
    v = torch.randn(size, generator=generator, dtype=torch.float64)
    return v / v.norm()


def build(theta, s, beta):
    """Return the point with the direction theta and the space part s."""
    length = (s.square().sum(-1, keepdim=True) - beta).sqrt()
    return torch.cat((theta * (length / theta.norm(dim=-1, keepdim=True)), s), dim=-1)


def inner(x, y):
    return (x[..., TIME:] * y[..., TIME:]).sum(-1) - (x[..., :TIME] * y[..., :TIME]).sum(-1)


def dist(x, y, *, beta, time=TIME):
    return pseudo.squared_dist(x, y, beta=beta, time=time).sqrt()


SPACE_SIZE = {"tiny": 1e-5, "ordinary": 0.7, "large": 200.0}


def point(regime, beta, generator):
    size = SPACE_SIZE[regime] * (1 if regime == "tiny" else math.sqrt(-beta))
    share = 0.5 + torch.rand((), generator=generator, dtype=torch.float64)
    return build(unit(TIME, generator), unit(SPACE, generator) * size * share, beta)


def arguments(name, regime, beta, generator):
    x, y = point(regime, beta, generator), point(regime, beta, generator)
    u = torch.randn(TIME - 1 + SPACE, generator=generator, dtype=torch.float64)
    u *= SPACE_SIZE[regime] * (0.01 if regime == "large" else 1) * min(1, math.sqrt(-beta))
    if name == "expmap0":
        return [u]
    if name == "translate":
        return [x, u]
    return [x, y] if name == "squared_dist" else [x]


@pytest.mark.parametrize("regime", list(SPACE_SIZE))
@pytest.mark.parametrize("name", list(DEFINITIONS))
def test_values_and_gradients_match_60_digits(name, regime, dtype):
    generator = torch.Generator().manual_seed(sum(map(ord, name + regime)))
    for beta in BETAS:
        exact = torch.tensor(beta, dtype=torch.float32).item()
        single = [a.float().to(dtype) for a in arguments(name, regime, exact, generator)]
        check(name, single, exact, RTOL[dtype])


def check(name, single, beta, rtol):
    assert_matches_reference(
        name, single, k=beta, rtol=rtol, function=run(name), definition=DEFINITIONS[name]
    )


def pair(case, beta, generator):
    """Return two points whose quotient q falls in the case."""
    theta, s = unit(TIME, generator), 0.7 * unit(SPACE, generator)
    turned = unit(TIME, generator)
    turned = turned - theta * (theta @ turned)
    turned = turned / turned.norm()

    def at(angle):
        return theta * math.cos(angle) + turned * math.sin(angle)

    other, angle = {
        "space-like": (-s, 0.1),
        "time-like": (s + 0.1, 1.0),
        "time-like, past a quarter turn": (s, 1.7),
        "broken": (s, 3.1),
        "close and space-like": (s * 1.0003, 1e-5),
        "close and time-like": (s * 1.00001, 3e-4),
        "close to the antipode, time-like": (-s, math.pi - 3e-4),
        "close to the antipode, broken": (-s * 1.0003, math.pi - 1e-5),
    }[case]
    radius = math.sqrt(-beta)
    return build(theta, s * radius, beta), build(at(angle), other * radius, beta)


BRANCH = {
    "space-like": lambda q: q > 1,
    "time-like": lambda q: 0 < q < 1,
    "time-like, past a quarter turn": lambda q: -1 < q < 0,
    "broken": lambda q: q < -1,
    "close and space-like": lambda q: 1 < q < 1.00001,
    "close and time-like": lambda q: 0.99999 < q < 1,
    "close to the antipode, time-like": lambda q: -1 < q < -0.99999,
    "close to the antipode, broken": lambda q: -1.00001 < q < -1,
}


@pytest.mark.parametrize("case", list(BRANCH))
def test_each_case_of_the_distance_matches_60_digits(case, dtype):
    generator = torch.Generator().manual_seed(sum(map(ord, "squared_dist" + case)))
    for beta in BETAS:
        exact = torch.tensor(beta, dtype=torch.float32).item()
        single = [a.float().to(dtype) for a in pair(case, exact, generator)]
        x, y = ([mp.mpf(v) for v in a.tolist()] for a in single)
        assert BRANCH[case](quotient(x, y, mp.mpf(exact))), f"the pair is not {case}"
        check("squared_dist", single, exact, RTOL[dtype])


# -- geodesics, followed from their own equation ----------------------------------------------------------


@pytest.mark.parametrize("kind", ["space-like", "time-like", "null"])
def test_the_distance_is_the_length_of_the_geodesic_that_was_walked(kind):
    """γ(r) = C(r) x + S(r) v with ⟨v,v⟩ = ±1 or 0, ⟨x,v⟩ = 0, solves γ'' ∥ γ on the manifold."""
    beta, generator = -1.7, torch.Generator().manual_seed(3)
    radius = math.sqrt(-beta)
    for _ in range(10):
        x = point("ordinary", beta, generator)
        v = tangent_of(kind, x, beta, generator)
        for r in (0.01, 0.5, 2.0, 4.0):
            a = r / radius
            c, s = {"space-like": (math.cosh(a), radius * math.sinh(a)),
                    "time-like": (math.cos(a), radius * math.sin(a)), "null": (1.0, r)}[kind]  # fmt: skip
            y = c * x + s * v
            assert inner(y, y).item() == pytest.approx(beta, rel=1e-9 * y.square().sum().item())
            # null: rounding leaves about √eps
            want, slack = (r, 1e-9) if kind != "null" else (0.0, 1e-6)
            assert dist(x, y, beta=beta).item() == pytest.approx(want, abs=slack)
            if kind == "space-like":
                broken = dist(x, -y, beta=beta).item()
                assert broken == pytest.approx(math.pi * radius + r)
            if kind == "time-like":
                back = dist(x, -y, beta=beta).item()
                assert back == pytest.approx(math.pi * radius - r)


def tangent_of(kind, x, beta, generator):
    """Return a tangent vector at x with ⟨v,v⟩ = 1, -1 or 0."""
    dot = lambda a, b: inner(a, b).item()  # noqa: E731
    found = {}
    while len(found) < 2:
        v = torch.randn(TIME + SPACE, generator=generator, dtype=torch.float64)
        for other in (x, *found.values()):
            v = v - other * (dot(v, other) / dot(other, other))
        sign = dot(v, v) > 0
        found.setdefault(sign, v / math.sqrt(abs(dot(v, v))))
    return {"space-like": found[True], "time-like": found[False], "null": found[True] + found[False]}[kind]


# -- laws -----------------------------------------------------------------------------------------------------

seeds = st.integers(0, 2**32 - 1)
negative = st.one_of(st.sampled_from(BETAS), st.floats(-4, -1e-6))
laws = settings(max_examples=25, deadline=None, derandomize=True)


def points(seed, beta, dtype=torch.float64, count=6):
    generator = torch.Generator().manual_seed(seed)
    return torch.stack([point("ordinary", beta, generator) for _ in range(count)]).to(dtype)


@laws
@given(seed=seeds, beta=negative)
def test_maps_and_charts_are_inverse(seed, beta):
    x = points(seed, beta)
    u = pseudo.logmap0(x, beta=beta, time=TIME)
    scale = math.sqrt(-beta)
    torch.testing.assert_close(pseudo.expmap0(u, beta=beta, time=TIME) / scale, x / scale)
    sphere, s = pseudo.to_sphere_product(x, beta=beta, time=TIME)
    torch.testing.assert_close(sphere.norm(dim=-1), torch.full((6,), scale, dtype=torch.float64))
    torch.testing.assert_close(build(sphere, s, beta) / scale, x / scale)
    pole = pseudo.expmap0(torch.zeros_like(u), beta=beta, time=TIME)
    torch.testing.assert_close(pseudo.translate(pole, u, beta=beta, time=TIME) / scale, x / scale)
    assert torch.equal(pseudo.translate(x, 0 * u, beta=beta, time=TIME)[:, TIME:], s)


@laws
@given(seed=seeds, beta=negative)
def test_translation_moves_each_sphere_point_by_the_length_of_the_vector(seed, beta):
    x, scale = points(seed, beta), math.sqrt(-beta)
    u = torch.randn(6, TIME - 1 + SPACE, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    u = 0.5 * u * scale
    before, after = (
        pseudo.to_sphere_product(p, beta=beta, time=TIME)
        for p in (x, pseudo.translate(x, u, beta=beta, time=TIME))
    )
    cosine = (before[0] * after[0]).sum(-1) / -beta
    torch.testing.assert_close(cosine, torch.cos(u[:, : TIME - 1].norm(dim=-1) / scale))
    torch.testing.assert_close(after[1] - before[1], u[:, TIME - 1 :])


@laws
@given(seed=seeds, beta=negative)
def test_the_distance_is_symmetric_and_invariant(seed, beta):
    x, y = points(seed, beta).chunk(2)
    options = {"beta": beta, "time": TIME}
    assert torch.equal(dist(x, y, **options), dist(y, x, **options))
    assert torch.equal(dist(x, x, **options), torch.zeros(3, dtype=torch.float64))
    half_turn = torch.full((3,), math.pi * math.sqrt(-beta), dtype=torch.float64)
    torch.testing.assert_close(dist(x, -x, **options), half_turn)
    # an element of O(T, S): rotations of both parts, then a boost of the last time against the first space axis
    generator = torch.Generator().manual_seed(seed)
    turn = torch.block_diag(*(torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64))[0]
                              for n in (TIME, SPACE)))  # fmt: skip
    boost = torch.eye(TIME + SPACE, dtype=torch.float64)
    boost[TIME - 1, TIME - 1] = boost[TIME, TIME] = math.cosh(0.6)
    boost[TIME - 1, TIME] = boost[TIME, TIME - 1] = math.sinh(0.6)
    image = [p @ (turn @ boost).mT for p in (x, y)]
    q = (inner(x, y) / beta).abs()
    clear = (q - 1).abs() > 1e-3  # closer to the cone the square root amplifies the rounding of the image
    torch.testing.assert_close(
        dist(*image, **options)[clear], dist(x, y, **options)[clear], rtol=1e-9, atol=0
    )


@laws
@given(seed=seeds, beta=negative)
def test_with_one_time_it_is_the_hyperboloid(seed, beta):
    s = torch.randn(6, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    x, y = hyp.from_space(s * math.sqrt(-beta), k=1 / beta).chunk(2)
    got = dist(x, y, beta=beta, time=1)
    want = hyperbolic_dist(x[:, 1:], y[:, 1:], 1 / beta)
    torch.testing.assert_close(got, want, rtol=1e-12, atol=0)
    # the other sheet is reached over the antipode
    torch.testing.assert_close(dist(-x, y, beta=beta, time=1), math.pi * math.sqrt(-beta) + want)
    assert pseudo.logmap0(x, beta=beta, time=1).shape == (3, 3)


def test_with_one_time_the_gradients_are_the_hyperboloids(dtype):
    s = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0), dtype=dtype)
    x, y = hyp.from_space(s, k=-1.0).requires_grad_()
    x, y = x.detach().requires_grad_(), y.detach()
    ours = torch.autograd.grad(pseudo.squared_dist(x, y, beta=-1.0, time=1).sum(), x)[0]
    theirs = torch.autograd.grad(hyperbolic_dist(x[:, 1:], y[:, 1:], -1.0).square().sum(), x)[0]
    torch.testing.assert_close(ours, theirs)


def test_all_antipodes_are_half_a_turn_away():
    x = points(3, -0.5, count=60)
    ways = pseudo.squared_dist(x, -x, beta=-0.5, time=TIME)
    torch.testing.assert_close(ways, torch.full_like(ways, 0.5 * math.pi**2), rtol=1e-12, atol=0)


def test_on_the_cone_of_the_antipode_the_derivative_is_taken_as_zero():
    # (1, 0, 0; 0, 0) and -(1, 0, 0; 0, 0) + r (0, 1, 0; 1, 0): q is -1 to the last place
    x = torch.tensor([[1.0, 0.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    for r in (0.75, 4 / 3, 2.4):
        y = torch.tensor([[-1.0, r, 0.0, r, 0.0]], dtype=torch.float64, requires_grad=True)
        value = pseudo.squared_dist(x, y, beta=-1.0, time=TIME)
        assert value.item() == pytest.approx(math.pi**2, rel=1e-15)
        assert torch.equal(torch.autograd.grad(value.sum(), y)[0], torch.zeros_like(y))
        beside = torch.tensor([[-1.0, r, 0.0, r + 1e-6, 0.0]], dtype=torch.float64, requires_grad=True)
        value = pseudo.squared_dist(x, beside, beta=-1.0, time=TIME)
        assert torch.autograd.grad(value.sum(), beside)[0].norm() > 100


def border(name):
    """Return a pair at which the case changes."""
    x = pseudo.expmap0(torch.tensor([0.3, -0.2, 0.5, 0.1], dtype=torch.float64), beta=-1.0, time=TIME)
    v = tangent_of("null", x, -1.0, torch.Generator().manual_seed(0))
    y = {"same": x, "null": x + v, "antipode": -x, "null of the antipode": -x + v}[name]
    return x, y


@pytest.mark.parametrize("name", ["same", "null", "antipode", "null of the antipode"])
def test_gradients_are_finite_where_the_case_changes(name, dtype):
    x, y = (p.to(dtype) for p in border(name))
    for step in (0.0, 1e-15, -1e-12, 1e-9, -1e-6):
        a, b = x[None].clone().requires_grad_(), (y + step)[None].clone().requires_grad_()
        beta = torch.tensor(-1.0, dtype=dtype, requires_grad=True)
        value = pseudo.squared_dist(a, b, beta=beta, time=TIME)
        want = 0.0 if name in ("same", "null") else math.pi**2
        # d changes with the root of what is left of q, and float32 coordinates leave 1e-7 of it
        assert value.item() == pytest.approx(want, abs=2e-2)
        for grad in torch.autograd.grad(value.sum(), (a, b, beta)):
            assert grad.isfinite().all()
    if name == "same":
        same = x[None].clone().requires_grad_()
        for grad in torch.autograd.grad(pseudo.squared_dist(x[None], same, beta=-1.0, time=TIME).sum(), same):
            assert torch.equal(grad, torch.zeros_like(grad))


def test_the_opposite_of_the_pole_has_a_logarithm_and_a_translation(dtype):
    opposite = torch.tensor([[-1.0, 0.0, 0.0, 0.5, 0.0]], dtype=dtype, requires_grad=True)
    x = build(opposite[..., :TIME], opposite[..., TIME:], -1.0)
    u = pseudo.logmap0(x, beta=-1.0, time=TIME)
    assert u.tolist()[0] == pytest.approx([math.pi, 0.0, 0.5, 0.0])
    assert torch.autograd.grad(u.sum(), opposite, retain_graph=True)[0].isfinite().all()
    moved = pseudo.translate(x, torch.tensor([[0.3, 0.0, 0.0, 0.0]], dtype=dtype), beta=-1.0, time=TIME)
    sphere = pseudo.to_sphere_product(moved, beta=-1.0, time=TIME)[0]
    assert sphere.tolist()[0] == pytest.approx([-math.cos(0.3), math.sin(0.3), 0.0])
    assert torch.autograd.grad(moved.sum(), opposite)[0].isfinite().all()
