"""The explorer in a real browser: what it draws, how it answers, and what it must never do."""

import csv
import dataclasses as dc
import io
import math

import numpy as np
import pytest
import torch
from chromium import Chromium, find_chromium
from evil_runs import EVIL, NODES, small_graph

import gyroformer as gf
from gyroformer import geometry
from gyroformer.report.explorer import MOST_HEADS
from gyroformer.report.page import page
from gyroformer.report.projection import draw_head
from gyroformer.report.record import RunGraph, read_run

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="no Chromium here to open the page in")

#: what a name from outside might try
BAD = '<img src=x onerror="alert(1)">'
CURVATURES = (-1.2, 0.7, 0.0)
KINDS = ("hyperbolic", "spherical", "flat")


@pytest.fixture(scope="module")
def browser():
    with Chromium(webgl=False) as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def three(runs):
    """Return a run with a head of each kind, in two dimensions: nothing is lost in the picture."""
    run = read_run(runs["curved"], "curved")
    vectors = np.random.default_rng(1).normal(size=(NODES, 3, 2)) * 0.45
    results = {**run.results, "curvatures": [list(CURVATURES)]}
    ids = [*run.ids[:4], 'say "hi",\nyou', *run.ids[5:]]
    return dc.replace(run, ids=ids, embedding=vectors, curvature=np.array(CURVATURES), results=results)


@pytest.fixture(scope="module")
def written(three, folder):
    path = folder / "three.html"
    path.write_text(page([three]), encoding="utf-8")
    return path


@pytest.fixture
def shown(browser, written):
    return browser.open(written)


def positions(shown, view):
    return np.array(shown.run(f"Array.from(explorer.views[{view}].now)")).reshape(-1, 3)


def middle(shown, view):
    """Return the middle of a view on the screen, after scrolling to it."""
    shown.run(f"explorer.views[{view}].canvas.scrollIntoView({{ block: 'center' }})")
    shown.frame()
    box = shown.run(
        f"(() => {{ const b = explorer.views[{view}].canvas.getBoundingClientRect(); return [b.x, b.y, b.width]; }})()"
    )
    return box[0] + box[2] / 2, box[1] + box[2] / 2


def place(shown, view, node):
    """Return where a node is on the screen."""
    middle(shown, view)
    script = f"""(() => {{ const v = explorer.views[{view}], b = v.canvas.getBoundingClientRect();
      const [x, y] = v.toPixels(v.now[3 * {node}], v.now[3 * {node} + 1]);
      return [b.x + x / v.ratio, b.y + y / v.ratio]; }})()"""
    return shown.run(script)


def visible(shown, view=0):
    """Return a node that no other is near, on the side that is seen."""
    points = positions(shown, view)
    apart = np.linalg.norm(points[:, None, :2] - points[None, :, :2], axis=-1) + 9 * np.eye(len(points))
    return int(np.where(points[:, 2] >= 0, apart.min(1), -1).argmax())


def choose(shown, which, name):
    """Choose in the toolbar what nodes are coloured (0) or sized (1) by, if it is offered there."""
    shown.run(f"""(() => {{ const select = document.querySelectorAll('.toolbar select')[{which}];
      if (![...select.options].some((option) => option.value === {name!r})) return;
      select.value = {name!r};
      select.dispatchEvent(new Event('change')); }})()""")


def settle(shown):
    shown.wait_for("explorer.views.every((view) => !view.moving)")


def test_every_head_is_drawn_and_nothing_is_asked_for(shown):
    colours = shown.run(
        "explorer.views.map(({ pen, width, height }) => "
        "new Set(new Uint32Array(pen.getImageData(0, 0, width, height).data.buffer)).size)"
    )
    assert len(colours) == 3
    assert min(colours) > 20
    assert shown.run("document.querySelectorAll('svg polyline').length") >= 4
    assert shown.run("document.querySelector('.failed')") is None
    assert shown.complaints() == []


def test_positions_are_pythons(shown, three):
    for head, kind in enumerate(KINDS):
        drawing = draw_head(three.embedding[:, head], CURVATURES[head])
        assert shown.run(f"explorer.views[{head}].head.kind") == drawing.kind == kind
        found = positions(shown, head)
        if kind == "spherical":
            far = np.linalg.norm(drawing.vectors, axis=1, keepdims=True)
            angle = math.sqrt(CURVATURES[head]) * far
            want = np.hstack([drawing.vectors / far * np.sin(angle), np.cos(angle)])
        else:
            scale = drawing.reach if kind == "flat" else 1
            want = np.hstack([drawing.points / scale, np.zeros((NODES, 1))])
        np.testing.assert_allclose(found, want, atol=1e-5)


def test_distances_are_pythons(shown, three):
    k = torch.tensor(CURVATURES, dtype=torch.float64).unsqueeze(1)
    points = geometry.expmap0(torch.from_numpy(three.embedding), k=k)
    far = (
        torch.stack([geometry.pairwise_dist(points[:, h], points[:, h], k=k[h]) for h in range(3)])
        .square()
        .sum(0)
        .sqrt()
        .numpy()
    )
    for node in (0, 7, NODES - 1):
        nearest = shown.run(f"explorer.runs[0].nearest({node})")
        order = [other for other in np.argsort(far[node]) if other != node][: len(nearest)]
        assert [one["node"] for one in nearest] == order
        assert [one["distance"] for one in nearest] == pytest.approx(far[node][order].tolist(), abs=1e-5)
        joined = {int(b) for a, b in np.hstack([three.graph.edges, three.graph.edges[::-1]]).T if a == node}
        assert {one["node"] for one in nearest if one["edge"]} == joined & set(order)
        for one in shown.run(f"explorer.runs[0].neighbours({node})"):
            assert one["distance"] == pytest.approx(far[node, one["node"]], abs=1e-5)
            assert one["node"] in joined


