import csv
from pathlib import Path

import pytest

from gyroformer.bench.cost_model import Machine, linear_fit, step_seconds

MEASURED = Path(__file__).parents[2] / "results" / "tokens.csv"


def test_the_cost_of_ten_million_tokens_follows_from_that_of_fewer():
    """The model says that a token costs the same however many there are: the measured rows agree within 25 %."""
    with MEASURED.open(newline="", encoding="utf-8") as file:
        seconds = {int(row["tokens"]): float(row["seconds"]) for row in csv.DictReader(file)}
    fixed, slope = linear_fit({tokens: seconds[tokens] for tokens in (100_000, 1_000_000)})
    assert fixed + slope * 10_000_000 == pytest.approx(seconds[10_000_000], rel=0.25)


def test_parts_shrink_with_processes_and_traffic_does_not():
    machine = Machine.of_bandwidth(memory=1e12, link=1e10, latency=1e-5)
    one, eight, many = (step_seconds(machine, nodes=10**7, edges=10**8, processes=p) for p in (1, 8, 64))
    assert one["traffic"] == 0
    assert one["tokens"] == pytest.approx(8 * eight["tokens"])
    assert one["pairs"] == pytest.approx(64 * many["pairs"])
    assert eight["traffic"] == many["traffic"] > 0
    assert one["total"] == pytest.approx(sum(value for part, value in one.items() if part != "total"))


def test_twice_the_width_or_the_layers_is_twice_the_tokens_cost():
    machine = Machine(1e-6, 1e-8, 1e9, 1e-4)
    usual = step_seconds(machine, nodes=100, edges=200, processes=2)
    for change in ({"width": 32}, {"layers": 2}):
        assert step_seconds(machine, nodes=100, edges=200, processes=2, **change)["tokens"] == pytest.approx(
            2 * usual["tokens"]
        )
