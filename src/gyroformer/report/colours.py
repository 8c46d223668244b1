"""The colours of every page, and the layout that all charts share."""

from typing import Any

INK, MUTED, FAINT, GRID = "#26323d", "#5d6b78", "#b9c2ca", "#e6eaee"
#: what a curvature's sign is called, and its colour
SPACES = {"hyperbolic": "#2f6690", "flat": "#5f7d4f", "spherical": "#c2662d"}
#: runs, in the order of the page
RUNS = ("#16697a", "#b5483a", "#7a5ea8", "#b7831f", "#4d7c3a", "#a0527a", "#2f6690", "#6b7280")
#: classes of nodes
CLASSES = (
    *("#2f6690", "#c2662d", "#4d7c3a", "#7a5ea8", "#b5483a", "#16a3a3", "#b7831f", "#a0527a"),
    *("#6b7280", "#8fa63f", "#5b8def", "#d98880", "#2e4053", "#76d7c4", "#7d6608", "#bb8fce"),
)
#: of the heads of one run
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
#: small to large, dark enough at both ends to be seen on white
SCALE = [[0.0, "#8fb8c9"], [0.35, "#3f88a6"], [0.7, "#1f4e79"], [1.0, "#b5483a"]]
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

Spec = dict[str, Any]


def run_colour(index: int) -> str:
    """Return the colour of the run at ``index``."""
    return RUNS[index % len(RUNS)]


def base_layout(height: int) -> Spec:
    """Return what all charts have in common."""
    return {
        "height": height,
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "font": {"family": FONT, "size": 12, "color": INK},
        "hoverlabel": {"font": {"family": FONT, "size": 12}, "bgcolor": "#ffffff", "bordercolor": FAINT},
        "colorway": list(RUNS),
    }


def axis(title: str, **more: Any) -> Spec:
    """Return an axis with light lines and no box."""
    return {
        "title": {"text": title, "standoff": 8},
        "gridcolor": GRID,
        "linecolor": FAINT,
        "zeroline": False,
        "automargin": True,
        **more,
    }
