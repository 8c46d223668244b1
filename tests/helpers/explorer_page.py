"""What a test asks of the explorer in a browser: where nodes are, and what a hand would do."""

import numpy as np

#: heads of each kind
CURVATURES = (-1.2, 0.7, 0.0)
KINDS = ("hyperbolic", "spherical", "flat")


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
