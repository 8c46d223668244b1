"""The processes that compute as one, and this process among them.

A command that ``torchrun`` has started says at its beginning who the processes are (:func:`set_world`). They compute as
one only inside :func:`together`: outside, each is alone, and whatever one of them does by itself (a report, an answer)
waits for nobody.
"""

import dataclasses as dc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gyroformer.errors import ProcessLostError

#: seconds that processes may differ where each works by itself: reading a graph, preparing it, writing a run
PATIENCE = 1800.0


@dc.dataclass(frozen=True)
class World:
    """All processes.

    Attributes:
        rank: the number of this one, from 0.
        count: how many there are.
        wait: seconds that the others may keep this one waiting in a computation.
        patient: the group of torch for agreements, which waits longer: one may read a graph faster than another.
    """

    rank: int
    count: int
    wait: float
    patient: Any


_world: World | None = None
_together = False
_lost = False


def set_world(world: World | None) -> None:
    """Say who the processes are; None for one process."""
    global _world
    _world = world


def is_first() -> bool:
    """Return whether this process writes and speaks for all: process 0, and one that has no others."""
    return _world is None or _world.rank == 0


@contextmanager
def together() -> Iterator[None]:
    """Compute as one with the other processes inside the block, which all of them go through alike."""
    global _together
    before, _together = _together, True
    try:
        yield
    finally:
        _together = before


def lost() -> bool:
    """Return whether another process has been missed."""
    return _lost


@contextmanager
def named_if_lost(world: World, wait: float) -> Iterator[None]:
    """Turn what torch says when another process does not answer into an error of ours.

    Args:
        world: the processes.
        wait: seconds after which torch gives up.
    """
    global _lost
    try:
        yield
    except RuntimeError as error:
        _lost = True
        raise ProcessLostError(world.rank, world.count, wait, str(error)) from error


def joined() -> World | None:
    """Return the processes that compute as one at this moment; None for one that computes alone."""
    return _world if _together else None


def count() -> int:
    """Return how many processes compute as one at this moment."""
    world = joined()
    return 1 if world is None else world.count
