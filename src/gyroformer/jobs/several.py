"""What several processes that compute a job as one must have in common, and what they cannot do."""

from typing import Any

import torch

import gyroformer
from gyroformer.errors import UsageError
from gyroformer.ops.native import build
from gyroformer.options import as_plain
from gyroformer.processes.agreement import agreed, check_same, of_first
from gyroformer.processes.group import count as processes
from gyroformer.processes.group import together
from gyroformer.settings import JobSettings
from gyroformer.tasks import Task


def check_alike(job: JobSettings, options: dict[str, Any]) -> None:
    """Raise, naming the process, unless all processes have the same versions, settings and options."""
    with together():
        of_first(lambda: build.library() is not None)  # compiled by one, then found by the others
        with agreed():
            check_same(
                {
                    "gyroformer": gyroformer.__version__,
                    "torch": torch.__version__,
                    "kernels": build.library() is not None,
                    **as_plain(job),
                    **options,
                }
            )


def check_processes(job: JobSettings, task: Task) -> None:
    """Refuse what several processes cannot do."""
    nodes = int(task.data.num_nodes or 0)
    if processes() > nodes:
        raise UsageError(
            f"there are {processes()} processes for {nodes} nodes: start no more than one for each node"
        )
    if job.training.compile:
        raise UsageError("--compile is for one process: leave it out")
