"""``gyroformer curvature``: how curved a graph is, before any model sees it."""

import dataclasses as dc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gyroformer.cli.options import (
    Header,
    Json,
    Seed,
    SourceColumn,
    TargetColumn,
    reading_options,
)
from gyroformer.cli.progress import progress
from gyroformer.cli.terminal import print_json, styled, terminal, visible
from gyroformer.durable import check_target

if TYPE_CHECKING:
    from rich.text import Text

    from gyroformer.graphs.analysis.curvature import GraphCurvature

Graph = Annotated[str, typer.Argument(metavar="GRAPH", help="A data set's name, or a graph file.")]
Samples = Annotated[
    int | None,
    typer.Option(
        "--samples", min=1, max=10**9, help="Draw this many nodes of each component instead of using all."
    ),
]
Exact = Annotated[bool, typer.Option("--exact", help="Use all nodes, however long it takes.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", help="Write the histogram as a self-contained HTML page.")
]
Fit = Annotated[
    bool,
    typer.Option(
        "--fit", help="Fit spaces of constant curvature instead: curved or flat, with an interval and a test."
    ),
]
Dim = Annotated[
    int | None,
    typer.Option(
        "--dim", min=2, max=16, help="With --fit: dimensions of the space; 2 by default.", show_default=False
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        min=1,
        max=100,
        help="With --fit: cuts into regions to average; 2 by default.",
        show_default=False,
    ),
]

#: rows of the histogram in the terminal, and the longest bar
ROWS, BAR = 25, 44
#: components listed one by one
LISTED = 8
_EIGHTHS = " ▏▎▍▌▋▊▉"


