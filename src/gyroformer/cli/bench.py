"""``gyroformer bench``: speed and memory beside flat Transformers and a geoopt-composed twin, in one run."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gyroformer.cli.options import Json, Threads, set_threads
from gyroformer.cli.terminal import print_json, say, show
from gyroformer.durable import check_target

#: ratios of the table on the terminal -> their headings, short enough for 80 characters
HEADINGS = {
    "ours/flat": "ours/flat",
    "eager ours/flat": "eager",
    "compiled ours/flat": "compiled",
    "geoopt/ours": "geoopt/ours",
    "memory ours/flat": "memory",
}


def bench(
    cases: Annotated[
        list[str] | None,
        typer.Argument(
            help="web-edu, facebook, wide, big, softmax (default: these five), huge.", show_default=False
        ),
    ] = None,
    variants: Annotated[
        str, typer.Option(help="Which to run, separated by commas.")
    ] = "ours,ours compiled,flat,flat compiled,geoopt",
    rounds: Annotated[
        int, typer.Option(min=1, max=10_000, help="Timed rounds at most; the median is reported.")
    ] = 9,
    memory: Annotated[
        bool, typer.Option(help="Measure peak memory too, each variant in a fresh process.")
    ] = True,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write rows, ratios and environment to this JSON file, case by case; rows of other cases in it stay."
        ),
    ] = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Measure model(tokens), forward pass and training step: ours, a lean flat Transformer, a geoopt-composed twin.

    For softmax attention the flat one is torch's own encoder. ours/flat compares the better of eager and compiled.

    Example: gyroformer bench web-edu --rounds 5
    """
    from gyroformer.bench import speed

    if out is not None:
        check_target(out, "--out")
    set_threads(threads)
    chosen = [variant.strip() for variant in variants.split(",") if variant.strip()]
    rows: list[dict[str, Any]] = []
    measured = speed.measure(
        cases or list(speed.USUAL),
        chosen,
        rounds=rounds,
        memory=memory,
        said=lambda line: say(line, err=True),
    )
    for found in measured:
        rows += found
        if out is not None:  # after each case: who stops here loses no other
            speed.save(out, rows)
    if as_json:
        print_json({"environment": speed.environment(), "rows": rows, "ratios": speed.ratios(rows)})
        return
    _print_table(rows, speed.ratios(rows))


def _print_table(rows: list[dict[str, object]], ratios: list[dict[str, object]]) -> None:
    from rich.table import Table

    times = Table("case", "pass", "variant", "ms", "±", "peak MB", title="Medians, and how far rounds differ")
    for row in rows:
        spread = f"{row['spread']:.0%}"
        cells = [row["case"], row["pass"], row["variant"], f"{row['milliseconds']:,.1f}", spread]
        times.add_row(*map(str, [*cells, row["peak_mb"] or "–"]))
    show(times)
    compared = Table(
        "case", "pass", *HEADINGS.values(), title="Ratios; ours/flat: the better of eager and compiled"
    )
    for ratio in ratios:
        values = (ratio[key] for key in ("case", "pass", *HEADINGS))
        compared.add_row(*("–" if value is None else str(value) for value in values))
    show(compared)
