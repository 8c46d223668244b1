r"""Sectional curvature of a graph (Gu et al. 2019), pooled over all its triples.

A triple (m; {b, c}) is a node with two of its neighbours. For a fourth node a of the same component

.. math:: \xi(m; b, c; a) = \frac{d(a,m)^2 + d(b,c)^2/4 - (d(a,b)^2 + d(a,c)^2)/2}{2\,d(a,m)}, \quad a \ne m

and the value of the triple is the mean over a. In a tree it is negative or zero, in a cycle positive, on a
path exactly zero.

**No enumeration of (triple, a).** A neighbour b of m has d(a,b) = d(a,m) + δ with δ in {-1, 0, 1}, so that
d(a,b)²/d(a,m) = d(a,m) + 2δ + δ²/d(a,m). With S(v) = Σ_a d(a,v), H(v) = Σ_a 1/d(a,v) and
W(mb) = Σ 1/d(a,m) over the a with d(a,m) = d(a,b), the n - 1 terms of a triple add up to

.. math:: 1 + S(m) - \tfrac12(S(b) + S(c)) + \tfrac14(W(mb) + W(mc)) - \tfrac38 H(m)\,[b \sim c]

Three sums per node or edge give every triple's value. They come from a bit-parallel search
(:mod:`gyroformer.graphs.analysis.distance_sums`); moments and histogram need no list of triples either
(:mod:`gyroformer.graphs.analysis.triple_values`).
"""

import dataclasses as dc
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.adjacency import (
    Csr,
    FloatArray,
    IntArray,
    ranked_components,
    simple_adjacency,
    sum_by,
    upper_edges,
)
from gyroformer.graphs.analysis.distance_sums import (
    GROUP,
    DistanceSums,
    Functional,
    Sources,
    all_sources,
    distance_sums,
    drawn_sources,
    search_cost,
)
from gyroformer.graphs.analysis.triangles import closed_counts
from gyroformer.graphs.analysis.triple_values import TripleValues, histogram
from gyroformer.graphs.bfs import WORD

#: a search from all nodes that would take longer (by a rough guess) is replaced by a sample unless asked for
EXACT_SECONDS = 60.0
#: sources drawn when sampling: 256 groups of 8
DEFAULT_SAMPLES = 2048
#: 16 groups: a standard error from fewer is itself too uncertain
MIN_SAMPLES = 128


@dc.dataclass(frozen=True, slots=True)
class ComponentCurvature:
    """Curvature of one connected component; ``sources`` of its nodes stood for a in the mean."""

    nodes: int
    edges: int
    triples: int
    mean: float
    sources: int


@dc.dataclass(frozen=True, slots=True)
class GraphCurvature:
    """Sectional curvature of a graph, pooled over the triples of all components.

    Attributes:
        mean: mean over all triples; with ``exact`` false an unbiased estimate.
        std: standard deviation of the triples' values.
        triples: number of triples (m; {b, c}).
        exact: whether every node stood for a. If not, some nodes were drawn, and each triple's value (hence
            ``std``, ``negative_share`` and the histogram, but not the mean's expectation) carries noise.
        standard_error: of ``mean`` (0 when exact), from groups of 8 drawn nodes, with the correction for
            drawing without replacement.
        negative_share: fraction of triples whose value is below zero.
        counts: histogram of the triples' values.
        edges: its bin edges, one more than ``counts``; a value on an edge counts to its right.
        components: components that have a triple, largest first.
        flat_components: number of components without one (single nodes and single edges).
    """

    mean: float
    std: float
    triples: int
    exact: bool
    standard_error: float
    negative_share: float
    counts: tuple[int, ...]
    edges: tuple[float, ...]
    components: tuple[ComponentCurvature, ...]
    flat_components: int

    @property
    def reading(self) -> str:
        """One line that says what the numbers mean."""
        negative = f"{self.negative_share:.0%} of the triples are negative"
        # two standard errors: nearer to zero than that, the sign of a sampled mean means nothing
        doubt = max(2 * self.standard_error, FLAT)
        if abs(self.mean) <= doubt:
            return f"flat within {doubt:.2g}: neither tree-like nor cycle-like on average ({negative})"
        if self.mean < 0:
            degree = "mostly" if self.negative_share > 0.5 else "on average"
            return f"{degree} tree-like: negative ({negative})"
        degree = "mostly" if self.negative_share < 0.5 else "on average"
        return f"{degree} cycle-like: positive ({negative})"


#: means below this size read as flat
FLAT = 0.005


