"""``gyroformer demo``: the main job on data that every machine has."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gyroformer.cli.options import Json, Seed, Threads, set_threads
from gyroformer.cli.terminal import print_json, say, styled, terminal
from gyroformer.errors import Interrupted

if TYPE_CHECKING:
    from gyroformer.demo.twins import Comparison


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the graph, both runs and the report.")] = Path(
        "runs/demo"
    ),
    open_it: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
    as_json: Json = False,
    seed: Seed = 0,
    threads: Threads = None,
) -> None:
    """Embed Python's own import graph with FPS-T and with its flat twin, side by side; nothing is downloaded.

    The graph is read from the sources of this Python's standard library. Takes about a minute on two cores,
    and writes a page to explore both: nearest nodes, curves, each head in its own space.

    Example: gyroformer demo --seed 1
    """
    import time

    start = time.perf_counter()

    from gyroformer.cli.training_bar import training_bar
    from gyroformer.demo.twins import run

    set_threads(threads)
    try:
        said = terminal(stderr=True)
        found = run(out, seed=seed, tell=lambda text: said.print(text, style="dim"), listening=training_bar)
    except Interrupted as stop:
        say(f"stopped after epoch {stop.epoch}; the same command goes on from there", err=True)
        raise typer.Exit(stop.exit_code) from None
    seconds = time.perf_counter() - start
    if open_it:
        typer.launch(found.report.resolve().as_uri())
    if as_json:
        print_json(_answer(found, seed, seconds))
    else:
        _show(found, seconds)


def _answer(found: "Comparison", seed: int, seconds: float) -> dict[str, Any]:
    keys = ("map", "curvatures", "seconds", "epochs", "parameters")
    twins = {
        name: {key: results[key] for key in keys}
        for name, results in (("fpst", found.fpst), ("flat", found.flat))
    }
    about = {key: found.fpst[key] for key in ("nodes", "edges")}
    return {
        **twins,
        "report": str(found.report),
        "graph": str(found.graph),
        **about,
        "seed": seed,
        "seconds": round(seconds, 3),
    }


def _show(found: "Comparison", seconds: float) -> None:
    from rich.table import Table

    both = (found.fpst, found.flat)
    table = Table()
    for heading in ("", "FPS-T", "flat twin (TokenGT)"):
        table.add_column(heading, justify="left" if not heading else "right")
    table.add_row("mAP", *(styled(f"{results['map']:.2f}") for results in both))
    table.add_row("curvatures", *(_curvatures(results["curvatures"]) for results in both))
    table.add_row("seconds", *(f"{results['seconds']:.1f}" for results in both))
    table.add_row("epochs", *(f"{results['epochs']:,}" for results in both))
    table.add_row("parameters", *(f"{results['parameters']:,}" for results in both))
    console = terminal()
    console.print(_title(found), style="bold")
    console.print(table)
    console.print(explanation(found.fpst, found.flat))
    console.print()
    for line in (f"{seconds:.0f} s in all. Open the report in a browser:", f"  {found.report}", "Then try:"):
        say(line)
    graph, page = shlex.quote(str(found.graph)), "runs/imports/report.html"
    for command, why in (
        (f"gyroformer embed {graph} --out runs/imports", f"the whole recipe; then open {page}"),
        (f"gyroformer curvature {graph}", "how curved is the graph itself?"),
        ("gyroformer datasets", "graphs by name"),
    ):
        say(f"  {command}  # {why}")


def _title(found: "Comparison") -> str:
    size = f"{found.fpst['nodes']:,} modules, {found.fpst['edges']:,} imports"
    return f"The import graph of Python's standard library: {size}"


def explanation(fpst: dict[str, Any], flat: dict[str, Any]) -> str:
    """Return what the two results say, in words."""
    ahead = fpst["map"] - flat["map"]
    if abs(ahead) < 1:
        compared = "Here both do equally well"
    else:
        compared = f"Here FPS-T is {abs(ahead):.1f} points {'ahead' if ahead > 0 else 'behind'}"
    heads = [k for layer in fpst["curvatures"] for k in layer]
    negative, positive = sum(k < 0 for k in heads), sum(k > 0 for k in heads)
    bent = {
        (True, False): "all its heads became hyperbolic, like a tree",
        (False, True): "all its heads became spherical, like a ring",
        (True, True): f"{negative} of its heads became hyperbolic and {positive} spherical",
        (False, False): "its heads stayed flat",
    }[bool(negative), bool(positive)]
    return (
        "mAP, in percent: how well the modules nearest to a module are those that it imports or is imported by. "
        f"{compared}, after equally many epochs of one recipe, with one seed. Its curvatures started at 0 and were "
        f"learned: {bent}."
    )


def _curvatures(layers: list[list[float]]) -> str:
    if not any(k for heads in layers for k in heads):
        return "0 (fixed)"
    return "; ".join(" ".join(f"{k:+.3f}" for k in heads) for heads in layers)
