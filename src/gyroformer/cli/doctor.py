"""``gyroformer doctor``: what is installed, what the machine offers, which data was found."""

import importlib.metadata
import os
import platform
from typing import Any

import gyroformer
from gyroformer.cli.options import Json
from gyroformer.cli.terminal import print_json, say

#: what a machine without a compiler loses
WITHOUT_KERNELS = "on a CPU layers take about 3 times as long, functions of the geometry 3 to 10 times"
#: package -> what is lost without it; an empty string marks a package that must be there.
PACKAGES = {
    "torch": "",
    "torch_geometric": "",
    "numpy": "",
    "scipy": "",
    "safetensors": "",
    "pyarrow": "parquet files (gyroformer[parquet])",
    "pyamg": "fast Laplacian eigenvectors of grid-like graphs (gyroformer[fast])",
    "matplotlib": "figures of the documentation (gyroformer[figures])",
}


def doctor(as_json: Json = False) -> None:
    """Say what is installed, what the machine offers and which data was found.

    Example: gyroformer doctor --json
    """
    found = examine()
    if as_json:
        print_json(found)
        return
    for title in ("gyroformer", "python", "platform", "threads", "device", "compiler", "kernels"):
        say(f"{title:<16} {found[title]}")
    for name, version in found["packages"].items():
        note = "" if version else f"missing: without it no {PACKAGES[name] or 'gyroformer'}"
        say(f"{name:<16} {version or '-'}  {note}".rstrip())
    say(f"{'data':<16} {found['data']['folder']}  ({found['data']['state']})")


def examine() -> dict[str, Any]:
    """Return the facts that ``doctor`` prints."""
    import torch

    from gyroformer import compiled
    from gyroformer.geometry.kernels import KERNELS
    from gyroformer.ops.native import build

    device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    return {
        "gyroformer": gyroformer.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": torch.get_num_threads(),
        "device": device,
        "compiler": compiled.find_compiler() or "none: torch.compile will not work",
        "kernels": "C++" if build.library() and KERNELS.library() else f"plain torch: {WITHOUT_KERNELS}",
        "packages": {name: _version(name) for name in PACKAGES},
        "data": _data_folder(),
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _data_folder() -> dict[str, str]:
    from gyroformer.data.folder import VARIABLE, data_folder
    from gyroformer.data.registry import DATASETS
    from gyroformer.data.state import state_of

    folder = data_folder()
    if not folder.is_dir():
        named = bool(os.environ.get(VARIABLE))
        state = f"{VARIABLE} names no folder" if named else "nothing there yet: gyroformer datasets --fetch"
        return {"folder": str(folder), "state": state}
    there = sum(state_of(name, folder) in ("ready", "no splits") for name in DATASETS)
    return {"folder": str(folder), "state": f"{there} of {len(DATASETS)} data sets"}
