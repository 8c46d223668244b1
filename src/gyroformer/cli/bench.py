"""``gyroformer bench``: speed and memory beside the flat twin and a geoopt-composed twin, in one run."""

from pathlib import Path
from typing import Annotated

import typer

from gyroformer.cli.options import Json, Threads, set_threads
from gyroformer.cli.terminal import print_json, say, terminal
from gyroformer.durable import check_target

HEADERS = ("ours/flat", "eager", "geoopt/ours", "eager", "memory", "eager")


def bench(
    cases: Annotated[
        list[str] | None,
        typer.Argument(help="web-edu, facebook, wide, big (default: these four), huge.", show_default=False),
    ] = None,
    variants: Annotated[
        str, typer.Option(help="Which to run, separated by commas.")
    ] = "ours,ours compiled,flat,flat compiled,geoopt",
    rounds: Annotated[int, typer.Option(min=1, max=10_000, help="Timed rounds; the median is reported.")] = 9,
    memory: Annotated[
        bool, typer.Option(help="Measure peak memory too, each variant in a fresh process.")
    ] = True,
    out: Annotated[
        Path | None, typer.Option(help="Write rows, ratios and environment to this JSON file.")
    ] = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Measure forward pass and training step of FPS-T, its flat twin and a geoopt-composed twin.

    Example: gyroformer bench web-edu --rounds 5
    """
    from gyroformer.bench import speed

    if out is not None:
        check_target(out, "--out")
    set_threads(threads)
    chosen = [variant.strip() for variant in variants.split(",") if variant.strip()]
    rows = list(
        speed.measure(
            cases or list(speed.USUAL),
            chosen,
            rounds=rounds,
            memory=memory,
            said=lambda line: say(line, err=True),
        )
    )
    if out is not None:
        speed.save(out, rows)
    if as_json:
        print_json({"environment": speed.environment(), "rows": rows, "ratios": speed.ratios(rows)})
        return
    _print_table(rows, speed.ratios(rows))


def _print_table(rows: list[dict[str, object]], ratios: list[dict[str, object]]) -> None:
    from rich.table import Table

    console = terminal()
    times = Table("case", "pass", "variant", "ms", "peak MB", title="Medians")
    for row in rows:
        cells = [
            row["case"],
            row["pass"],
            row["variant"],
            f"{row['milliseconds']:,.1f}",
            row["peak_mb"] or "-",
        ]
        times.add_row(*map(str, cells))
    console.print(times)
    compared = Table("case", "pass", *HEADERS, title="Ratios (compiled, eager)")
    for ratio in ratios:
        compared.add_row(*("-" if value is None else str(value) for value in ratio.values()))
    console.print(compared)
