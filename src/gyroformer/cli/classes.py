"""How well each class was told, on the terminal."""

from collections.abc import Mapping
from typing import Any

from gyroformer.cli.terminal import print_table, say, terminal
from gyroformer.tasks.classify import class_scores

#: width of a column of counts, its padding included, without its name
COUNT_WIDTH = 6


def print_classes(results: Mapping[str, Any]) -> None:
    """Print scores and confusion matrix of a classify job, over all its runs; nothing if there was no test."""
    runs = [run for run in results.get("runs", [results]) if run.get("test_confusion")]
    if not runs:
        return
    matrices = [run["test_confusion"] for run in runs]
    matrix = [[sum(cells) for cells in zip(*rows, strict=True)] for rows in zip(*matrices, strict=True)]
    names = runs[0].get("label_names") or [f"class {label}" for label in range(len(matrix))]
    head, lines = ["class", "nodes", "precision", "recall", "F1"], []
    # the matrix beside the scores, where the terminal has room for it
    widths = [max(COUNT_WIDTH, len(name) + 2) for name in names]
    whole = max(map(len, names)) + 36 + sum(widths) <= terminal().width
    for name, row, found in zip(names, matrix, class_scores(matrix), strict=True):
        scores = [_text(found[key]) for key in ("precision", "recall", "f1")]
        lines.append([name, f"{found['nodes']:,}", *scores, *(str(count) for count in row if whole)])
    print_table([*head, *(names if whole else [])], lines, numbers=range(1, 5 + len(names)))
    over = f" of {len(runs)} runs" if len(runs) > 1 else ""
    say(
        f"on the test nodes{over}; the columns after F1 count the nodes given to each class (confusion matrix)"
        if whole
        else f"on the test nodes{over}; the confusion matrix is in report.html and results.json (test_confusion)"
    )


def _text(value: float | int | None) -> str:
    return "–" if value is None else f"{value:.1f}"
