"""What several runs say together: the mean of a metric, and how sure it is."""

import math
from collections.abc import Sequence


def interval(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean and the half width of its 95 % interval by Student's t; None for a single value."""
    from scipy.stats import t

    count = len(values)
    mean = sum(values) / count
    if count < 2:
        return mean, None
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
    return mean, float(t.ppf(0.975, count - 1)) * deviation / math.sqrt(count)
