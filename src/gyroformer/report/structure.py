"""The graph beside its embedding: distances against steps in the graph, and the graph's own curvature."""

from typing import Any

import numpy as np
import torch

from gyroformer.errors import DataError
from gyroformer.graphs.adjacency import ranked_components, simple_adjacency
from gyroformer.graphs.analysis.curvature import GraphCurvature, graph_curvature
from gyroformer.graphs.analysis.distance_sums import search_cost
from gyroformer.graphs.analysis.regions import hops_from
from gyroformer.report.closeness import pair_distances
from gyroformer.report.curves import Spec
from gyroformer.report.names import signed
from gyroformer.report.record import RunRecord

Array = np.ndarray[Any, Any]

#: nodes from which distances are taken
SOURCES = 256
#: nodes of a graph whose distances from one of them are looked at, at most
TARGETS = 5_000
#: seconds of work, by a rough guess, up to which the graph's curvature is exact; nodes drawn above
EXACT_SECONDS, DRAWN = 3.0, 256
#: pairs that a number of steps must have to be shown
PAIRS = 5
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def distance_chart(run: RunRecord) -> Spec | None:
    """Return the distances of nodes that are 1, 2, 3 … steps apart: the median and the middle half and 80 %.

    A good embedding is a rising line; a band that overlaps the next one's shows what it cannot tell apart.
    """
    if run.graph.edges is None or len(run.ids) < 3:
        return None
    draw = np.random.default_rng(0)
    nodes = len(run.ids)
    sources = np.sort(draw.choice(nodes, min(SOURCES, nodes), replace=False))
    targets = np.sort(draw.choice(nodes, min(TARGETS, nodes), replace=False))
    steps = hops_from(simple_adjacency(run.graph.edges, nodes), sources, targets)
    return _by_steps(steps.ravel(), _distances(run, sources, targets).ravel())


def _distances(run: RunRecord, sources: Array, targets: Array) -> Array:
    """Return the distances of some nodes from others; those of whole rows take a tenth of the time of pairs."""
    if targets.size == len(run.ids):
        with torch.no_grad():
            squared = run.positions.squared_dist_rows(torch.from_numpy(sources))
        return squared.clamp(min=0).sqrt().double().numpy()
    return pair_distances(
        run.positions, np.stack((np.repeat(sources, targets.size), np.tile(targets, sources.size)))
    )


def _by_steps(steps: Array, far: Array) -> Spec | None:
    hops = [hop for hop in np.unique(steps[np.isfinite(steps)]) if hop > 0 and (steps == hop).sum() >= PAIRS]
    if len(hops) < 2:
        return None
    rows = np.array([np.quantile(far[steps == hop], QUANTILES) for hop in hops]).round(6).T.tolist()
    x = [int(hop) for hop in hops]
    series = [
        {
            "name": "middle 80 %",
            "x": x,
            "y": rows[2],
            "low": rows[0],
            "high": rows[4],
            "line": False,
            "shade": 0.16,
        },
        {
            "name": "middle half",
            "x": x,
            "y": rows[2],
            "low": rows[1],
            "high": rows[3],
            "line": False,
            "shade": 0.3,
        },
        {"name": "median", "x": x, "y": rows[2], "dots": True},
    ]
    return {
        "kind": "panels",
        "title": "Distance in the embedding against steps in the graph",
        "x": "steps in the graph",
        "panels": [
            {
                "title": "distance in the product of all heads",
                "height": 230,
                "from": 0,
                "to": max(rows[4]) * 1.04,
                "series": [{**one, "colour": "accent"} for one in series],
            }
        ],
    }


def own_curvature(run: RunRecord) -> GraphCurvature | None:
    """Return the sectional curvature of a run's graph, sampled where that would take long; None without triples."""
    if run.graph.edges is None:
        return None
    nodes = len(run.ids)
    adjacency = simple_adjacency(run.graph.edges, nodes)
    cheap = search_cost(adjacency, ranked_components(adjacency)[1]) <= EXACT_SECONDS
    try:
        return graph_curvature(run.graph.edges, nodes, samples=None if cheap else DRAWN)
    except DataError:  # no node has two neighbours
        return None


def fitted_space(run: RunRecord) -> str:
    """Return in a sentence whether the graph of a run is better embedded curved or flat: some ten seconds of work."""
    if run.graph.edges is None:
        return ""
    from gyroformer.graphs.analysis.space_fit import fit_space  # and scipy.stats, which few pages need

    try:
        found = fit_space(run.graph.edges, len(run.ids))
    except DataError as error:
        return f"Whether curved or flat fits better was not to be found out: {error}."
    size = f"curvature {signed(found.curvature)} per hop², 95 % interval {found.interval}"
    return f"By its distances: {found.reading}; {size}."


def curvature_chart(found: GraphCurvature, learned: list[float] | tuple[float, ...] = ()) -> Spec:
    """Return the histogram of a graph's sectional curvature, with its mean and the curvatures that were learned."""
    marks = [{"x": found.mean, "text": f"mean {signed(found.mean)}", "colour": "ink", "dash": True}]
    marks += [
        {
            "x": k,
            "text": f"head {head + 1}",
            "colour": "spherical" if k > 0 else "hyperbolic" if k < 0 else "flat",
        }
        for head, k in enumerate(learned)
    ]
    return {
        "kind": "bars",
        "title": "Sectional curvature of the graph",
        "x": "curvature of a triple",
        "y": "% of the triples",
        "unit": "triples",
        "edges": list(found.edges),
        "counts": list(found.counts),
        "values": [float(f"{100 * count / found.triples:.6g}") for count in found.counts],
        "marks": marks,
    }
