"""Splits by name.

``public`` is Planetoid's own; ``geom-gcn`` the ten stored ones (their files say 0.6/0.2 but hold 48/32/20);
``random`` is 60/20/20, drawn; ``clean`` is a stratified 70/15/15, drawn; ``legacy`` is the one that HGCN
and its successors used on Airport, which leaks and is kept only to compare with their numbers.
"""

import dataclasses as dc
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

from gyroformer.arrays import read_arrays
from gyroformer.data.folder import data_folder
from gyroformer.data.registry import DATASETS
from gyroformer.data.sources import FETCH_AGAIN
from gyroformer.data.split import PARTS, Overlap, Split, check_draw, split_overlap
from gyroformer.data.split_files import load_split, save_split
from gyroformer.errors import DataError, UsageError, did_you_mean
from gyroformer.graphs.check import UNLABELLED

if TYPE_CHECKING:
    from torch_geometric.data import Data

__all__ = ["SPLITS", "Overlap", "Rule", "Split", "load_split", "make_split", "save_split", "split_overlap"]


@dc.dataclass(frozen=True, slots=True)
class Rule:
    """A way to split: what it takes to choose one of several, that choice's default, and what it is."""

    takes: Literal["seed", "index"] | None
    default: int | None
    about: str


SPLITS: dict[str, Rule] = {
    "public": Rule(None, None, "Planetoid's own: 20 nodes per class, 500, 1000"),
    "geom-gcn": Rule("index", 0, "ten stored ones, in fact 48/32/20"),
    "random": Rule("seed", 0, "60/20/20, drawn"),
    "clean": Rule("seed", 0, "70/15/15 of every class, drawn"),
    "legacy": Rule("seed", 1234, "HGCN's for Airport: LEAKS, only to compare with its numbers"),
}


def make_split(
    data: "Data",
    name: str | None = None,
    *,
    seed: int | None = None,
    index: int | None = None,
    stratified: bool = False,
    folder: str | Path | None = None,
) -> Split:
    """Return the split called ``name`` of the graph's nodes.

    Draws use a generator of their own: the result depends on the seed alone and disturbs no other draw.

    Args:
        data: a graph; ``public`` and ``geom-gcn`` need one that ``load`` returned for a data set's name.
        name: a key of ``SPLITS``; by default the data set's own, or ``random`` for a graph without a name.
        seed: which draw, for a split that is drawn.
        index: which one, for stored splits.
        stratified: draw ``random`` from each class in turn, so that all parts have the same fraction of each class.
        folder: the data folder, if not the usual one.
    """
    dataset = str(getattr(data, "name", "") or "")
    spec = DATASETS.get(dataset)
    name = name or (spec and spec.default_split) or "random"
    if name not in SPLITS:
        raise UsageError(f"no split is called {name!r}{did_you_mean(name, SPLITS)}")
    chosen = _choice(name, seed=seed, index=index)
    if stratified and name != "random":
        raise UsageError(f"'stratified' is an option of the split 'random', not of {name!r}")
    nodes = int(data.num_nodes or 0)
    match name:
        case "public":
            parts = _public(data)
        case "geom-gcn":
            parts = _stored(dataset, chosen["index"], nodes, Path(folder) if folder else data_folder())
        case "random":
            groups = _classes(data, name) if stratified else [_labelled(data, nodes)]
            parts = _draw(groups, chosen["seed"], fraction=0.2)
        case "clean":
            parts = _draw(_classes(data, name), chosen["seed"], fraction=0.15)
        case _:
            parts = _legacy(data, chosen["seed"])
    train, val, test = parts
    return Split(
        name=name,
        nodes=nodes,
        train=train,
        val=val,
        test=test,
        dataset=dataset,
        stratified=stratified,
        **chosen,
    )


def _choice(name: str, *, seed: int | None, index: int | None) -> dict[str, int]:
    """Return the one of ``seed`` and ``index`` that the rule takes, refusing the other."""
    rule = SPLITS[name]
    given = {key: value for key, value in (("seed", seed), ("index", index)) if value is not None}
    for key, value in given.items():
        if key != rule.takes:
            raise UsageError(
                f"the split {name!r} takes no {key}" + (f", only {rule.takes}" * bool(rule.takes))
            )
        check_draw(key, value)
    if rule.takes is None or rule.default is None:
        return {}
    return {rule.takes: given.get(rule.takes, rule.default)}


