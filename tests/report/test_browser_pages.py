"""The page in a real browser where it is not the usual one: odd graphs, hostile names, narrow and old screens."""

import dataclasses as dc

import numpy as np
import pytest
from chromium import Chromium, find_chromium
from evil_runs import EVIL, NODES
from explorer_page import KINDS, settle

from gyroformer.report.explorer import MOST_HEADS
from gyroformer.report.page import page
from gyroformer.report.record import RunGraph, read_run

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="no Chromium here to open the page in")

#: what a name from outside might try
BAD = '<img src=x onerror="alert(1)">'


def odd_runs(run):
    none = np.zeros((2, 0), dtype=np.int64)
    for nodes, edges in ((1, none), (2, np.array([[0], [1]])), (5, none)):
        graph = RunGraph(edges=edges, degree=np.bincount(edges.ravel(), minlength=nodes))
        ids = ["\udc80 is no text", *run.ids[1:nodes]]
        yield dc.replace(run, ids=ids, embedding=run.embedding[:nodes], graph=graph)
    yield dc.replace(run, graph=RunGraph(missing="gone"))
    yield dc.replace(run, embedding=np.zeros_like(run.embedding))
    many = np.random.default_rng(0).normal(size=(NODES, MOST_HEADS + 4, 3))
    yield dc.replace(run, embedding=many, curvature=np.linspace(-2, 2, MOST_HEADS + 4))


def test_odd_graphs_can_be_explored(browser, runs, folder):
    path = folder / "odd.html"
    for run in odd_runs(read_run(runs["curved"], "curved")):
        path.write_bytes(page([run]).encode(errors="backslashreplace"))
        shown = browser.open(path)
        shown.run("explorer.select(explorer.runs[0], 0); explorer.centre(explorer.runs[0], 0)")
        shown.frame()
        assert shown.run("explorer.views.length") == min(run.embedding.shape[1], MOST_HEADS)
        assert shown.run("document.querySelector('.inspector .node .name').textContent") == run.ids[0]
        assert shown.complaints() == []


def test_names_from_outside_are_text_and_nothing_else(browser, runs, folder):
    run = read_run(runs["labelled"], BAD)
    names = [BAD, "</script><script>alert(2)</script>", "{{x}}"]
    results = {**run.results, "label_names": names, "graph": f"/data/{BAD}.csv", "model": BAD, "recipe": BAD}
    bad = dc.replace(run, results=results, job={BAD: {BAD: BAD}}, manifest={**run.manifest, "platform": BAD})
    table = folder / "bad.csv"
    cells = "".join(f'"{name.replace(chr(34), chr(34) * 2)}",javascript:alert(3)\n' for name in run.ids)
    table.write_text(f'node,"{BAD.replace(chr(34), chr(34) * 2)}"\n{cells}')
    path = folder / "a&b<i>'.html"
    path.write_text(page([bad, dc.replace(bad, name="other")], node_data=table), encoding="utf-8")
    shown = browser.open(path)
    for node in range(len(EVIL)):
        shown.run(f"explorer.select(explorer.runs[0], {node})")
        assert shown.run("document.querySelector('.inspector .node .name').textContent") == EVIL[node]
    shown.run("explorer.views[0].hover(0, [10, 10])")
    assert shown.run("explorer.views[0].tip.querySelector('strong').textContent") == EVIL[0]
    for name in shown.run("explorer.runs[0].columns.map((column) => column.name)"):
        shown.run(f"explorer.colourBy = {name!r}; explorer.restyle()")
    shown.run("explorer.pick(explorer.runs[0], [0, 1, 2])")
    shown.key("/")
    shown.type("<")
    shown.frame()
    assert shown.run("[...document.querySelectorAll('img, b, iframe, a, object, embed')].length") == 0
    assert shown.run("[...document.scripts].filter((one) => !one.type || one.type === 'module').length") == 1
    assert BAD in shown.run("document.querySelector('#explorer').textContent")
    assert shown.complaints() == []


def test_a_script_that_got_in_would_not_run(browser, written, folder):
    path = folder / "changed.html"
    text = written.read_text(encoding="utf-8").replace(
        "<main>", "<main><script>window.hacked = 1</script>", 1
    )
    path.write_text(text, encoding="utf-8")
    shown = browser.open(path)
    assert shown.run("window.hacked") is None
    assert any("Content Security Policy" in str(one) for one in shown.complaints())


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_narrow_screen_shows_everything(browser, written, dark):
    shown = browser.open(written, width=400, height=900, dark=dark)
    assert shown.run("document.documentElement.scrollWidth") <= 400
    assert shown.run("getComputedStyle(document.body).backgroundColor") == (
        "rgb(16, 21, 27)" if dark else "rgb(245, 246, 248)"
    )
    assert shown.run("explorer.views[0].canvas.clientWidth") > 320
    assert shown.complaints() == []


def test_the_colours_can_be_chosen(shown):
    seen = []
    for _ in range(3):
        shown.run("document.getElementById('theme').click()")
        seen.append(shown.run("explorer.theme.ground"))
    assert seen == ["#ffffff", "#171e26", "#ffffff"]  # light, dark, as the system says


def test_the_graphics_card_draws_the_same(written, folder):
    script = """(() => [explorer.renderer.name, explorer.views.map((v) => Array.from(
      v.pen.getImageData(0, 0, v.width, v.height).data.filter((_, i) => i % 4 !== 3)))])()"""
    pictures = {}
    with Chromium(webgl=True) as card:
        for name in ("webgl", "canvas"):
            shown = card.open(written, fragment=name)
            settle(shown)
            pictures[name] = shown.run(script)
            assert shown.complaints() == []
    if pictures["webgl"][0] != "WebGL2":
        pytest.skip("this Chromium has no WebGL2, not even in software")
    assert pictures["canvas"][0] == "canvas"
    for view, kind in enumerate(KINDS):
        first, second = (np.array(pictures[name][1][view], dtype=float) for name in ("webgl", "canvas"))
        assert first.shape == second.shape
        # the same but for the smoothing of edges
        assert np.abs(first - second).mean() < 3, kind
        assert np.corrcoef(first, second)[0, 1] > 0.9, kind


def test_an_old_browser_is_told_why(browser, written, folder):
    text = written.read_text(encoding="utf-8")
    # as if there were no DecompressionStream; the policy must know the changed script
    from gyroformer.report.bundle import _source, script

    changed = f"delete window.DecompressionStream;\n{script()}"
    text = text.replace(script(), changed).replace(_source(script()), _source(changed))
    path = folder / "old.html"
    path.write_text(text, encoding="utf-8")
    shown = browser.open(path, wait=False)
    shown.wait_for("document.querySelector('.failed')")
    assert "too old" in shown.run("document.querySelector('.failed').textContent")


def test_a_notebook_shows_it_in_a_frame(browser, three, folder):
    from gyroformer.estimators.notebook import Explorer

    path = folder / "notebook.html"
    path.write_text(
        f"<!DOCTYPE html><body>{Explorer(page([three]), 700)._repr_html_()}</body>", encoding="utf-8"
    )
    shown = browser.open(path, wait=False)
    shown.wait_for("document.querySelector('iframe')")
    shown.frame()
    assert shown.run("document.querySelector('iframe').srcdoc") == page([three])
    assert shown.complaints() == []
