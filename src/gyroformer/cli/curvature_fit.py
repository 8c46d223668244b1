"""``gyroformer curvature --fit``: curved or flat, and how curved, with an interval."""

import dataclasses as dc
from typing import TYPE_CHECKING, Any

from gyroformer.cli.progress import progress
from gyroformer.cli.terminal import print_json, styled, terminal, visible
from gyroformer.errors import UsageError

if TYPE_CHECKING:
    from gyroformer.graphs.analysis.space_fit import SpaceFit

DIM, SEEDS = 2, 2
#: letters of the longest bar of the profile
BAR = 30


def check_options(fit: bool, of_fit: dict[str, Any], of_mean: dict[str, Any]) -> None:
    """Raise if an option was given that the chosen one of the two measurements does not have."""
    wrong = [name for name, value in (of_mean if fit else of_fit).items() if value]
    if wrong:
        reason = "does not go with --fit" if fit else "needs --fit"
        raise UsageError(f"{wrong[0]} {reason}")


def fit_command(
    graph: str, reading: dict[str, Any], *, dim: int | None, seeds: int | None, seed: int, as_json: bool
) -> None:
    """Fit, and print what was found."""
    from gyroformer.data.load import load
    from gyroformer.graphs.analysis.space_fit import fit_space

    with progress() as shown:
        shown.show(f"reading {graph}")
        data = load(graph, **reading)
        found = fit_space(
            data.edge_index,
            data.num_nodes,
            dim=dim or DIM,
            seeds=seeds or SEEDS,
            seed=seed,
            progress=shown.show,
        )
    if as_json:
        head = {"graph": graph, "nodes": data.num_nodes, "edges": data.summary.edges}
        fitted = dc.asdict(found)
        fitted["fitted_nodes"] = fitted.pop("nodes")
        print_json(head | fitted | {"verdict": found.verdict, "reading": found.reading, "seed": seed})
    else:
        _print(graph, data.summary.line(), int(data.num_nodes), found)


def _print(graph: str, summary: str, nodes: int, found: "SpaceFit") -> None:
    console = terminal(soft_wrap=True)
    console.print(styled(graph).append(f": {visible(summary)}", "not bold"))
    console.print(styled(found.reading))
    console.print(f"curvature {found.curvature:+.4f} per hop², 95 % interval {found.interval}")
    each = ", ".join(f"{value:+.4f}" for value in found.by_seed)
    sets = "{} balls" if found.local else "{} sets of nodes: the graph has no wide balls"
    console.print(f"by seed: {each} (each with its own {sets.format(found.regions[0])})")
    console.print(
        f"error of a distance: {found.error_flat:.3f} hops in the flat space, {found.error_best:.3f} in the best"
    )
    if found.nodes < nodes:
        console.print(f"of the largest component, {found.nodes:,} of {nodes:,} nodes")
    console.print()
    for line in profile_rows(found, ascii_only=console.options.ascii_only):
        console.print(line)


def profile_rows(found: "SpaceFit", *, ascii_only: bool = False) -> list[str]:
    """Return the profile, a row for each curvature tried: the error, and a bar of how far it is above the best."""
    lowest, highest = found.error_best, max(error for _, error in found.profile)
    block = "#" if ascii_only else "█"
    rows = [f"{'curvature':>10}  error in hops"]
    for curvature, error in found.profile:
        share = (error - lowest) / (highest - lowest) if highest > lowest else 0.0
        rows.append(f"{curvature:>+10.4f}  {error:.4f} {block * round(share * BAR)}".rstrip())
    return rows
