"""What processes tell each other beside tensors: values, errors, and whether they were started alike."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch.distributed as dist

from gyroformer.errors import EchoedError, GyroformerError, ProcessLostError, UsageError
from gyroformer.processes.group import PATIENCE, World, joined, named_if_lost

T = TypeVar("T")


def of_first(make: Callable[[], T]) -> T:
    """Return what process 0 makes, in every process; an error of its is raised in all."""
    world = joined()
    if world is None:
        return make()
    said: dict[str, Any] = {}
    error: GyroformerError | None = None
    if world.rank == 0:
        try:
            said["value"] = make()
        except GyroformerError as mine:
            error, said["code"] = mine, mine.exit_code
    said = _of_first(world, said)
    if error is not None:
        raise error
    if "code" in said:
        raise EchoedError(said["code"])
    return said["value"]


@contextmanager
def agreed() -> Iterator[None]:
    """Wait for all processes at the end of the block; an error in one of them is raised in all."""
    world = joined()
    if world is None:
        yield
        return
    error: GyroformerError | None = None
    try:
        yield
    except GyroformerError as mine:
        error = mine
    if isinstance(error, ProcessLostError):  # nobody is there to be told
        raise error
    said = None if error is None else (str(error), error.exit_code, isinstance(error, EchoedError))
    everyone = _told(world, said)
    if world.rank == 0 and error is not None:
        raise error
    for rank, one in enumerate(everyone):
        if one is not None and not one[2]:
            if world.rank == 0:
                raise _another(rank, *one[:2])
            raise EchoedError(one[1])


def check_same(about: Mapping[str, object]) -> None:
    """Raise unless every process gives the same values, which may be nested, as process 0; a difference is named."""
    world = joined()
    if world is None:
        return
    first, *others = _told(world, dict(_flat(about)))
    for rank, one in enumerate(others, 1):
        for name in [*first, *(name for name in one if name not in first)]:
            if one.get(name) != first.get(name):
                if world.rank:
                    raise EchoedError(UsageError.exit_code)
                raise UsageError(
                    f"process {rank} has {name} = {one.get(name)!r}, process 0 has {first.get(name)!r}: start all "
                    "processes alike"
                )


def _flat(nested: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """Yield the values inside dictionaries under dotted names."""
    for name, value in nested.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _another(rank: int, message: str, code: int) -> GyroformerError:
    error = GyroformerError(f"process {rank}: {message}")
    error.exit_code = code
    return error


def _told(world: World, mine: Any) -> list[Any]:
    """Return what each process says, in their order."""
    everyone: list[Any] = [None] * world.count
    with named_if_lost(world, PATIENCE):
        dist.all_gather_object(everyone, mine, group=world.patient)
    return everyone


def _of_first(world: World, mine: Any) -> Any:
    """Return what process 0 says."""
    said = [mine]
    with named_if_lost(world, PATIENCE):
        dist.broadcast_object_list(said, src=0, group=world.patient)
    return said[0]
