import math

import pytest
import torch

from gyroformer.errors import UsageError
from gyroformer.ops.positions import StereographicPositions
from gyroformer.tasks.decoders import LinkDecoder


def test_fermi_dirac_is_the_formula(dtype):
    squared = torch.linspace(0, 9, 50, dtype=dtype)
    found = LinkDecoder(radius=2.0, temperature=0.7)(squared).sigmoid()
    torch.testing.assert_close(found, 1 / (((squared - 2) / 0.7).exp() + 1))


def test_the_distance_decoder_takes_the_root():
    squared = torch.tensor([0.0, 1.0, 4.0])
    assert LinkDecoder("distance", radius=1.0)(squared).tolist() == [1.0, 0.0, -1.0]


@pytest.mark.parametrize("kind", ["fermi-dirac", "distance"])
def test_value_and_gradient_are_finite_at_both_ends(kind, dtype):
    squared = torch.tensor([0.0, 1e-30, 1.0, 1e4, 1e30], dtype=dtype, requires_grad=True)
    decoder = LinkDecoder(kind, learn=True).to(dtype)
    logits = decoder(squared)
    loss = torch.nn.functional.softplus(-logits).sum() + torch.nn.functional.softplus(logits).sum()
    loss.backward()
    assert bool(torch.isfinite(loss))
    assert bool(torch.isfinite(squared.grad).all())
    assert all(bool(torch.isfinite(p.grad)) for p in decoder.parameters())


def test_learned_values_begin_where_given_and_the_temperature_stays_positive():
    decoder = LinkDecoder(radius=3.0, temperature=0.5, learn=True)
    with torch.no_grad():
        assert (float(decoder.radius), float(decoder.temperature)) == (3.0, 0.5)
        decoder.log_temperature_change -= 30
        decoder.radius_change += 1
        assert float(decoder.temperature) > 0
        assert float(decoder.radius) == 4.0
    assert not list(LinkDecoder().parameters())


@pytest.mark.parametrize("wrong", [{"temperature": 0.0}, {"temperature": -1.0}, {"radius": float("inf")}])
def test_wrong_values_are_refused(wrong):
    with pytest.raises(UsageError, match="positive temperature"):
        LinkDecoder(**wrong)
    with pytest.raises(UsageError, match="one of fermi-dirac, distance"):
        LinkDecoder("dot")


def on_a_line(*places):
    """Positions of nodes on a line through the origin of a flat space."""
    return StereographicPositions.flat(torch.tensor(places).unsqueeze(1))


def test_degrees_count_without_the_edge_itself():
    decoder = LinkDecoder(degrees=True).know(torch.tensor([[0, 0, 1], [1, 2, 2]]), 4)
    assert decoder.degree.tolist() == [[2, 2, 2, 0]] * 2
    with torch.no_grad():
        decoder.degree_weight.fill_(0.5)
    places, pairs = on_a_line(0.0, 0.0, 0.0, 0.0), torch.tensor([[0, 0], [1, 3]])
    plain = decoder(torch.zeros(2))
    log = torch.log1p(torch.tensor([0.0, 1.0, 2.0]))
    found = decoder.pairs(places, pairs)
    torch.testing.assert_close(found - plain, 0.5 * torch.stack((log[2] + log[2], log[2] + log[0])))
    known = decoder.pairs(places, pairs[:, :1], known=True)
    torch.testing.assert_close(known - plain[:1], 0.5 * (log[1] + log[1]).reshape(1))
    rows = decoder.rows(places, torch.tensor([0]))
    torch.testing.assert_close(rows[0, [1, 3]], found)


def test_a_directed_edge_counts_who_leaves_who_comes_and_who_is_nearer_to_the_centre():
    decoder = LinkDecoder(radius=0.0, degrees=True, directed=True).know(
        torch.tensor([[0, 0, 1], [1, 2, 2]]), 4
    )
    assert decoder.degree.tolist() == [[2, 1, 0, 0], [0, 1, 2, 0]]
    with torch.no_grad():
        decoder.degree_weight.copy_(torch.tensor([[0.5], [0.25]]))
        decoder.depth_weight.fill_(3.0)
    places, pairs = on_a_line(2.0, 0.5, 1.0, 0.0), torch.tensor([[0, 2], [2, 0]])
    degrees = torch.tensor([0.5 * math.log(3) + 0.25 * math.log(3), 0.0])
    want = -torch.tensor([1.0, 1.0]) + degrees + 3.0 * torch.tensor([1.0, -1.0])
    torch.testing.assert_close(decoder.pairs(places, pairs), want)
    rows = decoder.rows(places, torch.tensor([0, 2]))
    torch.testing.assert_close(rows[[0, 1], [2, 0]], want)
    known = decoder.pairs(places, pairs[:, :1], known=True)
    torch.testing.assert_close(known - want[:1], torch.tensor([0.75 * (math.log(2) - math.log(3))]))


def test_calibration_finds_the_odds_of_held_out_pairs():
    generator = torch.Generator().manual_seed(0)
    logit = 3 * torch.randn(40_000, generator=generator)
    edge = torch.rand(40_000, generator=generator) < torch.sigmoid(0.5 * logit - 1)
    decoder = LinkDecoder()
    decoder.calibrate(logit[edge], logit[~edge])
    torch.testing.assert_close(decoder.calibration, torch.tensor([0.5, -1.0]), rtol=0.05, atol=0.05)


def test_calibration_of_logits_that_tell_everything_stays_finite():
    decoder = LinkDecoder()
    decoder.calibrate(torch.full((50,), 4.0), torch.full((50,), -4.0))
    chance = decoder.calibrated(torch.tensor([4.0, -4.0])).sigmoid()
    torch.testing.assert_close(chance, torch.tensor([51 / 52, 1 / 52]), rtol=1e-3, atol=1e-4)


def test_a_calibration_that_would_turn_the_order_is_left_out():
    decoder = LinkDecoder()
    decoder.calibrate(torch.tensor([-1.0, -2.0]), torch.tensor([1.0, 2.0]))
    assert decoder.calibration.tolist() == [1.0, 0.0]
