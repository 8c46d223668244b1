import numpy as np
import pytest
import torch

from gyroformer.errors import UsageError
from gyroformer.graphs import features
from gyroformer.graphs.features import STEPS, FeatureOptions, Table, kind_of_features, prepared_features
from gyroformer.graphs.hops import joined_hops, mix_hops, ppr_mix

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
WORDS = torch.tensor([[0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 1.0]])


def ready(x=WORDS, **settings):
    return prepared_features(Table(x, EDGES), FeatureOptions(**{"size": "none", **settings}))


def test_entries():
    assert torch.equal(ready(entries="raw"), WORDS)
    assert torch.equal(ready(entries="binary"), (WORDS > 0).float())
    assert torch.equal(ready(entries="row").sum(1), torch.tensor([1.0, 0.0, 1.0]))
    torch.testing.assert_close(ready(entries="l2").norm(dim=1), torch.tensor([1.0, 0.0, 1.0]))
    scored = ready(torch.randn(3, 4) * 7 + 3, entries="zscore")
    torch.testing.assert_close(scored.mean(0), torch.zeros(4), atol=1e-6, rtol=0)
    torch.testing.assert_close(scored.square().mean(0), torch.ones(4))


def test_counts_and_measures_are_told_apart():
    assert torch.equal(ready(entries="auto"), ready(entries="row"))
    measures = torch.tensor([[1.0, -2.0], [3.0, 4.0], [0.0, 1.0]])
    vectors = measures.repeat(1, 40)
    for numbers in (measures, vectors):
        assert torch.equal(ready(numbers, entries="auto"), ready(numbers, entries="zscore"))
    tables = (WORDS, measures, vectors)
    assert [kind_of_features(table) for table in tables] == ["words", "numbers", "vectors"]


def test_steps_are_for_a_few_numbers_of_many_nodes(monkeypatch):
    stream = torch.Generator().manual_seed(0)
    many, few = torch.randn(2 * STEPS, 2, generator=stream), torch.randn(2 * STEPS - 1, 2, generator=stream)
    for table, entries in (
        (many, "quantile"),
        (few, "zscore"),
        (many.repeat(1, 40), "zscore"),
        (WORDS, "row"),
    ):
        assert torch.equal(ready(table, entries="suited"), ready(table, entries=entries))
    monkeypatch.setattr(features, "UNASKED", many.numel() * STEPS - 1)
    assert torch.equal(ready(many, entries="suited"), ready(many, entries="zscore"))
    monkeypatch.undo()
    # a graph is seen as the one that the model was trained on was
    found = prepared_features(
        Table(few, EDGES), FeatureOptions(entries="suited", size="none"), like=Table(many, EDGES)
    )
    assert found.shape == (len(few), 2 * STEPS)