def curvature(
    graph: Graph,
    samples: Samples = None,
    exact: Exact = False,
    plot: Plot = None,
    fit: Fit = False,
    dim: Dim = None,
    seeds: Seeds = None,
    header: Header = None,
    source: SourceColumn = None,
    target: TargetColumn = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Measure the sectional curvature of a graph: trees negative, grids near zero, cycles positive.

    The mean of Gu et al.'s curvature over all triples of a node and two of its neighbours. Large graphs are
    sampled unless --exact is given; the output says so and states the standard error.

    With --fit: the space of constant curvature whose distances fit the graph's hops best, in units of a hop, its 95 %
    interval, and the p-value of the flat space.

    Example: gyroformer curvature web-edu --plot web-edu.html

    Example: gyroformer curvature web-edu --fit --dim 2
    """
    from gyroformer.cli.curvature_fit import check_options, fit_command

    check_options(
        fit, {"--dim": dim, "--seeds": seeds}, {"--samples": samples, "--exact": exact, "--plot": plot}
    )
    if fit:
        reading = reading_options(header, source, target)
        fit_command(graph, reading, dim=dim, seeds=seeds, seed=seed, as_json=as_json)
        return
    if plot is not None:
        check_target(plot, "--plot")
    from gyroformer.data.load import load
    from gyroformer.graphs.analysis.curvature import graph_curvature

    with progress() as shown:
        shown.show(f"reading {graph}")
        data = load(graph, **reading_options(header, source, target))
        found = graph_curvature(
            data.edge_index,
            data.num_nodes,
            samples=samples,
            exact=exact,
            seed=seed,
            progress=lambda done, of: shown.show(f"shortest paths: {done} of {of} blocks"),
        )
        if plot is not None:
            from gyroformer.cli.curvature_plot import write_plot

            write_plot(plot, graph, found)
    if as_json:
        print_json(_as_dict(graph, data.num_nodes, data.summary.edges, found, seed, plot))
    else:
        _print(graph, data.summary.line(), found, plot)


def _as_dict(
    graph: str, nodes: int, edges: int, found: "GraphCurvature", seed: int, plot: Path | None
) -> dict[str, Any]:
    result = dc.asdict(found)
    histogram = {"counts": result.pop("counts"), "edges": result.pop("edges")}
    head = {"graph": graph, "nodes": nodes, "edges": edges}
    tail = {"reading": found.reading, "histogram": histogram, "seed": None if found.exact else seed}
    return head | result | tail | {"plot": None if plot is None else str(plot)}


def _print(graph: str, summary: str, found: "GraphCurvature", plot: Path | None) -> None:
    console = terminal(soft_wrap=True)
    console.print(styled(graph).append(f": {visible(summary)}", "not bold"))
    console.print("sectional curvature", styled(signed(found.mean)), "", how(found))
    console.print(f"{found.triples:,} triples, standard deviation {found.std:.4f}")
    console.print()
    for row in histogram_rows(found, ascii_only=console.options.ascii_only):
        console.print(row)
    console.print()
    console.print(styled(found.reading))
    for line in component_lines(found):
        console.print(line)
    if plot is not None:
        console.print(f"plot: {plot}")


def signed(value: float) -> str:
    """Return ``value`` with a sign and four digits; what rounds to zero has no sign."""
    return f"{value:+.4f}" if round(value, 4) else "0.0000"


def how(found: "GraphCurvature") -> str:
    """Return in what way the mean was found."""
    if found.exact:
        return "(exact: every triple, every node)"
    drawn = max(part.sources for part in found.components)
    return (
        f"± {found.standard_error:.4f} (sampled: every triple, distances to {drawn:,} nodes drawn from each "
        "component; the histogram has sampling noise; --exact uses all nodes)"
    )


def component_lines(found: "GraphCurvature") -> list[str]:
    """Return what to say about several components; nothing if there is one."""
    if len(found.components) + found.flat_components == 1:
        return []
    lines = [
        "",
        "several components: distances are within each, the mean is over all triples",
        f"{'nodes':>10} {'edges':>12} {'triples':>16} {'curvature':>10}",
    ]
    for part in found.components[:LISTED]:
        how_many = "" if part.sources == part.nodes else "  sampled"
        lines.append(
            f"{part.nodes:>10,} {part.edges:>12,} {part.triples:>16,} {signed(part.mean):>10}{how_many}"
        )
    rest = len(found.components) - LISTED
    if rest > 0:
        lines.append(f"and {rest:,} smaller ones")
    if found.flat_components:
        lines.append(f"{found.flat_components:,} with a single node or edge, without a triple")
    return lines


def histogram_rows(found: "GraphCurvature", *, ascii_only: bool = False) -> "list[Text]":
    """Return the histogram, a row for each bin: blue below zero, red above."""
    from rich.text import Text

    edges, counts = coarser(found.edges, found.counts)
    largest = max(counts)
    rows = []
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        fraction = count / found.triples
        row = Text(f"{_edge(low)} {'to' if ascii_only else '…'} {_edge(high)} ")
        row.append(_bar(count / largest, ascii_only), style="blue" if low < 0 else "red")
        row.append(f" {fraction:.1%}" if fraction >= 0.0005 else (" <0.1%" if count else ""), style="dim")
        rows.append(row)
    return rows


def _edge(value: float) -> str:
    return f"{value:+.2f}" if round(value, 2) else " 0.00"


def coarser(edges: tuple[float, ...], counts: tuple[int, ...]) -> tuple[list[float], list[int]]:
    """Return the histogram with bins joined, at most ``ROWS`` of them; zero stays an edge."""
    width = edges[1] - edges[0]
    first = round(edges[0] / width)
    last = first + len(counts)
    # 1, 2, 5, 10 bins of 0.02 each: edges stay short numbers
    step = next(n for n in (1, 2, 5, 10, 25, 50, 100, 1000) if -(-last // n) - first // n <= ROWS)
    joined = [0] * (-(-last // step) - first // step)
    for i, count in enumerate(counts, start=first):
        joined[i // step - first // step] += count
    return [(first // step + i) * step * width for i in range(len(joined) + 1)], joined


def _bar(fraction: float, ascii_only: bool) -> str:
    if ascii_only:
        return "#" * round(fraction * BAR)
    eighths = round(fraction * BAR * 8)
    if fraction > 0:
        eighths = max(eighths, 1)  # what is there is seen
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
