"""How well scores tell edges from pairs without one: ROC curve, the area under it, average precision.

The definitions are scikit-learn's, whose import takes longer than a small job's training.
"""

from typing import Any

import numpy as np

Scores = np.ndarray[Any, Any]


def alarms(edges: Scores, others: Scores) -> tuple[Scores, Scores]:
    """Return how many of the others and of the edges score at least each score that occurs, 0 and 0 first."""
    scores = np.concatenate((edges, others))
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), scores.size - 1)  # of those that score the same
    true = np.cumsum(order < edges.size)[last]
    return np.append(0, last + 1 - true), np.append(0, true)


def ranking_metrics(edges: Scores, others: Scores) -> dict[str, float]:
    """Return AUC and average precision in percent of edges against non-edges; NaN if a score is not finite."""
    if not (np.isfinite(edges).all() and np.isfinite(others).all()):
        return {"auc": float("nan"), "ap": float("nan")}
    false, true = alarms(edges, others)
    won = int(
        (true[1:] + true[:-1]) @ np.diff(false)
    )  # twice the pairs of an edge and another in the right order
    precision = true[1:] / (false + true)[1:]
    return {
        "auc": 100 * (won / (2 * edges.size * others.size)),
        "ap": 100 * float(np.diff(true) @ precision / edges.size),
    }


def hits_at(count: int, edges: Scores, others: Scores) -> float | None:
    """Return the percentage of edges that score strictly above the non-edge of rank ``count``.

    That is the definition of the Open Graph Benchmark; None if there are fewer non-edges.
    """
    if others.size < count:
        return None
    border = np.partition(others, others.size - count)[others.size - count]
    return 100 * float((edges > border).mean())
