"""Checkpoints: a file of tensors and a file of scalars, the last two pairs of a run.

The scalars hold the tensors' SHA-256 and are written after them, so a pair is whole or not there.
"""

import dataclasses as dc
import json
import logging
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from torch import Tensor

from gyroformer.durable import make_folder, move_into_place, sha256_of, write_durably
from gyroformer.errors import CorruptFileError
from gyroformer.options.check import Range, checked
from gyroformer.runs.environment import Environment
from gyroformer.untrusted import read_json

State = dict[str, Tensor]

_log = logging.getLogger(__name__)

FORMAT, KEPT = 1, 2
_NAME = re.compile(r"epoch-(\d{6,})\.json")


@dc.dataclass(slots=True)
class Best:
    """The best state so far.

    Attributes:
        epoch: when it was reached.
        rank: what it is ordered by.
        metrics: its metrics.
        weights: the model's and the task's parameters.
    """

    epoch: int
    rank: tuple[float, ...]
    metrics: dict[str, float]
    weights: State


@dc.dataclass(slots=True)
class Checkpoint:
    """All that a run needs to go on as if it had never stopped.

    Attributes:
        epoch: epochs done.
        state: weights, Adam's moments and random states after them.
        good_epoch: the epoch that a step which is not finite goes back to.
        good: the state of that epoch; the same object as ``state`` if that is this epoch.
        best: the best state so far; None before the first evaluation, or if the task has no order.
        metrics: those of the last evaluation.
        stale: evaluations since the best.
        lowered: whether the learning rates were lowered.
        seconds: training time.
        rows: length and checksum of ``metrics.jsonl``.
        environment: what the bits depend on beside the settings; empty in a checkpoint of version 0.1.
    """

    epoch: int
    state: State
    good_epoch: int
    good: State
    best: Best | None
    metrics: dict[str, float]
    stale: int
    lowered: bool
    seconds: float
    rows: tuple[int, str] = (0, "")
    environment: Environment = dc.field(default_factory=dict)


class CheckpointFolder:
    """The folder ``checkpoints`` of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def epochs(self) -> list[int]:
        """Return the epochs that have a checkpoint, the newest first."""
        if not self.path.is_dir():
            return []
        found = [_NAME.fullmatch(file.name) for file in self.path.iterdir() if file.is_file()]
        return sorted((int(match[1]) for match in found if match), reverse=True)

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint and drop all but the last two; OSError if it cannot be written."""
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        make_folder(self.path)
        tensors_file, scalars_file = self._files(checkpoint.epoch)
        # a pair of this name must not be half old and half new
        scalars_file.unlink(missing_ok=True)
        part = tensors_file.with_name(f"{tensors_file.name}.part")
        try:
            save_file(_tensors(checkpoint), part)
            move_into_place(part, tensors_file)
            scalars = _scalars(checkpoint) | {"sha256": sha256_of(tensors_file)}
            write_durably(scalars_file, (json.dumps(scalars, indent=2) + "\n").encode())
        except (OSError, SafetensorError) as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
                tensors_file.unlink(missing_ok=True)
            raise error if isinstance(error, OSError) else OSError(str(error)) from error
        # after going back, the one just written is not the newest
        for epoch in [other for other in self.epochs() if other != checkpoint.epoch][KEPT - 1 :]:
            self.remove(epoch)

    def remove(self, epoch: int) -> None:
        """Drop a checkpoint, its scalars first: without them the tensors do not count."""
        for file in reversed(self._files(epoch)):
            if not file.is_dir():  # which nothing here made
                file.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what a killed process left half done: parts, and tensors without scalars."""
        if self.path.is_dir():
            whole = {file for epoch in self.epochs() for file in self._files(epoch)}
            for file in self.path.glob("epoch-*"):
                if file not in whole and not file.is_dir():
                    file.unlink(missing_ok=True)

    def load(self, epoch: int) -> Checkpoint:
        """Return the checkpoint of ``epoch``; CorruptFileError if it is not whole."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        tensors_file, scalars_file = self._files(epoch)
        scalars = read_json(scalars_file, infinite=True)
        if scalars.get("format") != FORMAT:
            raise CorruptFileError(f"{scalars_file}: format {scalars.get('format')} is not {FORMAT}")
        try:
            if scalars["epoch"] != epoch:
                raise CorruptFileError(f"{scalars_file}: is of another epoch")
            if sha256_of(tensors_file) != scalars["sha256"]:
                raise CorruptFileError(f"{tensors_file}: its bytes are not those that were saved")
            return _checkpoint(scalars, load_file(tensors_file))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
            if isinstance(error, CorruptFileError):
                raise
            raise CorruptFileError(f"{scalars_file}: cannot be read ({error!r})") from None

    def _files(self, epoch: int) -> tuple[Path, Path]:
        name = f"epoch-{epoch:06d}"
        return self.path / f"{name}.safetensors", self.path / f"{name}.json"


def _tensors(checkpoint: Checkpoint) -> State:
    """Return all tensors under one roof; a good state that is the current one is not written twice."""
    tensors = dict(checkpoint.state)
    if checkpoint.good is not checkpoint.state:
        tensors |= {f"good.{name}": tensor for name, tensor in checkpoint.good.items()}
    if checkpoint.best is not None:
        tensors |= {f"best.{name}": tensor for name, tensor in checkpoint.best.weights.items()}
    return {name: tensor.contiguous().cpu() for name, tensor in tensors.items()}


def _scalars(checkpoint: Checkpoint) -> dict[str, Any]:
    best = checkpoint.best
    return {
        "format": FORMAT,
        "epoch": checkpoint.epoch,
        "good_epoch": checkpoint.good_epoch,
        "best": None if best is None else {"epoch": best.epoch, "rank": best.rank, "metrics": best.metrics},
        "metrics": checkpoint.metrics,
        "stale": checkpoint.stale,
        "lowered": checkpoint.lowered,
        "seconds": checkpoint.seconds,
        "rows": {"bytes": checkpoint.rows[0], "sha256": checkpoint.rows[1]},
        "environment": checkpoint.environment,
    }


#: the type of each scalar
SCALARS: dict[str, Any] = {
    **dict.fromkeys(("epoch", "good_epoch", "stale"), int),
    "best": dict | None,
    "metrics": dict,
    "lowered": bool,
    "seconds": float,
    "rows": dict,
}


def _checkpoint(scalars: dict[str, Any], tensors: State) -> Checkpoint:
    for key, hint in SCALARS.items():
        checked(hint, scalars[key], key, Range(at_least=0))

    def under(prefix: str) -> State:
        return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}

    state = {name: t for name, t in tensors.items() if not name.startswith(("good.", "best."))}
    best = scalars["best"]
    return Checkpoint(
        epoch=scalars["epoch"],
        state=state,
        good_epoch=scalars["good_epoch"],
        good=under("good.") or state,
        best=None
        if best is None
        else Best(
            int(best["epoch"]), tuple(map(float, best["rank"])), _numbers(best["metrics"]), under("best.")
        ),
        metrics=_numbers(scalars["metrics"]),
        stale=scalars["stale"],
        lowered=scalars["lowered"],
        seconds=scalars["seconds"],
        rows=(
            checked(int, scalars["rows"]["bytes"], "rows.bytes", Range(at_least=0)),
            str(scalars["rows"]["sha256"]),
        ),
        environment=dict(scalars.get("environment", {})),
    )


def _numbers(metrics: dict[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in metrics.items()}
