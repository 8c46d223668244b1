import pytest

from gyroformer.train import pace


def test_time_left_counts_the_evaluations_that_are_due(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(pace.time, "monotonic", lambda: now[0])
    found = pace.Pace(0)
    for epoch in range(1, 11):
        now[0] += 1.0
        if epoch == 10:
            with found.evaluation():
                now[0] += 20.0
    assert found.left(10, 100, 10) == pytest.approx(90 * 1.0 + 9 * 20.0)
    assert found.left(100, 100, 10) == 0
    assert found.left(10, 15, 10) == pytest.approx(5 + 20)
