"""Models side by side, each over several seeds: means with intervals, and paired differences from the first."""

import dataclasses as dc
from collections.abc import Mapping, Sequence
from typing import Any

from gyroformer.report.markup import text
from gyroformer.report.names import duration, model_name, number
from gyroformer.report.record import RunRecord
from gyroformer.runs.spread import interval
from gyroformer.runs.statistics import against_first, overlap_of
from gyroformer.tasks import SHOWN
from gyroformer.tasks.task import metric_title


@dc.dataclass(frozen=True)
class Group:
    """Runs that differ in their seed alone."""

    name: str
    runs: list[RunRecord]

    def values(self, key: str) -> dict[int, float]:
        """Return a metric by seed."""
        found = {int(run.results["seed"]): run.results.get(key) for run in self.runs}
        return {seed: value for seed, value in found.items() if isinstance(value, float)}


def grouped(runs: Sequence[RunRecord]) -> list[Group]:
    """Return the runs by what they are beside their seed; groups of one model are numbered."""
    found: list[tuple[Mapping[str, Any], list[RunRecord]]] = []
    for run in runs:
        settings = {key: value for key, value in run.job.items() if key != "seed"}
        same = next((some for known, some in found if known == settings), None)
        if same is None:
            found.append((settings, [run]))
        else:
            same.append(run)
    models = [model_name(some[0].results.get("model")) for _, some in found]
    return [
        Group(name if models.count(name) == 1 else f"{name} ({models[: place + 1].count(name)})", some)
        for place, (name, (_, some)) in enumerate(zip(models, found, strict=True))
    ]


def model_tables(runs: Sequence[RunRecord]) -> str:
    """Return the tables of two models or more with several seeds of one task on one graph; nothing for other runs."""
    groups = grouped(runs)
    alike = len({(run.task, run.results.get("graph")) for run in runs}) == 1
    if len(groups) < 2 or not alike or len(groups) == len(runs):
        return ""
    key = next((key for key in SHOWN if key in runs[0].results), "map")
    values = {group.name: group.values(key) for group in groups}
    if not all(values.values()):
        return ""
    splits = [run.results.get("split") for run in groups[0].runs]
    return _means(groups, key) + _differences(against_first(values, overlap=overlap_of(splits)))


def _means(groups: Sequence[Group], key: str) -> str:
    rows = []
    for group in groups:
        mean, half = interval(list(group.values(key).values()))
        seconds = [float(run.results.get("seconds") or 0.0) for run in group.runs]
        spread = "" if half is None else f" ± {number(half)}"
        cells = (
            f"<strong>{number(mean)}{spread}</strong>",
            str(len(group.runs)),
            text(number(group.runs[0].results.get("parameters"))),
            text(duration(sum(seconds) / len(seconds))),
        )
        rows.append((group.name, cells))
    note = "Mean ± half the 95 % interval of the mean over seeds (Student's t)."
    return _table(("model", metric_title(key), "seeds", "parameters", "time of a run"), rows, note)


def _differences(pairs: Sequence[Mapping[str, Any]]) -> str:
    if not pairs:
        return ""
    rows = []
    for pair in pairs:
        half = "" if pair["half"] is None else f" ± {number(pair['half'])}"
        tests = ("–" if p is None else f"{p:.3g}" for p in (pair["t"], pair["holm"], pair["wilcoxon"]))
        rows.append((pair["model"], (f"{pair['mean']:+.2f}{half}", str(pair["pairs"]), *tests)))
    allowed = (
        " Interval and t-test allow for splits that share nodes or edges." if pairs[0]["corrected"] else ""
    )
    note = (
        f"Seed by seed. p is how likely a difference so large is by chance alone; Holm's allows for several "
        f"comparisons.{allowed}"
    )
    head = (f"{pairs[0]['first']} minus", "difference", "pairs", "t, p", "Holm, p", "Wilcoxon, p")
    return _table(head, rows, note)


def _table(head: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], note: str) -> str:
    columns = "".join(f'<th scope="col">{text(name)}</th>' for name in head)
    lines = "".join(
        f'<tr><th scope="row">{text(name)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for name, cells in rows
    )
    return (
        f'<div class="scroll"><table class="compare"><thead><tr>{columns}</tr></thead><tbody>{lines}</tbody></table>'
        f'</div><p class="note">{text(note)}</p>'
    )