def test_numbers_along_their_quantiles():
    """numpy's piecewise linear interpolation says how many steps an entry has come."""
    x = torch.randn(300, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64).exp()
    come = ready(x, entries="quantile").reshape(300, 2, STEPS)
    assert float(come.min()) == 0
    assert float(come.max()) == 1
    for column in range(2):
        quantiles = np.sort(x[:, column])[np.arange(STEPS + 1) * 299 // STEPS]
        expected = np.interp(x[:, column], quantiles, np.arange(STEPS + 1.0))
        np.testing.assert_allclose(come[:, column].sum(1), expected, atol=1e-12)
        # a step begins where the one before has ended
        assert not ((come[:, column, 1:] > 0) & (come[:, column, :-1] < 1)).any()


def test_a_linear_map_of_quantiles_tells_numbers_apart_that_lie_close():
    """Classes in turn along a line of 40 values: of the number itself no linear map knows them."""
    values = torch.linspace(0, 1, 40)
    classes = (torch.arange(40) % 2).float()
    for entries, low, high in (("quantile", 0.99, 1.01), ("zscore", 0.0, 0.1)):
        table = torch.cat((ready(values[:, None], entries=entries), torch.ones(40, 1)), dim=1).double()
        weights = torch.linalg.lstsq(table, classes.double()[:, None], driver="gelsd").solution
        explained = 1 - (table @ weights - classes[:, None]).square().mean() / classes.var(unbiased=False)
        assert low <= float(explained) <= high


def test_few_values_have_few_steps():
    x = torch.tensor([[5.0, 0.0], [5.0, 1.0], [5.0, 0.0]])
    come = ready(x, entries="quantile").reshape(3, 2, STEPS)
    assert torch.equal(come[:, 0], torch.zeros(3, STEPS))
    assert torch.equal(come[:, 1].sum(1), x[:, 1])
    assert ready(x[:0], entries="quantile").shape == (0, 2 * STEPS)


def test_a_table_that_would_fill_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(features, "MOST", 12 * STEPS)
    assert ready(entries="quantile").shape == (3, 4 * STEPS)
    assert kind_of_features(torch.ones(3, 5)) == "vectors"
    with pytest.raises(UsageError, match=r"a table of 3 x 320 here; .*choose zscore, or row or binary"):
        ready(torch.zeros(3, 5), entries="quantile")


def test_a_constant_column_is_not_divided_by_nothing():
    x = torch.tensor([[5.0, 1.0], [5.0, 2.0], [5.0, 3.0]])
    assert torch.equal(ready(x, entries="zscore")[:, 0], torch.zeros(3))


def test_mixing():
    assert torch.equal(ready(entries="raw", mixing="power", hops=3), mix_hops(WORDS, EDGES, 3))
    assert torch.equal(ready(entries="raw", mixing="ppr", hops=4, alpha=0.3), ppr_mix(WORDS, EDGES, 0.3, 4))
    joined = torch.cat(joined_hops(WORDS, EDGES, 2, norm="row", loops=False), -1)
    got = ready(entries="raw", mixing="joined", hops=2, norm="row", loops=False)
    assert torch.equal(got, joined)


def test_size():
    rows = ready(entries="raw", size="l2", scale=3.0).norm(dim=1)
    torch.testing.assert_close(rows, torch.tensor([3.0, 0.0, 3.0]))
    table = ready(entries="raw", size="rms", scale=2.0)
    torch.testing.assert_close(table.square().sum(1).mean().sqrt(), torch.tensor(2.0))
    torch.testing.assert_close(table / table[0, 1], WORDS / WORDS[0, 1])


@pytest.mark.parametrize("wrong", [{"hops": -1}, {"alpha": 0.0}, {"scale": 0.0}, {"scale": float("nan")}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        FeatureOptions(**wrong)


@pytest.mark.parametrize("entries", ["zscore", "quantile", "l2", "row", "raw"])
@pytest.mark.parametrize("size", ["rms", "l2"])
@pytest.mark.parametrize("exponent", [-120, -80, 0, 80, 120])
def test_the_unit_of_measurement_changes_no_bit(entries, size, exponent):
    """A power of two is exact: squares of 1e±25 are not float32, and no separable column may be lost to them."""
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    usual = ready(x, entries=entries, size=size)
    scaled = ready(x * 2.0**exponent, entries=entries, size=size)
    assert torch.equal(scaled, usual)


def test_features_at_the_end_of_float32_stay_finite():
    x = torch.tensor([[3e38, -3e38], [-3e38, 3e38], [3e38, 3e38]])
    for entries in ("zscore", "quantile", "l2", "row"):
        for size in ("rms", "l2", "none"):
            assert ready(x, entries=entries, size=size).isfinite().all()


@pytest.mark.parametrize("size", ["none", "rms", "l2"])
@pytest.mark.parametrize("entries", ["auto", "raw", "binary", "row", "l2", "zscore", "quantile"])
def test_a_row_is_prepared_alike_in_whatever_company(entries, size):
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 50.0, 0.01]) + 3
    edges = torch.tensor([[0, 1], [1, 0]])
    options = FeatureOptions(entries=entries, size=size)
    trained = Table(x, edges)
    expected = prepared_features(trained, options)
    few = Table(x[:2], edges)
    assert torch.equal(prepared_features(few, options, like=trained), expected[:2])
    if entries in ("auto", "zscore", "quantile"):
        assert not torch.equal(prepared_features(few, options), expected[:2])


@pytest.mark.parametrize("mixing", ["power", "ppr", "joined"])
def test_the_usual_length_is_that_of_mixed_features_in_training(mixing):
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    options = FeatureOptions(entries="raw", mixing=mixing, hops=2)
    trained = Table(x, EDGES)
    assert torch.equal(prepared_features(trained, options, like=trained), prepared_features(trained, options))
    longer = prepared_features(Table(5 * x, EDGES), options, like=trained)
    torch.testing.assert_close(longer, 5 * prepared_features(trained, options))
