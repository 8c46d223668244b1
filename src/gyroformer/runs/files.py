"""The files that tell the result of a run, and their checksums."""

import hashlib
import io
import json
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import gyroformer
from gyroformer.durable import sha256_of, write_durably
from gyroformer.errors import CorruptFileError, DataError, UsageError
from gyroformer.models.pretrained import CONFIG, WEIGHTS, Pretrained, write_model
from gyroformer.runs.check import check_results
from gyroformer.runs.environment import environment
from gyroformer.runs.graph import GRAPH
from gyroformer.untrusted import read_json

METRICS, EMBEDDINGS, MANIFEST, RESULTS = "metrics.jsonl", "embeddings.npz", "manifest.json", "results.json"
#: what the arrays of the embeddings are, kept beside them
MEANING = (
    "embedding (nodes, heads, width): tangent vectors at the origin (log0) of each head's space, whose curvature is in "
    "'curvature' (0 without); Euclidean distances between them are not the distances of the nodes; "
    "probability (nodes, classes)"
)
#: the files whose checksums the manifest holds
CHECKED = (CONFIG, METRICS, WEIGHTS, EMBEDDINGS, GRAPH, RESULTS)


def write_finished(
    path: Path,
    model: Pretrained,
    *,
    seconds: float,
    compiled: bool,
    job: Mapping[str, Any],
    started: str,
    results: dict[str, Any],
    embeddings: dict[str, "np.ndarray[Any, Any]"],
    ids: Sequence[object],
    task: Mapping[str, Tensor] | None,
) -> None:
    """Write the files of a finished run, ``results.json`` last."""
    try:
        text = _text(results)
    except (TypeError, ValueError) as error:
        raise UsageError(f"results must be finite values that JSON knows ({error})") from None
    arrays = _npz(embeddings, ids)
    write_model(model, path, more={"job": dict(job), "started": started}, task=task)
    try:
        write_durably(path / EMBEDDINGS, arrays)
        checksums = {
            name: sha256_of(path / name) for name in CHECKED if (path / name).exists() and name != RESULTS
        }
        checksums[RESULTS] = hashlib.sha256(text).hexdigest()
        manifest = _manifest(model, seconds=seconds, compiled=compiled, seed=job.get("seed"), started=started)
        manifest["files"] = checksums
        manifest["sha256"] = _own_checksum(manifest)
        write_durably(path / MANIFEST, _text(manifest))
        write_durably(path / RESULTS, text)
    except OSError as error:
        raise DataError(f"{path}: the results could not be written ({error.strerror})") from error


def _npz(embeddings: dict[str, "np.ndarray[Any, Any]"], ids: Sequence[object]) -> bytes:
    """Return ``embeddings.npz``: the arrays, and the ids as text."""
    for name in {"ids", "file", "meaning"} & embeddings.keys():
        raise UsageError(f"an array of the embeddings cannot be called {name!r}: that name is taken")
    names = np.array([str(i) for i in ids], dtype=np.str_)
    for name, array in embeddings.items():
        if array.ndim > 1 and len(array) != len(names):  # a vector is of the space, not of the nodes
            raise UsageError(f"embeddings[{name!r}] has {len(array)} rows for {len(names)} ids")
        if array.dtype == object:
            raise UsageError(f"embeddings[{name!r}] holds Python objects; give numbers")
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {"ids": names, "meaning": np.array(MEANING), **embeddings}
    np.savez(buffer, **arrays)  # text and numbers only: nothing is pickled
    return buffer.getvalue()


def _manifest(
    model: Pretrained, *, seconds: float, compiled: bool, seed: object, started: str
) -> dict[str, Any]:
    """Return what a result depends on beside its settings, and where it came from."""
    parameter = next(model.parameters())
    return {
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "gyroformer": gyroformer.__version__,
        },
        "platform": platform.platform(),
        "machine": platform.machine(),
        **{key: value for key, value in environment().items() if key in ("threads", "processes", "kernels")},
        "dtype": str(parameter.dtype).removeprefix("torch."),
        "device": str(parameter.device),
        "compiled": compiled,
        "seed": seed,
        "argv": sys.argv,
        "seconds": seconds,
        "started": started,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _text(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()


def _own_checksum(manifest: Mapping[str, Any]) -> str:
    """Return the checksum of a manifest without its own."""
    content = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_results(path: Path) -> dict[str, Any]:
    """Return the results of a finished run."""
    if not (path / RESULTS).exists():
        raise DataError(f"{path}: holds no finished run ({RESULTS} is missing); continue it with --resume")
    results = read_json(path / RESULTS)
    check_results(results, path / RESULTS)
    return results


def verify_run(path: str | Path) -> None:
    """Check every file of a finished run against its checksum; CorruptFileError names the one that was altered."""
    folder = Path(path)
    read_results(folder)
    manifest = read_json(folder / MANIFEST)
    files = manifest.get("files")
    # its own checksum is of what it says; no byte beside that may be there either
    whole = manifest.get("sha256") == _own_checksum(manifest) and (
        (folder / MANIFEST).read_bytes() == (json.dumps(manifest, indent=2) + "\n").encode()
    )
    if not isinstance(files, dict) or not whole or not set(files) <= set(CHECKED):
        raise CorruptFileError(f"{folder / MANIFEST}: its content is not what was saved")
    for name, sha256 in files.items():
        if not (folder / name).is_file():
            raise CorruptFileError(
                f"{folder / name}: is missing; restore it, or run again into another folder"
            )
        if sha256_of(folder / name) != sha256:
            raise CorruptFileError(
                f"{folder / name}: its bytes are not those that were saved; restore it, or run again into another "
                "folder"
            )
