"""Splits on disk: ``.json`` to read, ``.npz`` to be small; both carry the checksum, compared on reading."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gyroformer.arrays import read_arrays
from gyroformer.data.split import PARTS, Split
from gyroformer.durable import make_folder, write_durably
from gyroformer.errors import CorruptFileError, DataError, UsageError
from gyroformer.untrusted import read_json

FORMAT = "gyroformer split 1"


def save_split(split: Split, path: str | Path) -> None:
    """Write ``split`` to a ``.json`` or ``.npz`` file, whole or not at all."""
    path = Path(path)
    parts = {part: getattr(split, part).numpy() for part in PARTS}
    facts = {"format": FORMAT, "sha256": split.sha256, **_facts(split)}
    if path.suffix == ".json":
        listed = {part: chosen.tolist() for part, chosen in parts.items()}
        content = json.dumps(facts | listed).encode()
    elif path.suffix == ".npz":
        buffer = io.BytesIO()
        np.savez_compressed(buffer, facts=np.array(json.dumps(facts)), **parts)
        content = buffer.getvalue()
    else:
        raise UsageError(f"{path}: a split is saved as .json or .npz")
    make_folder(path.parent)
    try:
        write_durably(path, content)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}); choose another path") from None


def load_split(path: str | Path) -> Split:
    """Return the split that ``save_split`` wrote to ``path``."""
    path = Path(path)
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    try:
        facts, parts = _read_json(path) if path.suffix == ".json" else _read_npz(path)
        fields = {key: facts[key] for key in ("name", "nodes", "dataset", "seed", "index", "stratified")}
        fields |= {part: torch.as_tensor(parts[part], dtype=torch.int64) for part in PARTS}
        split = Split(**fields)
        promised = (facts["format"], facts["sha256"])
    except CorruptFileError:
        raise
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RuntimeError) as error:
        raise CorruptFileError(f"{path}: not a saved split ({error})") from None
    if promised != (FORMAT, split.sha256):
        raise CorruptFileError(f"{path}: changed since it was saved: its checksum does not match")
    return split


def _facts(split: Split) -> dict[str, Any]:
    return {
        "name": split.name,
        "dataset": split.dataset,
        "nodes": split.nodes,
        "seed": split.seed,
        "index": split.index,
        "stratified": split.stratified,
        "leaks": split.leaks,
    }


def _read_json(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    held = read_json(path)
    return held, {part: held[part] for part in PARTS}


def _read_npz(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    arrays = read_arrays(path, ["facts", *PARTS], error=CorruptFileError, advice="save the split again")
    return json.loads(str(arrays.pop("facts"))), arrays
