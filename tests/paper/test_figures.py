"""The figures from rows and embeddings that are made up."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gyroformer.errors import CorruptFileError
from gyroformer.jobs.pool import run_folder
from gyroformer.paper import figures
from gyroformer.paper.tables import TABLES
from gyroformer.report.projection import centred_tangents
from gyroformer.runs import read
from gyroformer.runs.rows import key_of


def rows_of(*names, value=50.0):
    """Return rows of all widths of mammals, and of one width of the nouns."""
    cells = TABLES["hierarchies"].cells(models=names, seeds=1)
    some = [cell for cell in cells if cell.column.dataset == "mammals" or cell.column.width == 2]
    return {
        key_of(cell.job()): {"metric": cell.metric, "value": value + (cell.column.width or 0)}
        for cell in some
    }


def test_a_line_has_every_width_of_its_hierarchy():
    rows = rows_of("fpst", "tokengt")
    assert figures._lines("mammals", rows) == {
        name: [(width, 50.0 + width) for width in (2, 3, 5, 10)] for name in ("fpst", "tokengt")
    }
    assert figures._lines("nouns", rows) == {}  # one width of three


def test_hierarchies_have_a_panel_each():
    pytest.importorskip("matplotlib")
    assert figures._hierarchies({}) is None
    drawn = figures._hierarchies(rows_of("fpst", "flat points by inner product"))
    assert [axis.get_title() for axis in drawn.axes] == ["mammals"]
    assert {line.get_label() for line in drawn.axes[0].lines} == {"FPS-T", "flat points by inner product"}


def test_embeddings_are_seen_from_the_middle_of_each_head():
    tangent = np.random.default_rng(0).normal(size=(30, 2, 3)).astype(np.float32)
    flat = figures._seen_from_the_middle(tangent, None)
    x = torch.from_numpy(tangent).double()
    assert torch.allclose(flat, (x - x.mean(0)).flatten(1))
    k = np.array([-0.7, 0.4], np.float32)
    bent = figures._seen_from_the_middle(tangent, k)
    for head in (0, 1):
        wanted = centred_tangents(x[:, head], torch.tensor(float(k[head]), dtype=torch.float64))
        assert torch.allclose(bent[:, 3 * head : 3 * head + 3], wanted)


def test_embeddings_are_drawn_flat_beside_curved(tmp_path, monkeypatch):
    assert figures._pca(tmp_path) is None
    drawn = np.random.default_rng(0).normal(size=(20, 2, 3))
    run = SimpleNamespace(embeddings={"embedding": drawn, "curvature": np.array([-1.0, 0.2])})
    monkeypatch.setattr(read, "open_run", lambda folder: run)
    for cell in TABLES["table1"].cells(["web-edu"], ["fpst", "tokengt"], 1):
        folder = run_folder(tmp_path, cell.job())
        folder.mkdir(parents=True)
        (folder / "results.json").touch()
    axes = figures._pca(tmp_path).axes
    assert [axis.get_title() for axis in axes] == ["TokenGT, web-edu", "FPS-T, web-edu"]
    assert all(len(axis.collections[0].get_offsets()) == 20 for axis in axes)


def test_a_course_whose_run_is_gone_is_drawn_from_its_numbers(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    assert figures._training(tmp_path, tmp_path) is None
    cells = {cell.column.dataset: cell for cell in TABLES["one-head"].cells()}

    def run_with(dataset, curvature):
        folder = run_folder(tmp_path, cells[dataset].job())
        folder.mkdir(parents=True)
        (folder / "results.json").touch()
        row = {"epoch": 50, "metrics": {"map": 80.0}, "curvatures": [curvature]}
        monkeypatch.setattr(read, "open_run", lambda _: SimpleNamespace(history=[row, {"epoch": 51}]))
        return folder

    gone = run_with("power", -0.25)
    figures._training(tmp_path, tmp_path)
    (gone / "results.json").unlink()
    run_with("web-edu", -2.0)
    drawn = figures._training(tmp_path, tmp_path)
    assert [axis.get_title() for axis in drawn.axes[:2]] == ["web-edu", "power"]
    assert [axis.lines[0].get_ydata().tolist() for axis in drawn.axes[:2]] == [[-2.0], [-0.25]]
    assert "power,50,80.0,-0.25" in (tmp_path / "figure_training.csv").read_text()


def test_damaged_numbers_of_a_course_are_named(tmp_path):
    (tmp_path / "figure_training.csv").write_text("dataset,epoch,map,curvature\nweb-edu,50,high,-1.0\n")
    with pytest.raises(
        CorruptFileError, match=r"figure_training\.csv: .*line 2: map must be a number .*'high'"
    ):
        figures._training(tmp_path, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "{bad",
        '{"web-edu": 1}',
        '{"web-edu": {"mean": 0.1}}',
        '{"web-edu": {"mean": 0.1, "edges": [0, 1], "counts": [1, 2]}}',
        '{"web-edu": {"mean": "x", "edges": [0, 1], "counts": [1]}}',
        '{"web-edu": {"mean": null, "edges": [0, 1], "counts": [1]}}',
    ],
)
def test_a_damaged_file_of_histograms_is_named(text, tmp_path):
    file = tmp_path / "figure_sectional.json"
    file.write_text(text)
    with pytest.raises(CorruptFileError, match=r"figure_sectional\.json: "):
        figures._sectional(tmp_path, print)
    file.write_text('{"web-edu": {"mean": 0.1, "edges": [0, 1], "counts": [1]}}')
    assert set(figures._histograms(file)) == {"web-edu"}
