"""The operations in 60 digits, written from their definitions, to compare with. Needs mpmath.

Nothing here shares a formula with :mod:`gyroformer.geometry` beyond the definitions themselves: Möbius sums
are summed, distances taken through them, derivatives by differences of 60-digit values.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

try:
    import mpmath as mp
except ImportError as error:
    from gyroformer.errors import MissingPartError

    raise MissingPartError("mpmath", "test", "the 60-digit reference") from error

DIGITS = 60
#: step of the central differences: their error, about its square, is far below float64
STEP = mp.mpf(10) ** -22

Number = Any  # an mpmath number; the package has no types
Vector = list[Number]


def _dot(a: Vector, b: Vector) -> Number:
    return mp.fsum(p * q for p, q in zip(a, b, strict=True))


def _norm(a: Vector) -> Number:
    return mp.sqrt(_dot(a, a))


def _scale(s: Number, a: Vector) -> Vector:
    return [s * p for p in a]


def _tan(x: Number, k: Number) -> Number:
    s = mp.sqrt(abs(k))
    return x if k == 0 else (mp.tan if k > 0 else mp.tanh)(s * x) / s


def _artan(x: Number, k: Number) -> Number:
    s = mp.sqrt(abs(k))
    return x if k == 0 else (mp.atan if k > 0 else mp.atanh)(s * x) / s


def _arsin(x: Number, k: Number) -> Number:
    s = mp.sqrt(abs(k))
    return x if k == 0 else (mp.asin if k > 0 else mp.asinh)(s * x) / s


def _lambda(x: Vector, k: Number) -> Number:
    return 2 / (1 + k * _dot(x, x))


def _add(x: Vector, y: Vector, k: Number) -> Vector:
    xx, yy, xy = _dot(x, x), _dot(y, y), _dot(x, y)
    denominator = 1 - 2 * k * xy + k * k * xx * yy
    a, b = (1 - 2 * k * xy - k * yy) / denominator, (1 + k * xx) / denominator
    return [a * p + b * q for p, q in zip(x, y, strict=True)]


def _minus(x: Vector) -> Vector:
    return _scale(-1, x)


def _radial(f: Callable[[Number], Number], v: Vector) -> Vector:
    n = _norm(v)
    return _scale(f(n) / n, v) if n else list(v)


def _exp0(u: Vector, k: Number) -> Vector:
    return _radial(lambda n: _tan(n, k), u)


def _log0(y: Vector, k: Number) -> Vector:
    return _radial(lambda n: _artan(n, k), y)


def _exp(x: Vector, u: Vector, k: Number) -> Vector:
    return _add(x, _radial(lambda n: _tan(_lambda(x, k) / 2 * n, k), u), k)


def _log(x: Vector, y: Vector, k: Number) -> Vector:
    return _radial(lambda n: 2 / _lambda(x, k) * _artan(n, k), _add(_minus(x), y, k))


def _gyration(a: Vector, b: Vector, u: Vector, k: Number) -> Vector:
    return _add(_minus(_add(a, b, k)), _add(a, _add(b, u, k), k), k)


def _transport(x: Vector, y: Vector, v: Vector, k: Number) -> Vector:
    return _scale(_lambda(x, k) / _lambda(y, k), _gyration(y, _minus(x), v, k))


def _scalar_mul(r: Number, x: Vector, k: Number) -> Vector:
    return _radial(lambda n: _tan(r * _artan(n, k), k), x)


def _dist2plane(x: Vector, p: Vector, a: Vector, k: Number) -> Vector:
    z = _add(_minus(p), x, k)
    return [_arsin(2 * _dot(z, a) / ((1 + k * _dot(z, z)) * _norm(a)), k)]


def _midpoint(points: Vector, weights: Vector, k: Number) -> Vector:
    """Return ½⊗(N/D); past the equator, where that is the antipode, the mean of the ambient vectors."""
    size = len(points) // len(weights)
    xs = [points[i * size : (i + 1) * size] for i in range(len(weights))]
    lambdas = [_lambda(x, k) for x in xs]
    d = mp.fsum(w * (lam - 1) for w, lam in zip(weights, lambdas, strict=True))
    n = [mp.fsum(w * lam * x[j] for w, lam, x in zip(weights, lambdas, xs, strict=True)) for j in range(size)]
    if k > 0 and d < 0:
        length = mp.sqrt(d * d + k * _dot(n, n))
        return _scale(1 / (d + length), n)
    return _scalar_mul(mp.mpf(1) / 2, _scale(1 / d, n), k) if d else _scale(1 / mp.sqrt(k * _dot(n, n)), n)


#: operation -> the reference, taking vectors (lists of mpmath numbers) and k, returning a vector
REFERENCE: dict[str, Callable[..., Vector]] = {
    "lambda_x": lambda x, k: [_lambda(x, k)],
    "mobius_add": _add,
    "mobius_coadd": lambda x, y, k: _add(x, _gyration(x, _minus(y), y, k), k),
    "mobius_scalar_mul": lambda r, x, k: _scalar_mul(r[0], x, k),
    "expmap0": _exp0,
    "logmap0": _log0,
    "expmap": _exp,
    "logmap": _log,
    "dist": lambda x, y, k: [2 * _artan(_norm(_add(_minus(x), y, k)), k)],
    "dist0": lambda x, k: [2 * _artan(_norm(x), k)],
    "gyration": _gyration,
    "geodesic": lambda t, x, y, k: _add(x, _scalar_mul(t[0], _add(_minus(x), y, k), k), k),
    "parallel_transport": _transport,
    "parallel_transport0": lambda y, v, k: _scale(2 / _lambda(y, k), v),
    "parallel_transport0back": lambda x, v, k: _scale(_lambda(x, k) / 2, v),
    "inner": lambda x, u, v, k: [_lambda(x, k) ** 2 * _dot(u, v)],
    "norm": lambda x, u, k: [_lambda(x, k) * _norm(u)],
    "dist2plane": _dist2plane,
    "weighted_midpoint": _midpoint,
}


#: an operation by its name, or a reference of one's own with the same arguments
Operation = str | Callable[..., Vector]


def _defined(operation: Operation) -> Callable[..., Vector]:
    return REFERENCE[operation] if isinstance(operation, str) else operation


def _vector(row: Tensor) -> Vector:
    return [mp.mpf(value) for value in row.double().flatten().tolist()]


def evaluate(operation: Operation, arguments: Sequence[Tensor], k: float) -> Vector:
    """Return the 60-digit value of an operation at exactly the given numbers (one sample)."""
    with mp.workdps(DIGITS):
        return _defined(operation)(*map(_vector, arguments), mp.mpf(k))


def gradients(
    operation: Operation, arguments: Sequence[Tensor], k: float, cotangent: Tensor
) -> tuple[list[Vector], Number]:
    """Return the derivatives of ⟨cotangent, f⟩ in each argument and in k (one sample)."""
    with mp.workdps(DIGITS):
        vectors, c, curvature = list(map(_vector, arguments)), _vector(cotangent), mp.mpf(k)

        def weighed(args: Sequence[Vector], at: Number) -> Number:
            return _dot(c, _defined(operation)(*args, at))

        def partial(i: int, j: int) -> Number:
            h = STEP * max(1, abs(vectors[i][j]))
            moved = [[list(v) for v in vectors] for _ in range(2)]
            moved[0][i][j] += h
            moved[1][i][j] -= h
            return (weighed(moved[0], curvature) - weighed(moved[1], curvature)) / (2 * h)

        by_argument = [[partial(i, j) for j in range(len(vector))] for i, vector in enumerate(vectors)]
        h = STEP * (abs(curvature) or 1)
        return by_argument, (weighed(vectors, curvature + h) - weighed(vectors, curvature - h)) / (2 * h)


def relative_error(got: Tensor | Sequence[float], truth: Vector) -> float:
    """Return ‖got − truth‖/‖truth‖, the absolute error where the truth is 0, NaN for a non-finite result."""
    values = got.double().flatten().tolist() if isinstance(got, torch.Tensor) else list(got)
    with mp.workdps(DIGITS):
        size = _norm(truth)
        if not all(mp.isfinite(value) for value in values):
            return float("nan")
        error = _norm([mp.mpf(value) - exact for value, exact in zip(values, truth, strict=True)])
        # below the differences' own noise a derivative counts as zero
        return float(error / size) if size > mp.mpf(10) ** -30 else float(error)
