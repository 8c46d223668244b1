"""``gyroformer report``: a run, or several side by side, as one page to explore; or a run in another format."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from gyroformer.cli.options import Json
from gyroformer.cli.progress import progress
from gyroformer.cli.terminal import print_json, say
from gyroformer.errors import UsageError

Format = Literal["html", "png", "svg", "gexf", "tsv"]


def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders, or folders that hold runs.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The file to write; report.html, or report.FORMAT, by default.")
    ] = None,
    node_data: Annotated[
        Path | None,
        typer.Option(
            help="A table of more columns for the nodes (id first) to colour and size by, and to search."
        ),
    ] = None,
    format: Annotated[
        Format,
        typer.Option(
            help="html: the explorer; png, svg: a still; gexf: for Gephi; tsv: for the Embedding Projector."
        ),
    ] = "html",
    fit: Annotated[
        bool,
        typer.Option(
            "--fit",
            help="Say whether the graph is better embedded curved or flat; some ten seconds for each run.",
        ),
    ] = False,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    as_json: Json = False,
) -> None:
    """Explore runs: each head in its own space, nearest nodes, curves, and the run in words, on one page offline.

    Several runs are compared. A folder that holds runs (as --seeds leaves it) stands for all of them.

    Example: gyroformer report runs/cora-classify-fpst --node-data papers.csv --open
    """
    from gyroformer.jobs.so_far import usable_run
    from gyroformer.report import export_run, read_runs, write_report
    from gyroformer.report.page import check_report_target
    from gyroformer.report.record import run_folders

    target = out or Path(f"report.{format}")
    if open_it and format in ("gexf", "tsv"):
        raise UsageError(f"--open shows a page or a picture, and --format {format} is neither: leave one out")
    if fit and format != "html":
        raise UsageError(f"--fit is said on the page, and --format {format} is none: leave one out")
    runs = [usable_run(run) for run in runs]
    with progress() as shown:
        if format == "html":
            tell = lambda done, of: shown.show(f"distances: {done:,} of {of:,} nodes")  # noqa: E731
            files = [write_report(runs, target, node_data=node_data, fit=fit, progress=tell)]
        else:
            check_report_target(target, run_folders(runs))
            found = read_runs(runs)
            if len(found) > 1:
                raise UsageError(f"--format {format} takes one run, and {len(found)} were named: name one")
            files = export_run(found[0], target, format, node_data=node_data)
    if open_it:
        typer.launch(files[0].resolve().as_uri())
    sizes = [file.stat().st_size for file in files]
    if as_json:
        more = {} if len(files) == 1 else {"files": [str(file) for file in files]}
        print_json({"report": str(files[0]), "bytes": sizes[0], **more})
    elif format == "html":
        opened = "opened" if open_it else "open it"
        say(f"{files[0]}: {opened} in a browser ({size_text(sizes[0])})")
    else:
        for file, size in zip(files, sizes, strict=True):
            say(f"{file} ({size_text(size)})")


def size_text(size: int) -> str:
    """Return a number of bytes as people read it: kB below a megabyte."""
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} kB"
