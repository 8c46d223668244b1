"""``gyroformer demo``: the geometry at work on data that every machine has."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from gyroformer.cli.options import Json, Seed, Threads, print_json, set_threads

if TYPE_CHECKING:
    from gyroformer.demo.geometry import Row


def demo(as_json: Json = False, seed: Seed = 0, threads: Threads = 1) -> None:
    """Embed three graphs in the plane and in a space whose curvature is learned; nothing is downloaded.

    A tree, a ring, and the import graph of this Python's standard library. The curvature starts at 0 and
    finds its own sign. Takes about fifteen seconds.

    Example: gyroformer demo --seed 1
    """
    import time

    start = time.perf_counter()
    from rich.console import Console

    from gyroformer.demo.geometry import run

    set_threads(threads)
    with Console(stderr=True).status("starting") as status:
        rows = run(seed=seed, tell=status.update)
    seconds = time.perf_counter() - start
    if as_json:
        print_json({"rows": [asdict(row) for row in rows], "seed": seed, "seconds": seconds})
    else:
        _show(rows, seconds)


def _show(rows: list["Row"], seconds: float) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="graphs embedded in two dimensions", title_style="bold")
    for heading in ("graph", "nodes", "space", "curvature", "distortion", "seconds"):
        table.add_column(heading, justify="left" if heading in ("graph", "space") else "right")
    for row in rows:
        flat = row.space == "flat"
        size = (row.graph, f"{row.nodes}") if flat else ("", "")
        curvature = "0 (fixed)" if flat else f"{row.curvature:+.4f}"
        table.add_row(*size, row.space, curvature, f"{row.distortion:.2%}", f"{row.seconds:.1f}")
        if not flat:
            table.add_section()
    console = Console()
    console.print(table)
    console.print("distortion: mean of |distance / hops - 1| over all pairs of nodes")
    console.print("curvature:  learned, from 0; negative is hyperbolic, positive is spherical")
    console.print(f"{seconds:.0f} s in all, reading the sources included")
