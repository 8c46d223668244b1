"""The explorer in a real browser: what it draws, and how it moves and answers."""

import math

import numpy as np
import pytest
import torch
from chromium import find_chromium
from evil_runs import NODES, small_graph
from explorer_page import CURVATURES, KINDS, middle, place, positions, visible

import gyroformer as gf
from gyroformer import geometry
from gyroformer.report.projection import draw_head

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="no Chromium here to open the page in")


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
