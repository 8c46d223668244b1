"""A division of the nodes into training, validation and test, with its hash and its leaks."""

import dataclasses as dc
import hashlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gyroformer.errors import DataError, UsageError

PARTS = ("train", "val", "test")

#: splits that are allowed to leak, because results of others can only be compared on them
LEAKING = frozenset({"legacy"})

#: splits that may have no test node, because their maker keeps those to itself
UNTESTED = frozenset({"given"})


@dc.dataclass(frozen=True, slots=True)
class Overlap:
    """How many distinct nodes two parts share, and how many entries a part holds more than once."""

    train_val: int
    train_test: int
    val_test: int
    repeated: int

    def __bool__(self) -> bool:
        return any(dc.astuple(self))


@dc.dataclass(frozen=True, kw_only=True, eq=False)
class Split:
    """Which nodes are learned from, chosen on and tested on.

    Only a split named in ``LEAKING`` may have a node in two parts, and only one named in ``UNTESTED`` no test node;
    any other raises a DataError.

    Attributes:
        name: the rule that made it.
        nodes: number of nodes of the graph.
        train: node indices, int64, ascending.
        val: node indices, int64, ascending.
        test: node indices, int64, ascending.
        dataset: name of the data set, empty for a graph without one.
        seed: seed of the draw, for a rule that draws.
        index: number of the stored split, for a rule with several.
        stratified: whether the draw kept the classes' fractions.
    """

    name: str
    nodes: int
    train: Tensor
    val: Tensor
    test: Tensor
    dataset: str = ""
    seed: int | None = None
    index: int | None = None
    stratified: bool = False

    def __post_init__(self) -> None:
        for part in PARTS:
            chosen: Tensor = getattr(self, part)
            may_be_empty = part == "test" and self.name in UNTESTED
            if chosen.dtype != torch.int64 or chosen.dim() != 1 or not (chosen.numel() or may_be_empty):
                raise DataError(f"split {self.name!r}: {part} must be a list of node indices, and not empty")
            chosen = chosen.sort().values
            if chosen.numel() and (chosen[0] < 0 or chosen[-1] >= self.nodes):
                raise DataError(f"split {self.name!r}: {part} names a node beyond the graph's {self.nodes}")
            object.__setattr__(self, part, chosen)
        if split_overlap(self) and self.name not in LEAKING:
            raise DataError(f"split {self.name!r} leaks: {split_overlap(self)}; draw one that does not")

    @property
    def leaks(self) -> int:
        """Number of distinct test nodes that are also trained on."""
        return split_overlap(self).train_test

    @property
    def sha256(self) -> str:
        """Checksum of the three parts, in hexadecimal: equal for equal divisions, whatever their name."""
        parts = {part: getattr(self, part) for part in PARTS}
        return parts_sha256(f"gyroformer split 1 {self.nodes}", parts)

    def about(self) -> dict[str, Any]:
        """Return name, seed, sizes and checksum, for ``results.json``."""
        sizes = {part: getattr(self, part).numel() for part in PARTS}
        origin = {"name": self.name, "seed": self.seed, "index": self.index}
        return {**origin, **sizes, "sha256": self.sha256, "leaks": self.leaks}

    def describe(self) -> str:
        """Return one line: the rule, the sizes, the hash, and what leaks if anything does."""
        origin = [f"seed {self.seed}"] if self.seed is not None else []
        origin += [f"number {self.index}"] if self.index is not None else []
        origin += ["stratified"] if self.stratified else []
        sizes = "/".join(str(getattr(self, part).numel()) for part in PARTS)
        line = f"split {', '.join([self.name, *origin])}: {sizes} train/val/test, sha256 {self.sha256[:12]}"
        found = split_overlap(self)
        if not found:
            return line
        distinct = _distinct(self.test).numel()
        return (
            f"{line}; LEAKS: {found.train_test} of {distinct} distinct test nodes are training nodes, "
            f"{found.val_test} are validation nodes, {found.repeated} entries are repeated"
        )


def parts_sha256(head: str, parts: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of a line that names the kind and of each part's name, size and integers."""
    digest = hashlib.sha256(head.encode())
    for name, chosen in parts.items():
        digest.update(f" {name} {chosen.numel()} ".encode())
        digest.update(chosen.numpy().astype("<i8").tobytes())
    return digest.hexdigest()


def check_draw(what: str, number: int) -> None:
    """Raise a UsageError unless ``number`` can be the seed or the index of a split."""
    if not 0 <= number < 2**32:
        raise UsageError(f"the {what} of a split must be from 0 to 2**32 - 1, got {number}")


def split_overlap(split: Split) -> Overlap:
    """Return how far the parts of ``split`` overlap; falsy if they do not."""
    train, val, test = (_distinct(getattr(split, part)) for part in PARTS)
    entries = sum(getattr(split, part).numel() for part in PARTS)
    return Overlap(
        train_val=_shared(train, val),
        train_test=_shared(train, test),
        val_test=_shared(val, test),
        repeated=entries - train.numel() - val.numel() - test.numel(),
    )


def _shared(one: Tensor, other: Tensor) -> int:
    return int(torch.isin(one, other).sum())


def _distinct(chosen: Tensor) -> Tensor:
    distinct: Tensor = torch.unique_consecutive(chosen.sort().values)
    return distinct
