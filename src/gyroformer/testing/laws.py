"""Assertions about operations on curved spaces. Each says by how much and where it failed."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from gyroformer import geometry
from gyroformer.geometry.precision import Curvature

Operation = Callable[..., Tensor]


def assert_isometry(
    f: Callable[[Tensor], Tensor],
    points: Tensor,
    *,
    k: Curvature,
    rtol: float,
    k_after: Curvature | None = None,
) -> None:
    """Assert that ``f`` keeps all pairwise distances between ``points`` ``(n, d)``.

    ``k_after`` is the curvature of the space that ``f`` maps to, if it is another one.
    """
    image = f(points)
    left, right = torch.triu_indices(len(points), len(points), 1)
    before = geometry.dist(points[left], points[right], k=k)
    after = geometry.dist(image[left], image[right], k=k if k_after is None else k_after)
    error = ((after - before).abs() / before).max().item()
    assert error <= rtol, f"distances change by a factor of 1 ± {error:.2e}, allowed is {rtol:.1e}"


def assert_matches_reference(
    name: str,
    arguments: Sequence[Tensor],
    *,
    k: float,
    rtol: float,
    function: Operation | None = None,
    definition: Callable[..., list[Any]] | None = None,
) -> None:
    """Assert value and gradients (in every argument and in k) of an operation against 60 digits.

    ``arguments`` are one sample; ``function`` is what to test, the geometry's own ``name`` when absent;
    ``definition`` is its reference, of vectors of mpmath numbers and k, the one stored for ``name`` when absent.
    """
    from gyroformer.testing import reference

    run = function or getattr(geometry, name)
    inputs = [argument.detach().clone().requires_grad_() for argument in arguments]
    curvature = torch.tensor(k, dtype=inputs[0].dtype, requires_grad=True)
    k = curvature.item()
    value = run(*inputs, k=curvature)
    cotangent = torch.linspace(-1.0, 1.5, value.numel(), dtype=value.dtype).reshape(value.shape)
    *by_argument, by_k = torch.autograd.grad((value * cotangent).sum(), [*inputs, curvature])
    truth_of = definition or name
    true_arguments, true_k = reference.gradients(truth_of, arguments, k, cotangent)
    errors = {"value": reference.relative_error(value, reference.evaluate(truth_of, arguments, k))}
    for i, (got, truth) in enumerate(zip(by_argument, true_arguments, strict=True)):
        errors[f"gradient in argument {i}"] = reference.relative_error(got, truth)
    errors["gradient in k"] = reference.relative_error(by_k, [true_k])
    wrong = {what: error for what, error in errors.items() if not error <= rtol}
    assert not wrong, f"{name} at k={k:g}: relative errors {wrong}, allowed is {rtol:.1e}"


def assert_scaling_law(
    function: Operation,
    arguments: Sequence[Tensor],
    *,
    k: float,
    degree: int = 1,
    lengths: Sequence[bool] | None = None,
) -> None:
    """Assert f(x; k) = s^degree · f(x/s; k s²), bit for bit, for s a power of two.

    ``lengths`` says which arguments are lengths and scale; all of them when absent.
    """
    scaled = [True] * len(arguments) if lengths is None else list(lengths)
    curvature = torch.tensor(k, dtype=arguments[0].dtype)
    expected = function(*arguments, k=curvature)
    for s in (0.25, 2.0, 64.0):
        moved = [a / s if is_length else a for a, is_length in zip(arguments, scaled, strict=True)]
        got = function(*moved, k=curvature * s * s) * s**degree
        differ = int((got != expected).sum())
        assert differ == 0, (
            f"{differ} of {got.numel()} values change when lengths are divided by {s:g} (k={k:g})"
        )


def assert_smooth_through_zero(
    function: Operation, arguments: Sequence[Tensor], *, rtol: float, step: float = 1e-4
) -> None:
    """Assert that value and k-derivative pass k = 0 without a jump.

    At ±step the value must equal the first-order prediction from k = 0, and the derivative the mean of its
    neighbours, up to second-order terms (``rtol`` and ``step²``).
    """

    def at(k: float) -> tuple[Tensor, Tensor]:
        curvature = torch.tensor(k, dtype=arguments[0].dtype, requires_grad=True)
        along = (torch.ones_like(curvature),)
        result = torch.func.jvp(lambda c: function(*arguments, k=c), (curvature,), along)
        return result[0].detach(), result[1].detach()

    value, slope = at(0.0)
    scale = value.abs().max().item() + slope.abs().max().item()
    for k in (step, -step, 1e-8, -1e-8, 1e-12, -1e-12):
        near_value, near_slope = at(k)
        jump = (near_value - value - k * slope).abs().max().item() / scale
        bend = (near_slope - slope).abs().max().item() / scale
        assert jump <= rtol + 10 * k * k, f"value at k={k:g} is off the tangent by {jump:.2e}"
        assert bend <= rtol + 10 * abs(k), f"derivative jumps by {bend:.2e} between k=0 and k={k:g}"
