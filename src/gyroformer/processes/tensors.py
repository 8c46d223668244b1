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

#: numbers from which on a gradient is a message of its own: below, a message costs more than copying the numbers
LARGE = 1 << 16


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


def gathered(rows: Tensor, total: int | None = None) -> Tensor:
    """Return the rows of all processes, which may have different numbers of them, those of process 0 first.

    With ``total`` these are the rows of :func:`share`, so that nobody has to ask how many the others have.
    """
    world = joined()
    if world is None:
        return rows
    if total is None:
        return _Gathered.apply(rows, _counts(rows.shape[0], world), world)
    parts = [share(total, rank) for rank in range(world.count)]
    return _Gathered.apply(rows, [part.stop - part.start for part in parts], world)


def gathered_at_once(parts: Sequence[Tensor], total: int) -> tuple[Tensor, ...]:
    """Return :func:`gathered` of several tensors of the same rows, in one message: it costs as much as many rows."""
    if joined() is None:
        return tuple(parts)
    flat = [part.flatten(1) for part in parts]
    columns = gathered(torch.cat(flat, 1), total).split([part.shape[1] for part in flat], 1)
    return tuple(found.reshape(total, *part.shape[1:]) for found, part in zip(columns, parts, strict=True))


def sum_gradients(parameters: Iterable[Tensor]) -> None:
    """Replace the gradient of each parameter, where it has one, by the sum over all processes."""
    world = joined()
    if world is None:
        return
    found: dict[torch.dtype, list[Tensor]] = {}
    for gradient in (parameter.grad for parameter in parameters if parameter.grad is not None):
        if gradient.numel() >= LARGE:
            whole = gradient.contiguous()  # the gradient itself, as a rule
            _reduce(whole, world)
            gradient.copy_(whole)
        else:
            found.setdefault(gradient.dtype, []).append(gradient)
    for gradients in found.values():
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
    """The rows of all processes; the gradient of a row goes back to the process that has it."""

    @staticmethod
    def forward(ctx, rows: Tensor, counts: list[int], world: World) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.counts, ctx.world = counts, world
        # messages of one length: as long as the longest
        longest, shape = max(counts), rows.shape[1:]
        sent = rows.detach().contiguous()
        if rows.shape[0] < longest:
            sent = torch.cat((sent, rows.new_zeros(longest - rows.shape[0], *shape)))
        received = [torch.empty_like(sent) for _ in counts]
        with named_if_lost(world, world.wait):
            dist.all_gather(received, sent)
        return torch.cat([part[:count] for part, count in zip(received, counts, strict=True)])

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[no-untyped-def]
        return _Returned.apply(grad, ctx.counts, ctx.world), None, None


class _Returned(torch.autograd.Function):
    """The sum over processes of what each says about the rows that are this process's."""

    @staticmethod
    def forward(ctx, said: Tensor, counts: list[int], world: World) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.counts, ctx.world = counts, world
        mine = counts[world.rank]
        received = said.new_empty(world.count * mine, *said.shape[1:])
        with named_if_lost(world, world.wait):
            dist.all_to_all_single(received, said.detach().contiguous(), [mine] * world.count, counts)
        return received.unflatten(0, (world.count, mine)).sum(0)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[no-untyped-def]
        return _Gathered.apply(grad, ctx.counts, ctx.world), None, None


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
