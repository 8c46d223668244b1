import pytest
from scipy.stats import ttest_1samp

from gyroformer.jobs.seeds import summary
from gyroformer.runs.spread import interval


def test_the_interval_is_students():
    values = [81.0, 82.5, 80.2, 83.1]
    mean, half = interval(values)
    low, high = ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (mean - half, mean + half) == pytest.approx((low, high))


def test_one_run_has_no_interval():
    assert interval([81.0]) == (81.0, None)


def test_a_summary_holds_every_run_and_the_means():
    found = summary([{"map": 90.0, "epochs": 10, "graph": "a"}, {"map": 92.0, "epochs": 10, "graph": "a"}])
    assert found["mean"] == {"map": 91.0}
    assert len(found["runs"]) == 2