def graph_curvature(
    edge_index: Tensor | NDArray[Any],
    num_nodes: int,
    *,
    samples: int | None = None,
    exact: bool = False,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> GraphCurvature:
    """Return the sectional curvature of the simple undirected graph behind ``edge_index``.

    Exact up to about ``EXACT_SECONDS`` of work, above it (or when ``samples`` is given) from a sample of the
    nodes a; every triple is always counted. Components are taken one by one: a runs over the nodes of m's.

    Args:
        edge_index: ``(2, E)`` integers; direction, repetitions and self-loops do not matter.
        num_nodes: number of nodes.
        samples: nodes a drawn from each component, rounded up to a multiple of 64; components of at most
            that many nodes are still exact.
        exact: take all nodes whatever the size.
        seed: of the draw.
        progress: called with (blocks of sources done, blocks in all).

    Raises:
        DataError: no node has two neighbours, so the graph has no triple.
        UsageError: ``samples`` is below 128, or given together with ``exact``.
    """
    adjacency = simple_adjacency(edge_index, num_nodes)
    count, component = ranked_components(adjacency)
    degree = np.diff(adjacency.indptr).astype(np.int64)
    if degree.max(initial=0) < 2:
        raise DataError("the graph has no node with two neighbours, so its curvature is not defined")
    sources = _choose_sources(adjacency, component, samples, exact, seed)
    sizes = np.bincount(component, minlength=count)
    pairs = degree * (degree - 1) // 2
    strata = np.flatnonzero(sources.per_component < sizes)
    closed = closed_counts(adjacency)
    functional = _functional(adjacency, component, degree, closed, strata) if strata.size else None
    sums, groups = distance_sums(adjacency, sources, functional=functional, progress=progress)
    groups += _source_terms(component, pairs, sources, strata, groups.shape[1])

    values = _triple_values(adjacency, component, closed, sources, sums)
    totals = values.component_totals(component, count)
    triples = sum_by(component, pairs, count)
    mean = float(totals.sum() / triples.sum())
    counts, edges, negative = histogram(values)
    return GraphCurvature(
        mean=mean,
        std=values.deviation(mean),
        triples=int(triples.sum()),
        exact=not strata.size,
        standard_error=_standard_error(groups, sizes, sources, strata) / int(triples.sum()),
        negative_share=negative / int(triples.sum()),
        counts=counts,
        edges=edges,
        components=_per_component(adjacency, component, sizes, triples, totals, sources),
        flat_components=int((triples == 0).sum()),
    )


def _choose_sources(
    adjacency: Csr, component: IntArray, samples: int | None, exact: bool, seed: int
) -> Sources:
    if samples is not None and exact:
        raise UsageError("samples and exact exclude each other: give one of them")
    if samples is not None and samples < MIN_SAMPLES:
        raise UsageError(f"a standard error needs at least {MIN_SAMPLES} samples, got {samples}")
    if samples is None and (exact or search_cost(adjacency, component) <= EXACT_SECONDS):
        return all_sources(adjacency, component)
    wanted = -(-(samples or DEFAULT_SAMPLES) // WORD) * WORD
    return drawn_sources(component, wanted, seed)


def _triple_values(
    adjacency: Csr, component: IntArray, closed: IntArray, sources: Sources, sums: DistanceSums
) -> TripleValues:
    """Return the parts of which every triple's value is a sum.

    From s drawn sources each sum over a is scaled by n/s. The leading 1 of the formula comes from leaving
    out a = m, so it becomes 1 or 0 as m is among the sources or not.
    """
    nodes = adjacency.shape[0]
    is_source = np.zeros(nodes)
    is_source[sources.nodes] = 1.0
    sizes = np.bincount(component)
    scale = sizes / (sources.per_component * np.maximum(sizes - 1, 1))
    edge_u, edge_v = upper_edges(adjacency)
    source = np.repeat(np.arange(nodes), np.diff(adjacency.indptr))
    target = adjacency.indices.astype(np.int64)
    keys = np.minimum(source, target) * nodes + np.maximum(source, target)
    edge = np.searchsorted(edge_u * nodes + edge_v, keys)
    return TripleValues(
        adjacency=adjacency,
        centre=is_source + sums.far,
        arm=sums.far[target] / 2 - sums.level_edges[edge] / 4,
        closing=sums.near * 3 / 8,
        scale=scale[component],
        closed=closed,
    )


def _functional(
    adjacency: Csr, component: IntArray, degree: IntArray, closed: IntArray, strata: IntArray
) -> Functional:
    """Return the sum of all triples' terms at one source, per sampled component (see the module's text)."""
    edge_u, edge_v = upper_edges(adjacency)
    column = np.full(int(component.max()) + 1, -1)
    column[strata] = np.arange(strata.size)
    return Functional.build(
        column[component],
        column[component[edge_u]],
        far=degree * (degree - 1) / 2 - (adjacency @ (degree - 1)) / 2,
        near=-3 / 8 * closed,
        level=(degree[edge_u] + degree[edge_v] - 2) / 4,
    )


def _source_terms(
    component: IntArray, pairs: IntArray, sources: Sources, strata: IntArray, groups: int
) -> FloatArray:
    """Return the number of triples centred at each group's own sources, per sampled component.

    It belongs to a group's sum: the leading 1 of the formula is the term that a = m leaves behind.
    """
    terms = np.zeros((strata.size, groups))
    for row, name in enumerate(strata):
        here = component[sources.nodes] == name
        group = sources.lanes[here] // GROUP
        terms[row] = sum_by(group, pairs[sources.nodes[here]], groups)
    return terms


def _standard_error(groups: FloatArray, sizes: IntArray, sources: Sources, strata: IntArray) -> float:
    """Return the standard error of the sum over all triples, components being strata of the draw.

    Lanes of a random draw make random groups of 8, whose sums are exchangeable: their spread estimates
    the variance of the whole without bias.
    """
    whole, drawn = sizes[strata], sources.per_component[strata]
    per_source = groups / GROUP * (whole / np.maximum(whole - 1, 1))[:, None]
    variance = per_source.var(axis=1, ddof=1) / max(groups.shape[1], 1) * (1 - drawn / whole)
    return float(np.sqrt(variance.sum()))


def _per_component(
    adjacency: Csr,
    component: IntArray,
    sizes: IntArray,
    triples: FloatArray,
    totals: FloatArray,
    sources: Sources,
) -> tuple[ComponentCurvature, ...]:
    edges = sum_by(component, np.diff(adjacency.indptr), sizes.size) / 2
    return tuple(
        ComponentCurvature(
            nodes=int(sizes[i]),
            edges=int(edges[i]),
            triples=int(triples[i]),
            mean=float(totals[i] / triples[i]),
            sources=int(sources.per_component[i]),
        )
        for i in np.flatnonzero(triples)
    )
