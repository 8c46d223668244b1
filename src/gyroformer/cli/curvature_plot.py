"""The histogram of a graph's curvature as one HTML page that needs no network."""

from pathlib import Path
from typing import TYPE_CHECKING

from gyroformer.durable import write_output

if TYPE_CHECKING:
    from gyroformer.graphs.analysis.curvature import GraphCurvature


def write_plot(path: Path, graph: str, found: "GraphCurvature") -> None:
    """Write the histogram of ``found`` to ``path``, complete or not at all."""
    from gyroformer.report.markup import figure
    from gyroformer.report.page import header_markup, shell
    from gyroformer.report.structure import curvature_chart

    error = "exact" if found.exact else f"± {found.standard_error:.4f}, sampled"
    said = (
        f"{found.triples:,} triples of a node and two of its neighbours; mean {found.mean:+.4f} ({error}), standard "
        f"deviation {found.std:.4f}."
    )
    chart = figure(curvature_chart(found), "Histogram", said)
    header = header_markup("sectional curvature", graph, f"The graph is {found.reading}.")
    page = shell(f"Sectional curvature of {graph}", header, f"<section>{chart}</section>")
    write_output(path, page.encode(errors="backslashreplace"))
