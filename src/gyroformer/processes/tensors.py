r"""Rows that processes share, and sums over processes that differentiate.

Each process computes a part :math:`L_p` of the loss :math:`L = \sum_p L_p` and goes back from that part alone. What a
process sends to others has an effect on their parts too, so the gradient of what was sent is the sum of what all
processes say about it: the derivative of a sum over processes is again a sum over processes. Parameters are the same in
all processes; :func:`sum_gradients` adds up what each has found for them.
"""

from collections.abc import Iterable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from gyroformer.processes.group import World, joined, named_if_lost


def share(total: int, rank: int | None = None) -> slice:
    """Return which of ``total`` rows are this process's, or those of ``rank``: of one process all, else a part."""
    world = joined()
    if world is None:
        return slice(0, total)
    me = world.rank if rank is None else rank
    return slice(total * me // world.count, total * (me + 1) // world.count)


def taken(rows: Tensor, some: slice) -> Tensor:
    """Return some rows; all of them without a step that would be differentiated."""
    return rows if some.stop - some.start == rows.shape[0] else rows[some]


def all_sum(x: Tensor) -> Tensor:
    """Return the sum of the tensors, alike in shape, that all processes have."""
    return summed(x, joined())


def summed(x: Tensor, world: World | None) -> Tensor:
    """Return the same over processes that were known before, for a derivative that is taken later."""
    return x if world is None else _AllSum.apply(x, world)


def gathered(rows: Tensor) -> Tensor:
    """Return the rows of all processes, which may have different numbers of them, those of process 0 first."""
    world = joined()
    return rows if world is None else _Gathered.apply(rows, world)


def sum_gradients(parameters: Iterable[Tensor]) -> None:
    """Replace the gradient of each parameter, where it has one, by the sum over all processes."""
    world = joined()
    if world is None:
        return
    found: dict[torch.dtype, list[Tensor]] = {}
    for parameter in parameters:
        if parameter.grad is not None:
            found.setdefault(parameter.grad.dtype, []).append(parameter.grad)
    for gradients in found.values():  # one message for all: a message costs more than its few numbers
        whole = torch.cat([gradient.flatten() for gradient in gradients])
        _reduce(whole, world)
        parts = whole.split([gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))


def sum_numbers(numbers: Sequence[float]) -> list[float]:
    """Return the sums of numbers over all processes, in double precision."""
    world = joined()
    if world is None:
        return list(numbers)
    whole = torch.tensor(numbers, dtype=torch.float64)
    _reduce(whole, world)
    found: list[float] = whole.tolist()
    return found


def numbers_of_first(numbers: Sequence[float]) -> list[float]:
    """Return the numbers that process 0 has."""
    world = joined()
    return sum_numbers(list(numbers) if world is None or world.rank == 0 else [0.0] * len(numbers))


def any_process(yes: bool) -> bool:
    """Return whether any process says yes."""
    return sum_numbers([float(yes)])[0] > 0


class _AllSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, world: World) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.world = world
        whole = x.detach().clone(memory_format=torch.contiguous_format)
        _reduce(whole, world)
        return whole

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def]
        return _AllSum.apply(grad, ctx.world), None


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: Tensor, world: World) -> Tensor:  # type: ignore[no-untyped-def]
        counts = _counts(rows.shape[0], world)
        first = sum(counts[: world.rank])
        ctx.world, ctx.mine = world, slice(first, first + rows.shape[0])
        # messages of one length: as long as the longest
        sent = rows.new_zeros(max(counts), *rows.shape[1:])
        sent[: rows.shape[0]] = rows.detach()
        received = [torch.empty_like(sent) for _ in counts]
        with named_if_lost(world, world.wait):
            dist.all_gather(received, sent)
        return torch.cat([part[:count] for part, count in zip(received, counts, strict=True)])

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def]
        return _AllSum.apply(grad, ctx.world)[ctx.mine], None


def _counts(mine: int, world: World) -> list[int]:
    """Return how many rows each process has."""
    counts = torch.zeros(world.count, dtype=torch.int64)
    counts[world.rank] = mine
    _reduce(counts, world)
    found: list[int] = counts.tolist()
    return found


def _reduce(tensor: Tensor, world: World) -> None:
    with named_if_lost(world, world.wait):
        dist.all_reduce(tensor)
