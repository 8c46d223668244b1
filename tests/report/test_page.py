import dataclasses as dc
import html
import json
import re
import shutil
from html.parser import HTMLParser

import pytest
from evil_runs import EVIL, NODES

from gyroformer.errors import CorruptFileError, DataError, UsageError
from gyroformer.report import write_report, write_run_report
from gyroformer.report.page import MOST_PICTURES, page
from gyroformer.report.record import read_run
from gyroformer.runs import files

#: attributes that make a browser ask for something
LOADING = {"src", "href", "srcset", "data", "action", "poster", "background", "formaction", "ping"}


class Reader(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.loads, self.scripts, self.said, self._in = [], [], [], "", ""
        self.plots = {}
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
            if self.tags[-1][1].get("id") == "plots":
                self.plots = json.loads(data)
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
        policy = [a["content"] for tag, a in read.tags if a.get("http-equiv") == "Content-Security-Policy"]
        assert policy == [
            "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"
        ]
        styles = [tag for tag, _ in read.tags if tag in ("link", "iframe", "img", "object", "embed", "base")]
        assert styles == []


def test_plotly_is_inside_once(one, two):
    for read in (one, two):
        assert [tag for tag, _ in read.tags].count("script") == 3
        assert sum(len(script) > 1e6 for script in read.scripts) == 1


def test_the_style_asks_for_nothing():
    from gyroformer.report import page as module

    style = (module.Path(module.__file__).parent / "page.css").read_text()
    assert "url(" not in style
    assert "@import" not in style


def test_ids_are_text_and_nothing_else(one, runs):
    drawn = json.dumps(one.plots)
    for name in EVIL:
        assert json.dumps(html.escape(name, quote=False))[1:-1] in drawn
    whole = page([read_run(runs["curved"], "<script>alert(2)</script>")])
    assert not re.search(r"<script>alert|</script><b>", whole)
    assert all("alert(" not in script for script in Reader(whole).scripts if len(script) > 1e6)


def test_one_run_is_shown_whole(one, runs):
    found = results(runs["curved"])
    assert f"{found['map']:.2f}" in one.said
    assert f"{found['parameters']:,} parameters" in one.said
    assert "Side by side" not in one.said
    for name in ("curvature_lr", "identifiers", "arguments of fpst", "SHA-256 of the files", "torch"):
        assert name in one.said
    heads = len(found["curvatures"][0])
    assert set(one.plots) == {"loss", "metric", "curvature", *(f"run0-head{i}" for i in range(heads))}
    assert {a["data-plot"] for _, a in one.tags if "data-plot" in a} == set(one.plots)


def test_several_runs_are_compared(two, runs):
    assert "Side by side" in two.said
    assert "model.name" in two.said
    assert "training.epochs" not in two.said  # the same in both
    best = max(results(runs[name])["map"] for name in ("curved", "flat"))
    strong = [i for i, (tag, _) in enumerate(two.tags) if tag == "strong"]
    assert len(strong) == 1
    assert f"{best:.2f}" in two.said
    assert [trace["name"] for trace in two.plots["loss"]["data"]] == ["curved", "flat"]
    assert {name for name in two.plots if name.startswith("run1")}


def test_a_graph_that_is_gone_is_said(runs, tmp_path):
    copy = shutil.copytree(runs["curved"], tmp_path / "copy")
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "graph.npz").unlink()  # as a version that kept no graph left it
    del manifest["files"]["graph.npz"], manifest["sha256"]
    manifest["sha256"] = files._own_checksum(manifest)
    (copy / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    write_report([copy], tmp_path / "r.html")
    read = Reader((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "does not say where its graph came from" in read.said
    assert all(len(read.plots[name]["data"]) == 1 for name in read.plots if name.startswith("run"))


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


def test_classes_have_colours(runs):
    read = Reader(page([read_run(runs["labelled"], "labelled")]))
    traces = [trace for trace in read.plots["run0-head0"]["data"] if trace["mode"] == "markers"]
    assert [trace["name"] for trace in traces] == ["class 0", "class 1", "class 2"]
    assert sum(len(trace["x"]) for trace in traces) == NODES
    assert "true classes" in read.said
    record = read_run(runs["labelled"], "labelled")
    without = Reader(page([dc.replace(record, graph=dc.replace(record.graph, labels=None))]))
    assert "predicted classes" in without.said


def test_many_runs_do_not_draw_every_embedding(runs):
    record = read_run(runs["flat"], "flat")
    many = [dc.replace(record, name=f"flat-{i}") for i in range(MOST_PICTURES + 2)]
    read = Reader(page(many))
    assert f"run{MOST_PICTURES - 1}-head0" in read.plots
    assert f"run{MOST_PICTURES}-head0" not in read.plots
    assert f"first {MOST_PICTURES} runs" in read.said


def test_a_run_gets_its_page_beside_it(runs):
    written = write_run_report(runs["flat"])
    assert written == runs["flat"] / "report.html"
    assert "node-3" in written.read_text(encoding="utf-8")
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