def test_distances_are_those_of_the_estimator(browser, folder):
    embedder = gf.GraphEmbedder(epochs=3, dim=8, random_state=0).fit(small_graph())
    path = embedder.explore().save(folder / "estimator.html")
    shown = browser.open(path)
    for name in ("node-5", "node-39"):
        found = shown.run(f"explorer.runs[0].nearest(explorer.runs[0].graph.places.get('{name}'))")
        want = embedder.nearest(name, n=len(found))
        assert [one["distance"] for one in found] == pytest.approx([far for _, far in want], abs=1e-5)
    assert shown.complaints() == []


@pytest.mark.parametrize("view", range(3), ids=KINDS)
def test_a_drag_is_an_isometry(shown, view):
    script = f"""(() => {{ const {{ head, now }} = explorer.views[{view}], found = [];
      for (let i = 0; i < {NODES}; i += 3) for (let j = 1; j < {NODES}; j += 4)
        found.push(head.space.distance(now.subarray(3 * i, 3 * i + 3), now.subarray(3 * j, 3 * j + 3)));
      return found; }})()"""
    before, apart = positions(shown, view), shown.run(script)
    x, y = middle(shown, view)
    shown.drag((x - 30, y + 10), (x + 60, y - 40))
    shown.drag((x, y), (x + 10, y + 80))
    after = positions(shown, view)
    assert np.abs(after - before).max() > 0.05
    np.testing.assert_allclose(shown.run(script), apart, atol=1e-9)
    shown.run(f"explorer.views[{view}].reset()")
    np.testing.assert_allclose(positions(shown, view), before, atol=1e-12)


@pytest.mark.parametrize("view", range(3), ids=KINDS)
def test_what_is_dragged_stays_under_the_pointer(shown, view):
    node = visible(shown, view)
    start = place(shown, view, node)
    end = [start[0] - 12, start[1] + 9]
    shown.drag(start, end)
    np.testing.assert_allclose(place(shown, view, node), end, atol=1.5)


def test_a_click_selects_in_all_heads_and_the_list_is_a_path(shown, three):
    node = visible(shown)
    shown.click(*place(shown, 0, node))
    name = three.ids[node]
    assert shown.run("explorer.selected") == name
    assert shown.run("document.querySelector('.inspector .node .name').textContent") == name
    assert shown.run(f"explorer.views.every((view) => explorer.focusOf(view.run).node === {node})")
    rows = shown.run(
        "[...document.querySelectorAll('.nodes tbody tr')].map((row) => [...row.cells].map((c) => c.textContent))"
    )
    nearest = shown.run(f"explorer.runs[0].nearest({node})")
    assert [row[0] for row in rows] == [three.ids[one["node"]] for one in nearest]
    assert [row[2] for row in rows] == ["edge" if one["edge"] else "–" for one in nearest]
    shown.run("document.querySelector('.nodes .go').click()")
    assert shown.run("explorer.selected") == rows[0][0]
    shown.run("document.querySelector('.way .back').click()")
    assert shown.run("explorer.selected") == name
    shown.run("document.querySelectorAll('.tabs button')[1].click()")
    assert shown.run("document.querySelectorAll('.nodes tbody tr').length") == three.graph.degree[node]
    shown.click(*[v + 3 for v in middle(shown, 0)])
    shown.key("Escape")
    assert shown.run("explorer.selected") is None


def test_a_double_click_brings_a_node_to_the_middle(shown):
    node = visible(shown)
    shown.click(*place(shown, 0, node), count=2)
    shown.wait_for(
        f"Math.hypot(explorer.views[0].now[3 * {node}], explorer.views[0].now[3 * {node} + 1]) < 1e-9"
    )
    for view in range(3):  # in every head
        shown.wait_for(
            f"Math.hypot(explorer.views[{view}].now[3 * {node}], explorer.views[{view}].now[3 * {node} + 1]) < 1e-9"
        )


def test_search_completes_and_selects(shown):
    shown.key("/")
    assert shown.run("document.activeElement.id") == "search"
    shown.type("NODE-1")
    found = shown.run("[...document.querySelectorAll('#found .name')].map((one) => one.textContent)")
    assert found[:3] == ["node-10", "node-11", "node-12"]
    shown.key("ArrowDown")
    shown.key("Enter")
    assert shown.run("explorer.selected") == "node-11"
    shown.run("document.getElementById('search').value = ''")
    shown.type("no such node")
    assert "No node" in shown.run("document.getElementById('found').textContent")


def test_the_keyboard_is_enough(shown):
    shown.run("explorer.views[0].canvas.focus()")
    before = positions(shown, 0)
    shown.key("ArrowRight")
    assert np.abs(positions(shown, 0) - before).max() > 0.01
    zoom = shown.run("explorer.views[0].zoom")
    shown.key("+")
    assert shown.run("explorer.views[0].zoom") > zoom
    shown.key("0")
    np.testing.assert_allclose(positions(shown, 0), before, atol=1e-12)
    shown.key("Enter")
    nearest = int(np.linalg.norm(before[:, :2], axis=1).argmin())
    assert shown.run("explorer.focusOf(explorer.runs[0]).node") == nearest


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
