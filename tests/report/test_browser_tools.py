"""The explorer's tools in a real browser: picking, colours and sizes, links, runs side by side."""

import csv
import io
import math

import numpy as np
import pytest
from chromium import find_chromium
from evil_runs import NODES
from explorer_page import CURVATURES, choose, middle, place

from gyroformer.report.page import page
from gyroformer.report.projection import draw_head
from gyroformer.report.record import read_run

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="no Chromium here to open the page in")


@pytest.mark.parametrize("tool", ["box", "lasso"])
def test_picked_nodes_are_a_table(shown, three, tool):
    shown.run(f"[...document.querySelectorAll('.toolbar button')].find((b) => b.value === '{tool}').click()")
    shown.run("window.saved = []; window.make = URL.createObjectURL")
    shown.run("URL.createObjectURL = (blob) => { saved.push(blob); return make(blob); }")
    x, y = middle(shown, 2)
    corners = [(x - 90, y - 70), (x + 80, y - 70), (x + 80, y + 90), (x - 90, y + 90)]
    if tool == "box":
        shown.drag(corners[0], corners[2])
    else:
        shown.mouse("move", *corners[0])
        shown.mouse("down", *corners[0])
        for corner in (*corners[1:], corners[0]):
            shown.mouse("move", *corner, held=True)
        shown.mouse("up", *corners[0])
    shown.frame()
    picked = shown.run("[...explorer.picked]")
    inside = []
    for node in range(NODES):
        px, py = place(shown, 2, node)
        inside += [three.ids[node]] if -90 < px - x < 80 and -70 < py - y < 90 else []
    assert 0 < len(inside) < NODES
    assert sorted(picked) == sorted(inside)
    shown.run("document.querySelector('.picked .primary').click()")
    rows = list(csv.DictReader(io.StringIO(shown.run("saved[0].text()"))))
    assert sorted(row["id"] for row in rows) == sorted(inside)
    one = rows[0]
    node = three.ids.index(one["id"])
    assert int(one["degree"]) == three.graph.degree[node]
    vectors = draw_head(three.embedding[:, 0], CURVATURES[0]).vectors
    assert [float(one["Head 1 x"]), float(one["Head 1 y"])] == pytest.approx(vectors[node].tolist(), abs=1e-5)
    shown.run(f"explorer.pick(explorer.runs[0], Array.from({{ length: {NODES} }}, (_, i) => i))")
    shown.run("document.querySelector('.picked .primary').click()")
    everyone = csv.DictReader(io.StringIO(shown.run("saved[1].text()"), newline=""))
    assert [row["id"] for row in everyone] == three.ids


def test_nodes_are_coloured_and_sized_by_every_column(browser, runs, folder):
    run = read_run(runs["labelled"], "labelled")
    (folder / "more.csv").write_text(
        "node,height,kind\n" + "".join(f"node-{i},{i / 7},{'ab'[i % 2]}\n" for i in range(3, 40))
    )
    path = folder / "labelled.html"
    path.write_text(page([run], node_data=folder / "more.csv"), encoding="utf-8")
    shown = browser.open(path)
    names = shown.run("explorer.runs[0].columns.map((column) => column.name)")
    assert {
        "class",
        "predicted class",
        "right or wrong",
        "degree",
        "height",
        "kind",
        "distance from the centre",
    } <= set(names)
    for name in names:
        choose(shown, 0, name)
        choose(shown, 1, name)  # numbers only
        colours = np.array(shown.run("Array.from(explorer.styleOf(explorer.runs[0]).colours)")).reshape(-1, 4)
        assert len(np.unique(colours[:, :3], axis=0)) > 1, name
        assert shown.run("document.querySelector('.legend h3').textContent") == name
    assert shown.run("new Set(explorer.styleOf(explorer.runs[0]).sizes).size") > 5
    # the first three ids are not in the table
    assert shown.run("Array.from(explorer.runs[0].column('kind').values.slice(0, 5))") == [-1, -1, -1, 1, 0]
    choose(shown, 0, "class")
    shown.run("document.querySelector('.legend .entries button').click()")
    faded = shown.run(
        "explorer.styleOf(explorer.runs[0]).colours.filter((_, i) => i % 4 === 3 && _ < 100).length"
    )
    assert faded == int((run.graph.labels != 0).sum())
    assert "P" in shown.run(
        "(explorer.select(explorer.runs[0], 3), "
        "[...document.querySelectorAll('.nodes th')].map((one) => one.textContent))"
    )
    assert shown.complaints() == []


def test_a_link_run_says_how_likely_an_edge_is(browser, runs, folder):
    run = read_run(runs["linked"], "linked")
    path = folder / "linked.html"
    path.write_text(page([run]), encoding="utf-8")
    shown = browser.open(path)
    one = shown.run("explorer.runs[0].nearest(4)")[0]
    decoder = run.results["decoder"]
    want = 1 / (1 + math.exp((one["distance"] ** 2 - decoder["radius"]) / decoder["temperature"]))
    assert shown.run(f"explorer.runs[0].edgeProbability({one['distance']!r})") == pytest.approx(
        want, abs=1e-9
    )
    assert shown.complaints() == []


def test_runs_side_by_side_are_linked(browser, runs, folder):
    both = [read_run(runs[name], name) for name in ("curved", "flat")]
    path = folder / "both.html"
    path.write_text(page(both), encoding="utf-8")
    shown = browser.open(path)
    assert shown.run("document.querySelectorAll('.views canvas').length") == 4
    shown.run("explorer.select(explorer.runs[1], 9)")
    assert shown.run("explorer.runs.map((run) => explorer.focusOf(run).node)") == [9, 9]
    assert shown.run("explorer.active.name") == "flat"
    shown.run("document.querySelectorAll('.runs button')[0].click()")
    assert shown.run("document.querySelectorAll('.views canvas').length") == 2
    assert shown.complaints() == []
