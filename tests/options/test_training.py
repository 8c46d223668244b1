import math

import pytest

from gyroformer.errors import UsageError
from gyroformer.train import TrainOptions


def factors(**options):
    settings = TrainOptions(epochs=4, **options)
    return [settings.factor(epoch) for epoch in range(1, 5)]


def test_schedules():
    assert factors() == [1, 1, 1, 1]
    assert factors(schedule="linear") == [1, 1, 1, 0.5]
    assert factors(schedule="linear", decay_from=0.0) == [1, 0.75, 0.5, 0.25]
    assert factors(schedule="cosine") == pytest.approx(
        [1, 0.5 + math.sqrt(0.125), 0.5, 0.5 - math.sqrt(0.125)]
    )


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_no_epoch_has_a_rate_of_zero_and_none_rises(schedule):
    settings = TrainOptions(epochs=100, schedule=schedule)
    found = [settings.factor(epoch) for epoch in range(1, 101)]
    assert found[0] == 1
    assert min(found) > 0
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"epochs": 0}, "epochs must be a whole number of at least 1 and at most 100,000,000; got 0"),
        ({"epochs": 2.5}, "epochs must be a whole number"),
        ({"eval_every": 0}, "eval_every must be"),
        ({"patience": 0}, "patience must be"),
        ({"lr": -1.0}, "lr must be a finite number of at least 0 and at most 1,000; got -1.0"),
        ({"curvature_lr": math.nan}, "curvature_lr must be"),
        ({"weight_decay": math.inf}, "weight_decay must be"),
        ({"checkpoint_seconds": -1.0}, "checkpoint_seconds must be"),
        ({"clip": 0.0}, "clip must be a finite number above 0 or none"),
        ({"decay_from": 1.0}, "decay_from must be a finite number of at least 0 and below 1"),
        ({"schedule": "cosin"}, "did you mean 'cosine'"),
    ],
)
def test_wrong_values_are_named(wrong, message):
    with pytest.raises(UsageError, match=message):
        TrainOptions(**wrong)
