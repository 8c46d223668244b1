"""The statistics of paired runs, against scipy and against what they promise on drawn data."""

import math

import numpy as np
import pytest
from scipy import stats

from gyroformer.runs.statistics import against_first, holm, paired_difference, sample_half, signed_rank


def by_seed(values):
    return dict(enumerate(values))


def test_a_paired_difference_is_scipys():
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(81, 1, 10), rng.normal(80, 1, 10)
    found = paired_difference(by_seed(ours), by_seed(theirs))
    expected = stats.ttest_rel(ours, theirs)
    assert found.pairs == 10
    assert found.mean == pytest.approx((ours - theirs).mean())
    assert found.t == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval()
    assert found.half == pytest.approx((high - low) / 2)
    assert signed_rank(list(ours - theirs)) == pytest.approx(stats.wilcoxon(ours - theirs).pvalue)
    assert not found.corrected


@pytest.mark.parametrize("pairs", [2, 3, 5, 10, 13, 14])
def test_the_signed_rank_test_is_scipys_with_ties_and_zeros_too(pairs):
    rng = np.random.default_rng(pairs)
    for values in (rng.normal(0.5, 1, pairs), rng.integers(-1, 4, pairs).astype(float)):
        expected = stats.wilcoxon(values, zero_method="zsplit").pvalue
        assert signed_rank(list(values)) == pytest.approx(expected)


def test_differences_that_part_by_rounding_are_ties():
    values = [82.4 - 82.3, 70.1 - 70.0, 0.1 - 0.2, 3.0]
    assert len(set(map(abs, values))) == 4
    assert signed_rank(values) == pytest.approx(stats.wilcoxon([0.1, 0.1, -0.1, 3.0]).pvalue)


def test_only_seeds_that_both_have_are_pairs():
    found = paired_difference({0: 1.0, 1: 2.0, 5: 9.0}, {1: 1.0, 5: 4.0, 7: 0.0})
    assert (found.pairs, found.mean) == (2, 3.0)
    assert paired_difference({0: 1.0}, {1: 1.0}) is None
    single = paired_difference({0: 3.0}, {0: 1.0})
    assert (single.mean, single.half, single.t) == (2.0, None, None)
    assert signed_rank([2.0]) is None


def test_equal_runs_differ_by_nothing():
    found = paired_difference(by_seed([5.0] * 6), by_seed([5.0] * 6))
    assert (found.mean, found.half, found.t) == (0.0, 0.0, 1.0)
    assert signed_rank([0.0] * 6) is None


@pytest.mark.parametrize("theirs", [[4.0, 5.0, 6.0], [4.9, 5.9, 6.9]])
def test_equal_differences_are_not_taken_for_certain(theirs):
    """A spread of 0, or of rounding alone, would make the interval ± 0 and p 0."""
    found = paired_difference(by_seed([5.0, 6.0, 7.0]), by_seed(theirs))
    assert found.mean == pytest.approx(5.0 - theirs[0])
    assert (found.pairs, found.half, found.t) == (3, None, None)


def test_what_has_no_p_value_is_left_out_of_the_family():
    values = {"ours": [5.0, 6.0, 7.0], "shifted": [4.0, 5.0, 6.0], "other": [4.0, 5.5, 6.0], "one": [4.0]}
    shifted, other, one = against_first({name: by_seed(some) for name, some in values.items()})
    assert (shifted["t"], shifted["holm"]) == (None, None)
    assert (one["t"], one["holm"]) == (None, None)
    assert other["holm"] == other["t"]


def test_the_correction_widens_the_interval_by_the_overlap():
    rng = np.random.default_rng(1)
    ours, theirs = rng.normal(81, 1, 10), rng.normal(80, 1, 10)
    plain = paired_difference(by_seed(ours), by_seed(theirs))
    wide = paired_difference(by_seed(ours), by_seed(theirs), overlap=1 / 3)
    assert wide.half == pytest.approx(plain.half * math.sqrt((1 / 10 + 1 / 3) / (1 / 10)))
    assert wide.t > plain.t
    assert wide.corrected


def test_without_the_correction_overlapping_splits_find_what_is_not_there():
    """Two classifiers of equal worth, tested on ten draws of one small data set, far too often differ significantly."""
    rng = np.random.default_rng(2)
    plain = corrected = 0
    for _ in range(300):
        right = rng.random((2, 180)) < 0.8  # which nodes each gets right, wherever they stand in a split
        draws = [rng.permutation(180)[:36] for _ in range(10)]
        ours, theirs = (by_seed([100 * row[d].mean() for d in draws]) for row in right)
        plain += paired_difference(ours, theirs).t < 0.05
        corrected += paired_difference(ours, theirs, overlap=1 / 3).t < 0.05
    assert plain / 300 > 0.25
    assert corrected / 300 < 0.1


def test_holm_is_the_step_down_method():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_test_of_1000_nodes_leaves_two_points():
    assert sample_half(82.3, 1000) == pytest.approx(2.366, abs=1e-3)
    assert sample_half(100.0, 1000) == 0.0
