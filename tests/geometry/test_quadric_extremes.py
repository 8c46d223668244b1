"""Both quadrics at the ends of float32: no NaN from finite input, and none hidden."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gyroformer.geometry import hyperboloid as hyp
from gyroformer.geometry import pseudo_hyperboloid as pseudo

SIZES = [0.0, 1e-38, 1e-20, 1e-5, 1.0, 1e5, 1e20, 1e38]
NUMBERS = st.one_of(st.sampled_from([s * x for s in (1, -1) for x in SIZES]), st.floats(-3, 3, width=32))
NEGATIVE = st.one_of(st.sampled_from([0.0, 1.0, -1e-30, -1e-8, -1.0, -1e4]), st.floats(-5, 0, width=32))
ANY_BETA = st.one_of(st.sampled_from([0.0, 1.0, -1e-30, -1e-8, -1.0, -1e4, -1e8]), st.floats(-5, 0, width=32))
#: shapes of each function's arguments
HYPERBOLOID = {
    "to_half_angle": [(1, 3)],
    "from_space": [(1, 2)],
    "centroid": [(2, 3), (1, 2)],
    "translate": [(1, 3), (1, 2)],
}
PSEUDO = {
    "to_sphere_product": [4],
    "logmap0": [4],
    "expmap0": [3],
    "translate": [4, 3],
    "squared_dist": [4, 4],
}


def joined(value):
    return torch.cat(value, dim=-1) if isinstance(value, tuple) else value


def check_no_nan(value, inputs):
    assert not value.isnan().any(), (value, inputs)
    if value.isfinite().all():
        for grad in torch.autograd.grad(value.sum(), inputs, allow_unused=True):
            assert grad is None or not grad.isnan().any(), (grad, inputs)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(numbers=st.lists(NUMBERS, min_size=8, max_size=8), k=NEGATIVE)
@pytest.mark.parametrize("name", sorted(HYPERBOLOID))
def test_no_finite_float32_input_gives_nan_on_the_hyperboloid(name, numbers, k):
    flat, used, args = torch.tensor(numbers), 0, []
    for rows, columns in HYPERBOLOID[name]:
        args.append(flat[used : used + rows * columns].reshape(rows, columns).clone().requires_grad_())
        used = (used + rows * columns) % 4
    curvature = torch.tensor(k, requires_grad=True)
    check_no_nan(joined(getattr(hyp, name)(*args, k=curvature)), [*args, curvature])


@settings(max_examples=80, deadline=None, derandomize=True)
@given(numbers=st.lists(NUMBERS, min_size=8, max_size=8), beta=ANY_BETA, time=st.sampled_from([1, 2, 3]))
@pytest.mark.parametrize("name", sorted(PSEUDO))
def test_no_finite_float32_input_gives_nan_on_the_pseudo_hyperboloid(name, numbers, beta, time):
    flat = torch.tensor(numbers)
    args = [flat[i * 4 : i * 4 + n][None].clone().requires_grad_() for i, n in enumerate(PSEUDO[name])]
    b = torch.tensor(beta, requires_grad=True)
    check_no_nan(joined(getattr(pseudo, name)(*args, beta=b, time=time)), [*args, b])


@pytest.mark.parametrize("name", sorted(HYPERBOLOID))
def test_nan_in_nan_out_on_the_hyperboloid(name):
    shapes = HYPERBOLOID[name]
    for i in range(len(shapes)):
        args = [torch.rand(shape, generator=torch.Generator().manual_seed(1)) * 0.3 for shape in shapes]
        args[i][0, -1] = float("nan")
        value = joined(getattr(hyp, name)(*args, k=-1.0))
        assert value.isnan().any(), f"argument {i} of {name} hides NaN"


@pytest.mark.parametrize("name", sorted(PSEUDO))
@pytest.mark.parametrize("place", [0, -1])
def test_nan_in_nan_out_on_the_pseudo_hyperboloid(name, place):
    sizes = PSEUDO[name]
    for i in range(len(sizes)):
        args = [torch.rand(1, n, generator=torch.Generator().manual_seed(1)) for n in sizes]
        args[i][0, place] = float("nan")
        value = joined(getattr(pseudo, name)(*args, beta=-1.0, time=2))
        assert value.isnan().any(), f"argument {i} of {name} hides NaN"
