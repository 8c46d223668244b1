r"""What paired runs say about two models: the difference with its interval, and tests corrected for how they were made.

Two runs are a pair if they have the same seed, which gives them the same split. Runs on draws of one data set share
nodes, so that their differences are not independent: there the variance of the mean is taken as
:math:`(1/n + n_\text{test}/n_\text{train})\,s^2` instead of :math:`s^2/n` (Nadeau and Bengio, 2003).
"""

import dataclasses as dc
import math
from collections.abc import Mapping, Sequence
from typing import Any

#: two-sided
LEVEL = 0.95
#: differences for which the signed-rank test goes through all choices of signs: 8,192
EXACT_PAIRS = 13
#: of metrics in percent: beyond it differences that are equal part by rounding alone, and would not be ties
DECIMALS = 9


@dc.dataclass(frozen=True)
class Difference:
    """The paired difference of two models on a data set.

    Attributes:
        pairs: number of seeds that both have.
        mean: mean difference.
        half: half the 95 % interval of it; None for a single pair, or for equal differences that are not 0.
        t: p-value of the paired t-test; None in the same cases.
        corrected: whether interval and t-test allow for splits that overlap.
    """

    pairs: int
    mean: float
    half: float | None
    t: float | None
    corrected: bool


def paired_difference(
    ours: Mapping[int, float], others: Mapping[int, float], *, overlap: float = 0.0
) -> Difference | None:
    """Return ours minus theirs over the seeds that both have; None if they share none.

    Differences that are all the same, and not 0, have neither interval nor p-value: the t-test measures the mean by
    their spread, and a spread of 0 would make any difference certain, which a few seeds cannot show.

    Args:
        ours: a metric by seed.
        others: the same of another model.
        overlap: test nodes for each training node where splits are drawn anew for each seed; 0 for one fixed split.
    """
    from scipy import stats

    values = paired_values(ours, others)
    if not values:
        return None
    count, mean = len(values), math.fsum(values) / len(values)
    equal = len({round(value, DECIMALS) for value in values}) == 1
    if count < 2 or (equal and round(mean, DECIMALS) != 0):
        return Difference(count, mean, None, None, overlap > 0)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    error = math.sqrt(variance * (1 / count + overlap))
    half = float(stats.t.ppf((1 + LEVEL) / 2, count - 1)) * error
    p = 1.0 if equal else _two_sided(mean / error, count - 1)
    return Difference(count, mean, half, p, overlap > 0)


def _two_sided(t: float, degrees: int) -> float:
    from scipy import stats

    return float(2 * stats.t.sf(abs(t), degrees))


def signed_rank(values: Sequence[float]) -> float | None:
    """Return the p-value of Wilcoxon's signed-rank test, zeros shared out; None without a difference.

    Up to ``EXACT_PAIRS`` differences it is exact, ties or not: the share of all choices of signs that are as extreme.
    scipy goes through them one by one where there are ties, which takes a third of a second for ten pairs.
    """
    import numpy as np
    from scipy import stats

    rounded = np.round(values, DECIMALS)
    if len(rounded) < 2 or not rounded.any():
        return None
    if len(rounded) > EXACT_PAIRS:
        return float(stats.wilcoxon(rounded, zero_method="zsplit").pvalue)
    # twice the ranks are whole numbers, and so are their sums: nothing is lost in comparing them
    doubled = np.rint(2 * stats.rankdata(abs(rounded)))[rounded != 0]
    signs = np.arange(1 << len(doubled))[:, None] >> np.arange(len(doubled)) & 1
    sums, found = signs @ doubled, doubled[rounded[rounded != 0] > 0].sum()
    return float(min(1.0, 2 * min((sums <= found).mean(), (sums >= found).mean())))


def paired_values(ours: Mapping[int, float], others: Mapping[int, float]) -> list[float]:
    """Return ours minus theirs for each seed that both have."""
    return [ours[seed] - others[seed] for seed in sorted(ours.keys() & others.keys())]


def against_first(values: Mapping[str, Mapping[int, float]], *, overlap: float = 0.0) -> list[dict[str, Any]]:
    """Return the paired differences of the first model against each other one, with all tests.

    Args:
        values: a metric by seed, of each model.
        overlap: as in :func:`paired_difference`.
    """
    (first, ours), *others = values.items()
    found: list[dict[str, Any]] = []
    for name, theirs in others:
        one = paired_difference(ours, theirs, overlap=overlap)
        if one is not None:
            rank = signed_rank(paired_values(ours, theirs))
            found.append({"first": first, "model": name, **dc.asdict(one), "wilcoxon": rank})
    return add_holm(found)


def add_holm(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return differences with their p-values ``t`` adjusted as one family under ``holm``; None where there is none."""
    for row in found:
        row["holm"] = None
    tested = [row for row in found if row["t"] is not None]
    for row, p in zip(tested, holm([row["t"] for row in tested]), strict=True):
        row["holm"] = p
    return found


def overlap_of(splits: Sequence[Mapping[str, Any] | None]) -> float:
    """Return the overlap for :func:`paired_difference` of runs with these splits, as results have them.

    Where the runs have splits of their own it is the size of the test by that of the training; else 0.
    """
    known = [split for split in splits if split is not None]
    if len({split["sha256"] for split in known}) < 2 or not known[0]["train"]:
        return 0.0
    return float(known[0]["test"] / known[0]["train"])


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted for being a family, by Holm's step-down method, in the order given."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def sample_half(percent: float, nodes: int) -> float:
    """Return half the 95 % interval, in percent, that a test on so many nodes leaves to a fraction (normal)."""
    fraction = min(max(percent / 100, 0.0), 1.0)
    return 100 * 1.959964 * math.sqrt(fraction * (1 - fraction) / nodes)
