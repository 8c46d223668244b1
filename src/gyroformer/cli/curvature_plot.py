"""The histogram of a graph's curvature as one HTML page that needs no network."""

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from gyroformer.durable import write_output

if TYPE_CHECKING:
    from gyroformer.graphs.analysis.curvature import GraphCurvature

NEGATIVE, POSITIVE = "#2b6cb0", "#c0392b"


def write_plot(path: Path, graph: str, found: "GraphCurvature") -> None:
    """Write the histogram of ``found`` to ``path``, complete or not at all."""
    import plotly.graph_objects as go

    lows, width = found.edges[:-1], found.edges[1] - found.edges[0]
    fractions = [count / found.triples for count in found.counts]
    figure = go.Figure(
        go.Bar(
            x=[low + width / 2 for low in lows],
            y=fractions,
            width=[width * 0.96] * len(lows),
            marker_color=[NEGATIVE if low < 0 else POSITIVE for low in lows],
            customdata=[
                [low, high, count]
                for low, high, count in zip(lows, found.edges[1:], found.counts, strict=True)
            ],
            hovertemplate="%{customdata[0]:.2f} to %{customdata[1]:.2f}<br>"
            "%{customdata[2]:,} triples, %{y:.2%}<extra></extra>",
        )
    )
    error = "exact" if found.exact else f"± {found.standard_error:.4f}, sampled"
    figure.add_vline(x=found.mean, line_dash="dash", annotation_text=f"mean {found.mean:+.4f} ({error})")
    figure.update_layout(
        title=f"Sectional curvature of {escape(graph)}<br><sub>{found.reading}</sub>",
        xaxis_title=f"curvature of a triple ({found.triples:,} triples)",
        yaxis={"title": "fraction of the triples", "tickformat": ".0%"},
        template="plotly_white",
        bargap=0,
        showlegend=False,
    )
    page = figure.to_html(include_plotlyjs=True, full_html=True)
    write_output(path, page.encode())
