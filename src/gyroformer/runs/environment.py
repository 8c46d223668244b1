"""What the bits of a run depend on beside its settings, so that a resumed run can say that they may differ."""

import platform
from collections.abc import Mapping

import torch

from gyroformer.ops.native import build
from gyroformer.processes.group import count as processes

Environment = dict[str, str | int | None]


def environment() -> Environment:
    """Return the version of torch, the machine, threads and processes, and which C++ kernels were used (None: none)."""
    return {
        "torch": torch.__version__,
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "processes": processes(),
        "kernels": build.used(),
    }


def differences(before: Mapping[str, object]) -> list[str]:
    """Return in words what is no longer as in an environment that was recorded."""
    if before.get("kernels") is not None:
        build.library()  # the run has asked for them and will again: what it gets is to be compared
    now = environment()
    return [
        f"{name} {_shown(before[name])}, now {_shown(now[name])}"
        for name in now
        if before.get(name) is not None and before[name] != now[name]
    ]


def _shown(value: object) -> str:
    return str(value)[:64]
