import json
from contextlib import nullcontext

import pytest
from unpacked import page_block

from gyroformer.demo.stdlib_graph import ImportGraph
from gyroformer.demo.twins import TWINS, make_room, run, write_graph
from gyroformer.errors import UsageError
from gyroformer.graphs.reading.read import read_graph
from gyroformer.settings import make_job

NODES = 31
#: a small library of modules
GRAPH = ImportGraph(
    names=tuple(f"pack.m{i:02d}" for i in range(NODES)),
    edges=tuple(((i - 1) // 2, i) for i in range(1, NODES)),
    python="3.0",
)


def demo(folder, **options):
    return run(folder, epochs=options.pop("epochs", 3), graph=GRAPH, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo") / "runs"


@pytest.fixture(scope="module")
def found(folder):
    return demo(folder)


def test_both_models_get_the_same_task(found, folder):
    jobs = {name: json.loads((folder / name / "config.json").read_text())["job"] for name in TWINS}
    assert (jobs["fpst"]["model"].pop("name"), jobs["flat"]["model"].pop("name")) == ("fpst", "tokengt")
    for name in ("curvature", "learn_curvature", "share_curvature"):  # which the flat twin does not have
        jobs["fpst"]["model"]["options"].pop(name)
    assert jobs["fpst"] == jobs["flat"]
    assert found.fpst["epochs"] == found.flat["epochs"] == 3
    assert found.fpst["nodes"] == NODES
    assert found.fpst["edges"] == NODES - 1
    assert any(k != 0 for k in found.fpst["curvatures"][0])
    assert not any(found.flat["curvatures"][0])


def test_the_page_compares_them_with_edges(found, folder):
    assert found.report == folder / "report.html"
    text = found.report.read_text(encoding="utf-8")
    assert "Side by side" in text
    about, _ = page_block(text)
    assert "pack.m07" in about["graphs"][0]["ids"]
    assert [run["note"] for run in about["runs"]] == ["", ""]
    assert not (folder / "fpst" / "report.html").exists()


def test_the_graph_file_is_a_graph(tmp_path):
    data = read_graph(write_graph(tmp_path / "new", GRAPH))
    assert sorted(data.ids) == list(GRAPH.names)
    assert data.summary.edges == NODES - 1


def test_running_again_replaces_the_runs(found, folder):
    again = demo(folder, seed=1)
    assert again.fpst["seed"] == 1
    assert again.fpst["map"] != found.fpst["map"]
    written = (folder / "fpst" / "results.json").stat().st_mtime_ns
    repeated = demo(folder)
    assert repeated.fpst["map"] == found.fpst["map"]
    # it was computed anew, not read
    assert (folder / "fpst" / "results.json").stat().st_mtime_ns > written


def test_an_interrupted_demo_goes_on(tmp_path):
    class Stop(Exception):
        pass

    def listen(progress):
        if progress.epoch == 2:
            raise Stop

    with pytest.raises(Stop):
        demo(tmp_path, listening=lambda: nullcontext(listen))
    before = (tmp_path / "fpst" / "config.json").read_text()
    file = write_graph(tmp_path, GRAPH)
    job = make_job(
        "embed", graph={"source": str(file)}, model={"name": "fpst"}, training={"epochs": 3}, seed=0
    )
    make_room(tmp_path / "fpst", job)
    assert (tmp_path / "fpst" / "config.json").read_text() == before
    assert demo(tmp_path).fpst["epochs"] == 3


def test_what_is_not_the_demos_is_not_touched(tmp_path):
    (tmp_path / "fpst").mkdir()
    keep = tmp_path / "fpst" / "thesis.txt"
    keep.write_text("mine")
    with pytest.raises(UsageError, match="not the demo's"):
        demo(tmp_path)
    other = {"job": {"task": "embed", "graph": {"source": "karate.csv"}}}
    (tmp_path / "fpst" / "config.json").write_text(json.dumps(other))
    with pytest.raises(UsageError, match="choose another --out"):
        demo(tmp_path)
    assert keep.read_text() == "mine"
