"""How tasks, models and numbers are called on a page."""

from collections.abc import Sequence
from typing import Any

from gyroformer.tasks import SHOWN, TASKS

#: size of a curvature from which three decimals say enough
PLAIN_CURVATURE = 0.01
#: results that are numbers but no metrics
BOOKKEEPING = frozenset(("nodes", "edges", "parameters", "seed", "epochs", "best_epoch", "seconds"))
MODELS = {"fpst": "FPS-T", "tokengt": "TokenGT (flat twin)"}


def task_title(name: str) -> str:
    """Return what a task is called."""
    return TASKS[name].title if name in TASKS else name


def metrics_of(results: dict[str, Any]) -> dict[str, float]:
    """Return a run's metrics, the one that counts first."""
    found = {
        key: value
        for key, value in results.items()
        if isinstance(value, float) and not isinstance(value, bool) and key not in BOOKKEEPING
    }
    known = [key for key in SHOWN if key in found]
    return {key: found[key] for key in (*known, *(key for key in found if key not in SHOWN))}


def number(value: object, digits: int = 2) -> str:
    """Return a number as people write it; other values as text."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    if isinstance(value, float):
        return f"{value:,.{digits}f}".replace("-", "−")
    return str(value)


def signed(k: float) -> str:
    """Return a curvature with its sign."""
    if k == 0:
        return "0"
    return (f"{k:+.3f}" if abs(k) >= PLAIN_CURVATURE else f"{k:+.2g}").replace("-", "−")


def curvature_line(layers: Sequence[Sequence[float]]) -> str:
    """Return the curvatures of all layers in one line."""
    if not layers:
        return "none: flat"
    if all(k == 0 for heads in layers for k in heads):
        return "0: flat"
    lines = [" ".join(signed(k) for k in heads) for heads in layers]
    return lines[0] if len(lines) == 1 else "; ".join(lines)


def model_name(name: object) -> str:
    """Return what a model is called."""
    return MODELS.get(str(name), str(name))


def duration(seconds: float) -> str:
    """Return a time as people say it."""
    if seconds < 90:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def split_line(split: dict[str, Any]) -> str:
    """Return a split in one line, without its leak."""
    which = next((f", {key} {split[key]}" for key in ("seed", "index") if split.get(key) is not None), "")
    sizes = " / ".join(number(split[key]) for key in ("train", "val", "test") if key in split)
    return f"{split.get('name', 'split')}{which}: {sizes} train / validation / test"
