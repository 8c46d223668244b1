import csv

import pytest
import torch

from gyroformer.bench import pairs
from gyroformer.ops.native import build


@pytest.fixture
def ring(tmp_path):
    path = tmp_path / "ring.csv"
    path.write_text("source,target\n" + "".join(f"{i},{(i + 1) % 600}\n" for i in range(600)))
    return path


@pytest.fixture(autouse=True)
def same_threads():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.skipif(build.library() is None, reason="no C++ compiler on this machine")
def test_rows_are_printed_and_written(ring, tmp_path, capsys):
    out = tmp_path / "pairs.csv"
    arguments = [str(ring), "--forms", "native,eager", "--rounds", "3", "--out", str(out)]
    assert pairs.main(arguments) == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [(r["columns"], r["form"]) for r in rows] == [
        *(("all", "native"), ("all", "eager")),
        *(("512", "native"), ("512", "eager")),
    ]
    assert all(float(r["milliseconds"]) > 0 and r["nodes"] == r["edges"] == "600" for r in rows)
    assert [float(r["over_native"]) for r in rows][::2] == [1, 1]
    for native, eager in (rows[:2], rows[2:]):
        ratio = float(eager["milliseconds"]) / float(native["milliseconds"])
        assert float(eager["over_native"]) == pytest.approx(ratio, rel=0.02)
    assert all(float(r["processor_milliseconds"]) > 0 for r in rows)
    assert rows[0]["torch"] == torch.__version__
    assert rows[0]["threads"] == "1"
    assert capsys.readouterr().out.count("native") == 6


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--forms", "nativ"], "did you mean 'native'"),
        (["web-edo"], "did you mean 'web-edu'"),
        (["--rounds", "0"], "at least 1"),
    ],
)
def test_wrong_arguments_are_named(arguments, words, capsys):
    assert pairs.main(arguments) == 2
    assert words in capsys.readouterr().err
