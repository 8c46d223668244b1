"""``gyroformer report``: a run, or several side by side, as one HTML page."""

from pathlib import Path
from typing import Annotated

import typer

from gyroformer.cli.options import Json
from gyroformer.cli.terminal import print_json, say


def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders, or folders that hold runs.")
    ],
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("report.html"),
    as_json: Json = False,
) -> None:
    """Show runs: metrics, curves, curvatures, embeddings and settings on a page that needs no network.

    Several runs are compared. A folder that holds runs (as --seeds leaves it) stands for all of them.

    Example: gyroformer report runs/cora-classify-fpst runs/cora-classify-tokengt --out cora.html
    """
    from gyroformer.jobs.so_far import usable_run
    from gyroformer.report import write_report

    written = write_report([usable_run(run) for run in runs], out)
    if as_json:
        print_json({"report": str(written), "bytes": written.stat().st_size})
    else:
        say(f"{written}: open it in a browser ({written.stat().st_size / 1e6:.1f} MB)")
