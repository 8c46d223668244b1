"""Which labelled nodes a classifier learns from and which it chooses on."""

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gyroformer.data.registry import DATASETS
from gyroformer.data.split import PARTS, Split
from gyroformer.errors import DataError, UsageError
from gyroformer.estimators.inputs import Int, node_indices
from gyroformer.graphs.check import UNLABELLED
from gyroformer.settings import JobSettings
from gyroformer.tasks.classify import split_of

if TYPE_CHECKING:
    from torch_geometric.data import Data


def chosen_split(
    split: Any, data: "Data", job: JobSettings, codes: Int, *, own: bool, fraction: float
) -> Split:
    """Return the split to learn by, without nodes that have no label.

    Args:
        split: a ``Split``, a split's name, masks or indices ``(train, val)`` or ``(train, val, test)`` of which the
            first two may be None, or None: the graph's own split if labels are its own, else all labelled nodes.
        data: the graph.
        job: the job, whose seed decides draws and whose objective holds the split's name.
        codes: class numbers of all nodes, ``UNLABELLED`` where there is none.
        own: whether labels are the graph's own.
        fraction: fraction of the nodes to learn from that is held out if there are none to choose on.
    """
    if isinstance(split, Split):
        return only_labelled(split, codes)
    if isinstance(split, (tuple, list)):
        if len(split) not in (2, 3):
            raise UsageError(f"split must be (train, val) or (train, val, test), got {len(split)} parts")
        return given_split(tuple(split), codes, fraction, job.seed)
    if split is not None or (own and str(getattr(data, "name", "") or "") in DATASETS):
        numbered = copy.copy(data)
        numbered.y = torch.from_numpy(codes)
        return only_labelled(split_of(numbered, job.objective, job.seed), codes)
    masks = own_masks(data) if own else None
    return given_split(masks or (None,), codes, fraction, job.seed)


def own_masks(data: "Data") -> tuple[Any, ...] | None:
    """Return the masks that a graph carries, to learn from, to choose on and to test on; None if it has none."""
    train, val, test = (getattr(data, f"{part}_mask", None) for part in PARTS)
    if train is None:
        return None
    if train.dim() != 1:
        raise UsageError(
            f"the graph's masks hold {train.size(-1)} splits: choose one by split=(train, val, test)"
        )
    return (train, val) if test is None else (train, val, test)


def given_split(parts: tuple[Any, ...], codes: Int, fraction: float, seed: int) -> Split:
    """Return the split of masks or indices that the caller gave.

    Args:
        parts: nodes to learn from (None: all labelled ones that the other two do not name), to choose on (None: held
            out from the first) and to test on (absent: all other labelled nodes).
        codes: class numbers of all nodes, ``UNLABELLED`` where there is none.
        fraction: fraction of the nodes to learn from that is held out if there are none to choose on.
        seed: of the nodes that are held out.
    """
    nodes, everything = len(codes), np.flatnonzero(codes != UNLABELLED)
    given = [
        None if part is None else _labelled(node_indices(part, nodes, name), codes)
        for name, part in zip(PARTS, parts, strict=False)
    ]
    train, val, test = given + [None] * (3 - len(given))
    if train is None:
        taken = [part for part in (val, test) if part is not None]
        train = np.setdiff1d(everything, np.concatenate(taken)) if taken else everything
    if val is None:
        train, val = held_out(train, codes, fraction, seed)
    if test is None:
        test = np.setdiff1d(everything, np.concatenate((train, val)))
    chosen = [torch.from_numpy(part) for part in (train, val, test)]
    return Split(name="given", nodes=nodes, train=chosen[0], val=chosen[1], test=chosen[2])


def only_labelled(split: Split, codes: Int) -> Split:
    """Return the split without the nodes that have no label."""
    if split.nodes != len(codes):
        raise UsageError(f"the split is of {split.nodes} nodes, but the graph has {len(codes)}")
    if all((codes[getattr(split, part).numpy()] != UNLABELLED).all() for part in PARTS):
        return split
    train, val, test = (torch.from_numpy(_labelled(getattr(split, part).numpy(), codes)) for part in PARTS)
    return Split(name="given", nodes=split.nodes, dataset=split.dataset, train=train, val=val, test=test)


def held_out(train: Int, codes: Int, fraction: float, seed: int) -> tuple[Int, Int]:
    """Take a fraction of the nodes of each class away, leaving one at least; return the others and these."""
    if not 0 < fraction < 1:
        raise UsageError(f"validation_fraction must lie between 0 and 1, got {fraction}")
    stream = np.random.RandomState(seed)
    orders = [stream.permutation(train[codes[train] == label]) for label in np.unique(codes[train])]
    counts = [min(int(fraction * len(order) + 0.5), len(order) - 1) for order in orders]
    if orders and not any(counts):  # so few nodes that no class would give one
        largest = max(range(len(orders)), key=lambda index: len(orders[index]))
        counts[largest] = min(1, len(orders[largest]) - 1)
    if not any(counts):
        raise DataError(
            f"{len(train)} labelled nodes are too few to hold some out: label more, or give nodes to choose on (val)"
        )
    held = np.concatenate([order[:count] for order, count in zip(orders, counts, strict=True)])
    return np.setdiff1d(train, held), np.sort(held)


def _labelled(indices: Int, codes: Int) -> Int:
    distinct = np.unique(indices)
    return distinct[codes[distinct] != UNLABELLED]
