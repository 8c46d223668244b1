"""What a page says of runs in words and numbers: the headline of each, and all of them side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

from gyroformer.report.markup import plain_value, text
from gyroformer.report.names import (
    curvature_line,
    duration,
    metrics_of,
    model_name,
    number,
    signed,
    split_line,
)
from gyroformer.report.record import RunRecord
from gyroformer.report.story import graph_name
from gyroformer.runs.spread import interval
from gyroformer.tasks.task import metric_title


def leak_mark(run: RunRecord) -> str:
    """Return a mark that cannot be overlooked if test nodes are training nodes."""
    split = run.results.get("split")
    leaks = split.get("leaks") if isinstance(split, dict) else None
    if not leaks:
        return ""
    return f'<span class="leak">LEAKS: {text(number(leaks))} test nodes are training nodes</span>'


def headline(run: RunRecord) -> str:
    """Return a run's metrics as cards."""
    results = run.results
    metrics = metrics_of(results)
    cards = [
        _card(metric_title(key), text(number(value)), main=index == 0)
        for index, (key, value) in enumerate(metrics.items())
    ]
    cards.append(_card("curvatures", _curvature_chips(results.get("curvatures") or [])))
    cards.append(_card("training", text(_epochs(results))))
    cards.append(_card("time", text(duration(results.get("seconds", 0.0)))))
    cards.append(
        _card("model", f"{text(model_name(results.get('model')))}<br><small>{_parameters(results)}</small>")
    )
    cards.append(_card("graph", f"{text(graph_name(run))}<br><small>{_size(results)}</small>"))
    if isinstance(results.get("split"), dict):
        cards.append(_card("split", f"{text(split_line(results['split']))}{leak_mark(run)}", wide=True))
    if results.get("rate_lowered"):
        cards.append(_card("note", "a step was not finite: the learning rates were lowered once"))
    return f'<div class="cards">{"".join(cards)}</div>'


def _card(name: str, shown: str, *, main: bool = False, wide: bool = False) -> str:
    kind = f"card{' main' if main else ''}{' wide' if wide else ''}"
    return f'<div class="{kind}"><div class="name">{text(name)}</div><div class="value">{shown}</div></div>'


def _curvature_chips(layers: Sequence[Sequence[float]]) -> str:
    if not layers:
        return "none: the space is flat"
    lines = []
    for heads in layers:
        chips = [f'<span class="chip {_sign(k)}">{text(signed(k))}</span>' for k in heads]
        lines.append(" ".join(chips))
    return "<br>".join(lines)


def _sign(k: float) -> str:
    return "flat" if k == 0 else "hyperbolic" if k < 0 else "spherical"


def _epochs(results: Mapping[str, Any]) -> str:
    epochs, best = results.get("epochs", 0), results.get("best_epoch")
    early = f", state of {number(best)} kept" if best not in (None, epochs) else ""
    return f"{number(epochs)} epochs{early}"


def _parameters(results: Mapping[str, Any]) -> str:
    return f"{text(number(results.get('parameters')))} parameters, recipe {text(results.get('recipe'))}"


def _size(results: Mapping[str, Any]) -> str:
    return f"{text(number(results.get('nodes')))} nodes, {text(number(results.get('edges')))} edges"


def comparison_rows(runs: Sequence[RunRecord]) -> list[tuple[str, list[str]]]:
    """Return what runs are compared by; the best of a metric that all have is set in bold."""
    rows = []
    every = [metrics_of(run.results) for run in runs]
    for key in dict.fromkeys(key for metrics in every for key in metrics):
        cells = [text(number(metrics.get(key))) for metrics in every]
        present = [metrics[key] for metrics in every if key in metrics]
        better = min if key.endswith("loss") else max
        if len(present) == len(runs) and len(set(present)) > 1:
            best = better(present)
            cells = [
                f"<strong>{cell}</strong>" if metrics[key] == best else cell
                for cell, metrics in zip(cells, every, strict=True)
            ]
        rows.append((metric_title(key), cells))
    results = [run.results for run in runs]
    rows += [
        ("model", [text(model_name(found.get("model"))) for found in results]),
        ("curvatures", [text(curvature_line(found.get("curvatures") or [])) for found in results]),
        ("parameters", [text(number(found.get("parameters"))) for found in results]),
        ("epochs", [text(_epochs(found)) for found in results]),
        ("time", [text(duration(found.get("seconds", 0.0))) for found in results]),
        ("graph", [text(found.get("graph")) for found in results]),
    ]
    if any(isinstance(found.get("split"), dict) for found in results):
        rows.append(("split", [_split_cell(run) for run in runs]))
    return rows


def spread_line(runs: Sequence[RunRecord]) -> str:
    """Return mean and spread of the metric that counts, of runs that differ in their seed alone; else nothing."""
    differing = {name for name, _ in differing_settings(runs)}
    if len(runs) < 2 or differing != {"seed"}:
        return ""
    parts = []
    for key in metrics_of(runs[0].results):
        values = [run.results.get(key) for run in runs]
        numbers = [value for value in values if isinstance(value, float)]
        if len(numbers) == len(runs):
            mean, half = interval(numbers)
            parts.append(f"{metric_title(key)} <strong>{number(mean)} ± {number(half)}</strong>")
    return (
        f'<p class="spread">{len(runs)} seeds: {", ".join(parts)} '
        "<small>(mean ± half the 95 % interval of the mean, Student's t)</small></p>"
        if parts
        else ""
    )


def _split_cell(run: RunRecord) -> str:
    split = run.results.get("split")
    return f"{text(split_line(split))} {leak_mark(run)}" if isinstance(split, dict) else "–"


def differing_settings(runs: Sequence[RunRecord]) -> list[tuple[str, list[str]]]:
    """Return the settings that are not the same in all runs."""
    flat = [dict(_leaves(run.job)) for run in runs]
    keys = dict.fromkeys(key for settings in flat for key in settings)
    return [
        (key, [plain_value(settings.get(key)) for settings in flat])
        for key in keys
        if any(settings.get(key) != flat[0].get(key) for settings in flat)
    ]


def _leaves(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in values.items():
        if isinstance(value, dict):
            found += _leaves(value, f"{prefix}{key}.")
        else:
            found.append((f"{prefix}{key}", value))
    return found


def environment(run: RunRecord) -> dict[str, Any]:
    """Return where and with what a run was made, for the table of its manifest."""
    manifest = run.manifest
    shown = {key: value for key, value in manifest.items() if key not in ("files", "versions", "sha256")}
    if isinstance(shown.get("argv"), list):
        shown["argv"] = " ".join(str(word) for word in shown["argv"])
    return shown | {
        "versions": manifest.get("versions", {}),
        "SHA-256 of the files": manifest.get("files", {}),
    }
