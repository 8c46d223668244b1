import pytest
import torch

from gyroformer.errors import UsageError
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
