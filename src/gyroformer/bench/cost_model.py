"""How long a training step of FPS-T will take on machines that were not at hand: an estimate from what was measured.

A step has three parts. Tokens: each costs the same, however many there are, and processes share them. Near lists: so
many pairs a node, shared too. Traffic: the points of the nodes are gathered and their gradients sent back, and the
gradients of the node vectors are added up, which takes each number twice; the sums of linear attention and the
gradients of other parameters are small beside it.

On a CPU the cost of a token is measured. On a GPU, which was not at hand, it is taken to be the bytes that a step
reads and writes over the bandwidth of the GPU's memory: layers of width 16 do little arithmetic with each number.
"""

import dataclasses as dc
from collections.abc import Mapping

#: numbers of 4 bytes, in widths, that a block keeps of a token for the backward pass (counted with autograd's hooks)
KEPT = 12.25
#: how often each of them crosses the memory: written, read on the way back, and as much again for gradients
CROSSINGS = 4
#: bytes a pair of a near list moves, forward and backward: gathered coordinates, terms, added gradients
PAIR_BYTES = 3 * 4 * 16
#: numbers of 4 bytes, in widths, that a process sends for each node: its points, their gradients, its vector's twice
SENT = 4


@dc.dataclass(frozen=True)
class Machine:
    """What a process computes with.

    Attributes:
        token_seconds: of a token of width 16 in one block, forward and backward.
        pair_seconds: of a pair of a near list, forward and backward.
        link: bytes a second between processes.
        latency: seconds of an exchange between processes.
    """

    token_seconds: float
    pair_seconds: float
    link: float
    latency: float

    @classmethod
    def of_bandwidth(cls, memory: float, link: float, latency: float) -> "Machine":
        """Return a machine on which bytes are what costs; ``memory`` and ``link`` are bytes a second."""
        return cls(CROSSINGS * KEPT * 16 * 4 / memory, PAIR_BYTES / memory, link, latency)


def linear_fit(seconds: Mapping[int, float]) -> tuple[float, float]:
    """Return the fixed seconds of a step and those of a token, from the smallest and the largest measured size."""
    few, many = min(seconds), max(seconds)
    slope = (seconds[many] - seconds[few]) / (many - few)
    return seconds[few] - few * slope, slope


def step_seconds(
    machine: Machine,
    *,
    nodes: int,
    edges: int,
    processes: int,
    layers: int = 1,
    width: int = 16,
    pairs_a_node: int = 48 + 64,
) -> dict[str, float]:
    """Return the seconds of a step of ``embed --negatives near`` by part, with their ``total``."""
    wide = width / 16
    parts = {
        "tokens": machine.token_seconds * wide * layers * (nodes + edges) / processes,
        "pairs": machine.pair_seconds * wide * pairs_a_node * nodes / processes,
        "traffic": 0.0
        if processes == 1
        else SENT * 4 * nodes * width / machine.link + (4 * layers + 3) * machine.latency,
    }
    return parts | {"total": sum(parts.values())}
