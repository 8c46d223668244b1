"""Processes that ``torchrun`` has started: who they are, by its environment variables, and their connection."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType

from gyroformer.errors import UsageError
from gyroformer.processes.group import PATIENCE, World, lost, set_world

#: what torchrun tells each process
VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def launched() -> int:
    """Return how many processes were started together, by what ``torchrun`` says; 1 if it did not start this one."""
    if not all(os.environ.get(name) for name in VARIABLES):
        return 1
    return _number("WORLD_SIZE")


def speaks() -> bool:
    """Return whether this process is the one that speaks for all, before they are connected."""
    return launched() == 1 or os.environ["RANK"] == "0"


def speaks_here() -> bool:
    """Return whether this process is the one that speaks for all of its machine, before they are connected."""
    return launched() == 1 or os.environ.get("LOCAL_RANK", "0") == "0"


def beside() -> int:
    """Return how many of them are on this machine, this one among them."""
    return _number("LOCAL_WORLD_SIZE") if launched() > 1 and os.environ.get("LOCAL_WORLD_SIZE") else 1


def refuse_several(command: str, able: list[str]) -> None:
    """Raise if several processes were started for a command that cannot use them."""
    if not speaks():
        raise SystemExit(UsageError.exit_code)
    if launched() > 1:
        raise UsageError(
            f"{command} runs in one process, and torchrun started {launched()}: type gyroformer {command} … without "
            f"torchrun (several processes are for {', '.join(able)})"
        )


@contextmanager
def connected(device: str, wait: float) -> Iterator[None]:
    """Connect the processes that ``torchrun`` started while the block runs; nothing is done for one.

    Args:
        device: where tensors are: ``"cuda"`` takes one GPU for each process of a machine.
        wait: seconds that a process may keep the others waiting in a computation before they give up.
    """
    if launched() == 1:
        yield
        return
    import torch
    import torch.distributed as dist

    kind = torch.device(device).type
    if kind == "cuda":
        torch.cuda.set_device(_number("LOCAL_RANK"))
    backend = "cpu:gloo,cuda:nccl" if kind == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=timedelta(seconds=wait))
    patient = dist.new_group(backend="gloo", timeout=timedelta(seconds=PATIENCE))
    set_world(World(dist.get_rank(), dist.get_world_size(), wait, patient))
    signal.signal(signal.SIGTERM, _ended)
    try:
        yield
        dist.destroy_process_group()  # not after an error: the others may not answer any more
    finally:
        set_world(None)


def _ended(number: int, frame: FrameType | None) -> None:
    """Stop as Ctrl-C does; but torchrun ends all processes when one has gone, and who missed it is to say so first."""
    if not lost():
        raise KeyboardInterrupt


def _number(name: str) -> int:
    text = os.environ.get(name, "")
    if not text.isdigit():
        raise UsageError(
            f"the environment variable {name} must be a whole number, as torchrun sets it; got {text!r}"
        )
    return int(text)
