import dataclasses as dc
import json
import shutil
from html.parser import HTMLParser

import pytest
from evil_runs import EVIL
from unpacked import charts, page_block

from gyroformer.errors import CorruptFileError, DataError, UsageError
from gyroformer.report import write_report, write_run_report
from gyroformer.report.bundle import policy
from gyroformer.report.explorer import MOST_PICTURES
from gyroformer.report.page import page
from gyroformer.report.record import read_run
from gyroformer.runs import files

#: attributes that make a browser ask for something
LOADING = {"src", "href", "srcset", "data", "action", "poster", "background", "formaction", "ping"}


class Reader(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.loads, self.scripts, self.said, self._in = [], [], [], "", ""
        self.charts = charts(text)
        self.block = page_block(text)[0]
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self._in = tag
        self.tags.append((tag, dict(attrs)))
        self.loads += [(tag, key, value) for key, value in attrs if key in LOADING]

    def handle_endtag(self, tag):
        self._in = ""

    def handle_data(self, data):
        if self._in == "script":
            self.scripts.append(data)
        elif self._in != "style":
            self.said += data + "\n"


@pytest.fixture(scope="module")
def one(runs, tmp_path_factory):
    record = read_run(runs["curved"], "curved")
    return Reader(page([record]))


@pytest.fixture(scope="module")
def two(runs, tmp_path_factory):
    target = tmp_path_factory.mktemp("page") / "deep" / "report.html"
    assert write_report([runs["curved"], runs["flat"]], target) == target
    return Reader(target.read_text(encoding="utf-8"))


def results(folder):
    return json.loads((folder / "results.json").read_text())


def test_nothing_is_asked_for(one, two):
    for read in (one, two):
        assert read.loads == []
        found = [a["content"] for tag, a in read.tags if a.get("http-equiv") == "Content-Security-Policy"]
        assert found == [policy()]
        assert not any(
            "style" in attrs or any(key.startswith("on") for key in attrs) for _, attrs in read.tags
        )
        styles = [tag for tag, _ in read.tags if tag in ("link", "iframe", "img", "object", "embed", "base")]
        assert styles == []


def test_the_page_is_small(one, runs):
    assert [tag for tag, _ in one.tags].count("style") == 1
    assert [a.get("type") for tag, a in one.tags if tag == "script"].count("module") == 1
    assert len(page([read_run(runs["curved"], "curved")])) < 300_000


def test_ids_are_text_and_nothing_else(one, runs):
    assert one.block["graphs"][0]["ids"][: len(EVIL)] == list(EVIL)
    whole = page([read_run(runs["curved"], "<script>alert(2)</script>")])
    assert "<script>" not in whole
    assert "</script><b>" not in whole


def test_one_run_is_shown_whole(one, runs):
    found = results(runs["curved"])
    assert f"{found['map']:.2f}" in one.said
    assert f"{found['parameters']:,} parameters" in one.said
    assert "Side by side" not in one.said
    for name in ("curvature_lr", "identifiers", "arguments of fpst", "SHA-256 of the files", "torch"):
        assert name in one.said
    assert len(one.block["runs"][0]["heads"]) == len(found["curvatures"][0])
    assert set(one.charts) == {
        "Curvature, metric and loss over training",
        "Distance in the embedding against steps in the graph",
        "Sectional curvature of the graph",
    }


def test_several_runs_are_compared(two, runs):
    assert "Side by side" in two.said
    assert "model.name" in two.said
    assert "training.epochs" not in two.said  # the same in both
    best = max(results(runs[name])["map"] for name in ("curved", "flat"))
    comparison = (page([read_run(runs[name], name) for name in ("curved", "flat")])).split("<table")[1]
    assert comparison.count("<strong>") == 1
    assert f"{best:.2f}" in two.said
    losses = two.charts["Curvature, metric and loss over training"]["panels"][-1]["series"]
    assert [series["name"] for series in losses] == ["curved, loss", "flat, loss"]
    assert [run["name"] for run in two.block["runs"]] == ["curved", "flat"]


def test_a_graph_that_is_gone_is_said(runs, tmp_path):
    copy = shutil.copytree(runs["curved"], tmp_path / "copy")
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "graph.npz").unlink()  # as a version that kept no graph left it
    del manifest["files"]["graph.npz"], manifest["sha256"]
    manifest["sha256"] = files._own_checksum(manifest)
    (copy / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    write_report([copy], tmp_path / "r.html")
    read = Reader((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "does not say where its graph came from" in read.block["runs"][0]["note"]
    assert "counts" not in read.block["graphs"][0]
    assert set(read.charts) == {"Curvature, metric and loss over training"}


def test_a_leak_cannot_be_overlooked(runs):
    record = read_run(runs["labelled"], "labelled")
    clean = Reader(page([record]))
    assert "LEAKS" not in clean.said
    assert "train / validation / test" in clean.said
    split = {**record.results["split"], "leaks": 7}
    leaking = dc.replace(record, results={**record.results, "split": split})
    for shown in ([leaking], [record, dc.replace(leaking, name="leaking")]):
        said = Reader(page(shown)).said
        assert "LEAKS: 7 test nodes are training nodes" in said


def test_classes_and_links_have_figures_of_their_own(runs):
    read = Reader(page([read_run(runs["labelled"], "labelled")]))
    assert "Calibration" in read.charts
    assert "True classes (rows) against predicted ones" in read.said
    assert "On the test nodes" in read.said
    read = Reader(page([read_run(runs["linked"], "linked")]))
    assert "ROC curve of the test pairs" in read.charts
    assert "Likeliest missing edges" in read.said


def test_many_runs_are_not_all_explored(runs):
    record = read_run(runs["flat"], "flat")
    many = [dc.replace(record, name=f"flat-{i}") for i in range(MOST_PICTURES + 2)]
    read = Reader(page(many))
    assert len(read.block["runs"]) == MOST_PICTURES
    assert f"The first {MOST_PICTURES} runs are here" in read.said


def test_a_run_gets_its_page_beside_it(runs):
    written = write_run_report(runs["flat"])
    assert written == runs["flat"] / "report.html"
    assert "node-3" in page_block(written.read_text(encoding="utf-8"))[0]["graphs"][0]["ids"]
    write_report([runs["flat"]], written)  # its own page does not count as an altered file
    written.unlink()


def test_what_is_no_run_is_refused(runs, tmp_path):
    with pytest.raises(UsageError, match="is not a folder"):
        write_report([tmp_path / "none"], tmp_path / "r.html")
    with pytest.raises(DataError, match="holds no run"):
        write_report([tmp_path], tmp_path / "r.html")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "config.json").write_text("{}")
    with pytest.raises(DataError, match="no finished run"):
        write_report([tmp_path / "half"], tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_an_altered_run_is_refused(runs, tmp_path):
    copy = shutil.copytree(runs["flat"], tmp_path / "copy")
    (copy / "metrics.jsonl").write_text("")
    with pytest.raises(CorruptFileError, match="metrics"):
        write_report([copy], tmp_path / "r.html")


def test_a_place_that_cannot_be_written_is_said(runs, tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(UsageError, match="is a folder; name a file"):
        write_report([runs["flat"]], tmp_path / "taken")
