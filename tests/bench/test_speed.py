import json

import pytest
import torch

from gyroformer.bench import profile, speed
from gyroformer.bench.geoopt_twin import GeooptTransformer
from gyroformer.errors import UsageError
from gyroformer.nn import StereographicTransformer
from gyroformer.ops.native import build, fused


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(speed.CASES, "tiny", speed.Case(300, 8, 2, 1))


def test_rows_and_ratios(tiny, tmp_path):
    said = []
    rows = list(speed.measure(["tiny"], ["ours", "flat", "geoopt"], rounds=2, memory=False, said=said.append))
    assert [(r["pass"], r["variant"]) for r in rows] == [
        (kind, variant) for kind in ("forward", "training") for variant in ("ours", "flat", "geoopt")
    ]
    assert all(r["milliseconds"] > 0 for r in rows)
    by_variant = {r["variant"]: r["milliseconds"] for r in rows if r["pass"] == "training"}
    training = speed.ratios(rows)[1]
    assert training["eager ours/flat"] == pytest.approx(by_variant["ours"] / by_variant["flat"], abs=2e-3)
    assert training["compiled ours/flat"] is None
    speed.save(tmp_path / "speed.json", rows)
    assert json.loads((tmp_path / "speed.json").read_text())["environment"]["torch"] == torch.__version__
    assert said


def test_memory_is_that_of_the_step():
    peak = speed.peak_memory("ours", speed.Case(200_000, 16, 2, 1))
    assert peak is None or 30 < peak < 400  # the tokens alone are 13 MB, q, k and v together 38


def test_wrong_names_are_named():
    with pytest.raises(UsageError, match="did you mean 'facebook'"):
        next(speed.measure(["facebok"], ["ours"], rounds=1, memory=False, said=print))
    with pytest.raises(UsageError, match="did you mean 'flat'"):
        next(speed.measure(["web-edu"], ["flatt"], rounds=1, memory=False, said=print))


@pytest.mark.parametrize("k", [[-0.8, 0.3], [-0.3, -0.1]])
def test_the_geoopt_twin_is_the_same_model(k):
    """Away from the equator, the pole and the edge, where the published form breaks down."""
    torch.manual_seed(0)
    model = StereographicTransformer(8, 2, 2, curvature=k).double()
    tokens = 0.5 * torch.randn(20, 8, dtype=torch.float64)
    with fused.torch_forms():
        torch.testing.assert_close(GeooptTransformer(model)(tokens), model(tokens), rtol=1e-6, atol=1e-7)


def test_a_profile_names_the_kernels(tiny):
    text = profile.table("tiny", "ours")
    assert text.startswith("tiny, ours: ")
    assert "calls" in text
    if build.library() is not None:
        assert "gyroformer::attention_backward" in text