def _public(data: "Data") -> tuple[Tensor, Tensor, Tensor]:
    masks = [getattr(data, f"{part}_mask", None) for part in PARTS]
    if not all(isinstance(mask, Tensor) and mask.dim() == 1 for mask in masks):
        public = [name for name, spec in DATASETS.items() if "public" in spec.splits]
        raise UsageError(f"this graph has no public split; data sets that have one: {', '.join(public)}")
    train, val, test = (mask.cpu().nonzero().flatten() for mask in masks if mask is not None)
    return train, val, test


def _stored(dataset: str, index: int, nodes: int, folder: Path) -> tuple[Tensor, Tensor, Tensor]:
    stored = [name for name, spec in DATASETS.items() if "geom-gcn" in spec.splits]
    if dataset not in stored:
        raise UsageError(f"geom-gcn stored splits of {', '.join(stored)} only: use the split 'random' here")
    files = [
        file.path for file in DATASETS[dataset].files if file.path.endswith(f"_split_0.6_0.2_{index}.npz")
    ]
    if not files:
        raise UsageError(f"there are ten stored splits, numbered 0 to 9: no number {index}")
    path = folder / files[0]
    if not path.is_file():
        raise DataError(f"{path}: not found; run gyroformer datasets {dataset} --fetch")
    arrays = read_arrays(path, [f"{part}_mask" for part in PARTS], advice=FETCH_AGAIN)
    masks = [mask.astype(np.bool_) for mask in arrays.values()]
    if any(mask.shape != (nodes,) for mask in masks):
        raise DataError(f"{path}: made for {masks[0].size} nodes, but the graph has {nodes}")
    train, val, test = (torch.from_numpy(np.flatnonzero(mask)) for mask in masks)
    return train, val, test


def _labels(data: "Data", name: str) -> Tensor:
    y = getattr(data, "y", None)
    if not isinstance(y, Tensor):
        raise UsageError(f"the split {name!r} needs labels, and this graph has none")
    return y.cpu()


def _classes(data: "Data", name: str) -> list[Tensor]:
    y = _labels(data, name)
    known = y[y != UNLABELLED]
    return [(y == label).nonzero().flatten() for label in torch.unique_consecutive(known.sort().values)]


def _labelled(data: "Data", nodes: int) -> Tensor:
    """Return the nodes whose label is known: all of a graph without labels."""
    y = getattr(data, "y", None)
    return torch.arange(nodes) if not isinstance(y, Tensor) else (y.cpu() != UNLABELLED).nonzero().flatten()


def _draw(groups: list[Tensor], seed: int, *, fraction: float) -> tuple[Tensor, Tensor, Tensor]:
    """Take the same fraction of each group for validation and for test, the rest for training."""
    generator = torch.Generator().manual_seed(seed)
    train, val, test = [], [], []
    for group in groups:
        count = int(fraction * group.numel() + 0.5)
        order = group[torch.randperm(group.numel(), generator=generator)]
        val.append(order[:count])
        test.append(order[count : 2 * count])
        train.append(order[2 * count :])
    return torch.cat(train), torch.cat(val), torch.cat(test)


def _legacy(data: "Data", seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Do what HGCN's rule, made for two classes, does to more of them.

    "Positive" are the nodes whose label is not 0 and "negative" those whose label is not 1, so every node of
    a third class is both; each list is shuffled and divided by itself, and the parts are put together.
    """
    labels = _labels(data, "legacy").numpy()
    stream = np.random.RandomState(seed)  # the very stream that the published numbers used
    lists = [np.flatnonzero(labels != 0), np.flatnonzero(labels != 1)]
    for one in lists:
        stream.shuffle(one)
    count = round(0.15 * min(one.size for one in lists))
    cuts = (slice(2 * count, None), slice(0, count), slice(count, 2 * count))
    train, val, test = (torch.from_numpy(np.concatenate([one[cut] for one in lists])) for cut in cuts)
    return train, val, test
