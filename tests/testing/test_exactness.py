import math
import types
from pathlib import Path

import pytest

from gyroformer import geometry
from gyroformer.errors import UsageError
from gyroformer.testing import exactness

RESULTS = Path(__file__).parents[2] / "results"
#: cells measured again here: cheap, and one of each kind of danger
AGAIN = [
    ("expmap0", -1e-8, "ordinary"),
    ("dist", 1.0, "opposite"),
    ("logmap", -1.0, "edge"),
    ("weighted_midpoint", 1e-8, "tiny"),
    ("mobius_add", 0.0, "close"),
]


@pytest.fixture(scope="module")
def committed():
    return {
        (c.operation, c.k, c.regime, c.dtype): c
        for c in exactness.read_csv(RESULTS / "exactness_gyroformer.csv")
    }


@pytest.mark.parametrize("name, k, regime", AGAIN)
def test_the_committed_table_is_what_the_code_gives(committed, name, k, regime):
    for cell in exactness.measure(name, k, regime):
        before = committed[name, k, regime, cell.dtype]
        assert cell.samples == before.samples
        floor = {"float32": 3e-8, "float64": 1e-16}[cell.dtype]
        for what in ("value", "grad_x", "grad_k"):
            # another processor may round a last place differently, not move the magnitude
            assert getattr(cell, what) <= 3 * max(getattr(before, what), floor)
            assert getattr(before, what) <= 3 * max(getattr(cell, what), floor)


def test_the_committed_table_is_whole_and_exact(committed):
    expected = {
        (name, k, regime, dtype)
        for name in exactness.reference.REFERENCE
        for k in exactness.CURVATURES
        for regime in exactness.regimes_of(name)
        if exactness.has_reference_gradient(name, regime, k)
        for dtype in ("float32", "float64")
    }
    assert set(committed) == expected
    for cell in committed.values():
        worst = max(cell.value, cell.grad_x, cell.grad_k)
        assert (cell.wrong_sign, cell.not_finite) == (0, 0), cell
        assert worst <= (3e-7 if cell.dtype == "float32" else 1e-7), cell
        if cell.dtype == "float64" and cell.regime in ("origin", "tiny", "ordinary", "large"):
            assert worst <= 1e-10, cell


def test_geoopt_is_measured_on_the_same_cells(committed):
    theirs = exactness.read_csv(RESULTS / "exactness_geoopt.csv")
    assert {(c.operation, c.k, c.regime, c.dtype) for c in theirs} == set(committed)
    # and nowhere better than by a rounding
    worse = [
        c
        for c in theirs
        if c.dtype == "float32" and committed[c.operation, c.k, c.regime, c.dtype].grad_k > c.grad_k + 6e-8
    ]
    assert worse == []


def spoiled(change):
    module = types.ModuleType("spoiled")
    module.expmap0 = lambda u, *, k, dim=-1: change(geometry.expmap0(u, k=k, dim=dim), u, k)
    return module


@pytest.mark.parametrize(
    "change, column, at_least",
    [
        (lambda y, u, k: y * (1 + 1e-5), "value", 9e-6),
        (lambda y, u, k: y + 1e-3 * (u - u.detach()), "grad_x", 9e-4),
        (lambda y, u, k: y + u * (k - k.detach()), "grad_k", 0.9),
        (lambda y, u, k: y + u * (k - k.detach()) * -9, "wrong_sign", 0.99),
        (lambda y, u, k: y * float("nan"), "not_finite", 2),
        (lambda y, u, k: y + 0 * (k * 0).sqrt(), "not_finite", 2),
    ],
)
def test_wrong_code_is_seen(change, column, at_least):
    for cell in exactness.measure("expmap0", 0.5, "ordinary", module=spoiled(change), samples=2):
        assert getattr(cell, column) >= at_least


def test_a_derivative_that_is_not_there_counts_as_zero():
    module = spoiled(lambda y, u, k: geometry.expmap0(u, k=0.5))
    (cell, _) = exactness.measure("expmap0", 0.5, "ordinary", module=module, samples=1)
    assert (cell.grad_k, cell.wrong_sign) == (1.0, 1.0)


def test_command_measures_what_a_module_has(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "spoiled", spoiled(lambda y, u, k: y))
    exactness.main(["--impl", "spoiled", "--samples", "1", "--csv", str(tmp_path / "cells.csv")])
    said = capsys.readouterr()
    assert "measured expmap0" in said.err
    assert "expmap0" in said.out
    assert "dist" not in said.out.replace("distance", "")
    cells = exactness.read_csv(tmp_path / "cells.csv")
    assert len(cells) == len(exactness.CURVATURES) * 5 * 2
    assert all(not math.isnan(cell.value) for cell in cells)


def test_a_module_that_is_not_there_is_named():
    with pytest.raises(UsageError, match="--impl nowhere cannot be imported"):
        exactness.main(["--impl", "nowhere"])
