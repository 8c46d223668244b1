import json
import shutil
import subprocess

import pytest
import torch

from gyroformer.bench import profile, speed
from gyroformer.bench.geoopt_twin import GeooptTransformer
from gyroformer.cli.bench import bench
from gyroformer.errors import UsageError
from gyroformer.nn import StereographicTransformer
from gyroformer.nn.transformer import FlatTransformer
from gyroformer.ops.native import build, fused

LEAN = {"qkv": "attention", "out": "attention", "up": "ffn", "down": "ffn"}


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(speed.CASES, "tiny", speed.Case(300, 8, 2, 1))


def test_rows_and_ratios(tiny, tmp_path):
    said = []
    (rows,) = speed.measure(["tiny"], ["ours", "flat", "geoopt"], rounds=2, memory=False, said=said.append)
    assert [(r["pass"], r["variant"]) for r in rows] == [
        (kind, variant) for kind in ("forward", "training") for variant in ("ours", "flat", "geoopt")
    ]
    assert all(r["milliseconds"] > 0 for r in rows)
    by_variant = {r["variant"]: r["milliseconds"] for r in rows if r["pass"] == "training"}
    training = speed.ratios(rows)[1]
    assert training["eager ours/flat"] == pytest.approx(by_variant["ours"] / by_variant["flat"], abs=2e-3)
    assert training["compiled ours/flat"] is None
    assert training["ours/flat"] is None  # the better of two needs both
    speed.save(tmp_path / "speed.json", rows)
    assert json.loads((tmp_path / "speed.json").read_text())["environment"]["torch"] == torch.__version__
    assert said


def test_the_best_of_ours_is_compared_with_the_best_of_flat():
    times = {"ours": 3.0, "ours compiled": 2.0, "flat": 1.0, "flat compiled": 4.0, "geoopt": 8.0}
    rows = [
        {"case": "a", "pass": "training", "variant": variant, "milliseconds": ms, "peak_mb": ms}
        for variant, ms in times.items()
    ]
    (found,) = speed.ratios(rows)
    assert found == {
        **{"case": "a", "pass": "training", "ours/flat": 2.0, "eager ours/flat": 3.0},
        **{"compiled ours/flat": 0.5, "ours compiled/eager": 0.667, "geoopt/ours": 4.0},
        "memory ours/flat": 2.0,
    }


def test_the_spread_is_that_of_the_middle_half():
    assert speed.spread([1.0, 2.0, 2.0, 2.0, 9.0]) == pytest.approx(4 / 2 / 2)
    assert speed.spread([3.0]) == 0


@pytest.mark.parametrize("attention", ["linear", "softmax"])
def test_the_flat_twin_is_ours_at_curvature_0(attention):
    """Its weights under our names: the same model, so that the comparison is of like with like."""
    case = speed.Case(30, 8, 2, 2, attention)
    flat, ours = speed.build("flat", case)[0], FlatTransformer(8, 2, 2, attention=attention)
    names = {
        "encoder.layers": "blocks",
        "self_attn.in_proj_": "attention.qkv.",
        "self_attn.out_proj": "attention.out",
    }
    names |= {"linear1": "ffn.up", "linear2": "ffn.down"}
    if attention == "linear":
        names = {f".{name}.": f".{to}.{name}." for name, to in LEAN.items()}
    weights = {}
    for name, value in flat.state_dict().items():
        for one, other in names.items():
            name = name.replace(one, other)
        weights[name] = value
    ours.load_state_dict(weights)
    tokens = torch.randn(30, 8)
    torch.testing.assert_close(flat(tokens), ours(tokens).flatten(1), rtol=1e-4, atol=1e-5)


def test_softmax_has_no_geoopt_twin(monkeypatch):
    monkeypatch.setitem(speed.CASES, "tiny", speed.Case(40, 8, 2, 1, "softmax", geoopt=False))
    (rows,) = speed.measure(["tiny"], ["ours", "flat", "geoopt"], rounds=2, memory=False, said=print)
    assert {row["variant"] for row in rows} == {"ours", "flat"}


def test_a_file_keeps_the_rows_of_other_cases_and_drops_those_of_an_earlier_form(tmp_path):
    path = tmp_path / "speed.json"
    path.write_text(
        '{"rows": [{"case": "web-edu", "pass": "forward", "variant": "ours", "milliseconds": 1}]}'
    )
    row = dict.fromkeys(speed.COLUMNS) | {"pass": "forward", "variant": "ours", "milliseconds": 2.0}
    speed.save(path, [row | {"case": "wide"}])
    speed.save(path, [row | {"case": "web-edu", "milliseconds": 3.0}])
    speed.save(path, [row | {"case": "wide", "milliseconds": 4.0}])
    rows = json.loads(path.read_text())["rows"]
    assert [(row["case"], row["milliseconds"]) for row in rows] == [("web-edu", 3.0), ("wide", 4.0)]


def test_a_slow_variant_ends_early_and_the_others_go_on():
    now = 0.0

    def step(seconds):
        def run():
            nonlocal now
            now += seconds

        return run

    steps = {"quick": step(0.5), "slow": step(3.0), "slow compiled": step(3.0)}
    found = speed.interleaved(steps, 9, clock=lambda: now, patience=5.0)
    assert found == {"quick": [0.5] * 9, "slow": [3.0] * 2, "slow compiled": [3.0] * 2}
    assert now == 2 * 0.5 + 3.0 + 2 * 3.0 + 9 * 0.5 + 4 * 3.0  # warm: twice, a long one once, compiled twice


def test_one_case_after_the_other_is_written(tiny, tmp_path, monkeypatch):
    """Stopped in the second case, the file has the first."""
    monkeypatch.setitem(speed.CASES, "broken", speed.Case(0, 7, 2, 1))
    path = tmp_path / "speed.json"
    with pytest.raises(ValueError, match="7"):
        bench(["tiny", "broken"], variants="ours", rounds=1, memory=False, out=path)
    assert {row["case"] for row in json.loads(path.read_text())["rows"]} == {"tiny"}


def test_memory_is_that_of_the_step():
    peak = speed.peak_memory("ours", speed.Case(200_000, 16, 2, 1))
    assert peak is None or 30 < peak < 500  # the tokens alone are 13 MB, q, k and v together 38


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
        assert "gyroformer::attention_step" in text


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_commit_is_dirty_by_its_source_alone(tmp_path):
    def git(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        return subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True, text=True)

    source, results = tmp_path / "src", tmp_path / "results"
    for folder in (source, results):
        folder.mkdir()
        (folder / "file").write_text("as it was")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "all")
    clean = git("rev-parse", "--short=12", "HEAD").stdout.strip()
    (results / "file").write_text("with another row")
    assert speed.commit(source) == clean
    (source / "file").write_text("with another line")
    assert speed.commit(source) == f"{clean}-dirty"


def test_without_a_checkout_there_is_no_commit(tmp_path):
    assert speed.commit(tmp_path) is None
