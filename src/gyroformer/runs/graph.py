"""The graph that a run was made from: ``graph.npz``, so that no file is read again that may have changed or gone.

A data set is kept by its name and checksums alone: it is not going to change, and it is often larger than the run.
"""

import dataclasses as dc
import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gyroformer.arrays import read_arrays
from gyroformer.data.load import load
from gyroformer.data.registry import DATASETS
from gyroformer.data.split import PARTS, Split
from gyroformer.durable import write_durably
from gyroformer.errors import CorruptFileError, DataError, GyroformerError
from gyroformer.graphs.build import graph_from_edges
from gyroformer.settings import GraphOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch_geometric.data import Data

GRAPH = "graph.npz"
#: arrays of a graph that are kept as they are, where it has them
KEPT = ("edge_weight", "x", "y")
ADVICE = "restore it, or run again into another folder"


@dc.dataclass(frozen=True)
class StoredGraph:
    """What ``graph.npz`` holds.

    Attributes:
        data: the graph as it was read, features included if the run used them.
        checksums: of the ids, the edges and whatever else the graph had, by name.
        more: further arrays that an estimator kept.
        split: the split that was given in Python, if one was.
    """

    data: "Data"
    checksums: dict[str, str]
    more: dict[str, "NDArray[Any]"]
    split: Split | None


def graph_checksums(data: "Data") -> dict[str, str]:
    """Return the SHA-256 of each part of a graph: equal for equal graphs."""
    parts: dict[str, bytes] = {
        "nodes": json.dumps([str(name) for name in data.ids]).encode(),
        "edges": np.ascontiguousarray(data.edge_index.cpu().numpy().astype("<i8")).tobytes(),
    }
    for name, key in (("weights", "edge_weight"), ("features", "x"), ("labels", "y")):
        if key in data and data[key] is not None:
            parts[name] = np.ascontiguousarray(data[key].cpu().numpy()).tobytes()
    return {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}


def changed_parts(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the names of the parts that differ between two graphs."""
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]


def write_graph(
    folder: Path,
    data: "Data",
    *,
    options: GraphOptions,
    features: bool = True,
    more: Mapping[str, "NDArray[Any]"] | None = None,
    split: Split | None = None,
) -> None:
    """Write the graph, further arrays and a split to ``folder``; nothing is pickled.

    Args:
        folder: the run folder.
        data: the graph as it was read.
        options: where it came from.
        features: whether the run uses its features; else their checksum alone is kept.
        more: arrays that an estimator keeps.
        split: a split that no name brings back.
    """
    by_name = options.source in DATASETS and not more
    about: dict[str, Any] = {
        "checksums": graph_checksums(data),
        "directed": options.directed,
        "dataset": options.source if by_name else None,
        "feature_set": options.features if by_name else None,
    }
    arrays: dict[str, Any] = dict(more or {})
    if not by_name:
        about |= {"name": str(data.name) if "name" in data else None, "ids": list(data.ids)}
        about["label_names"] = data.label_names if "label_names" in data else None
        arrays |= {"edge_index": data.edge_index.cpu().numpy(), "num_nodes": np.array(data.num_nodes)}
        kept = [key for key in KEPT if key in data and data[key] is not None and (features or key != "x")]
        arrays |= {key: data[key].cpu().numpy() for key in kept}
    if split is not None:
        arrays |= {part: getattr(split, part).numpy() for part in PARTS}
        origin = {"name": split.name, "dataset": split.dataset, "seed": split.seed, "index": split.index}
        about["split"] = origin | {"stratified": split.stratified}
    if any(array.dtype == object for array in arrays.values()):
        raise DataError(
            "classes that are neither numbers nor text cannot be saved: pickle the estimator instead"
        )
    buffer = io.BytesIO()
    # integers and text may be mixed in ids: as JSON nothing is pickled
    np.savez_compressed(buffer, about=np.array(json.dumps(about)), **arrays)
    try:
        write_durably(folder / GRAPH, buffer.getvalue())
    except OSError as error:
        raise DataError(f"{folder / GRAPH}: could not be written ({error.strerror})") from error


def read_graph(folder: Path) -> StoredGraph | None:
    """Return what ``write_graph`` wrote; None if the run is of a version that kept no graph."""
    path = folder / GRAPH
    if not path.exists():
        return None
    arrays = read_arrays(path, error=CorruptFileError, advice=ADVICE)
    try:
        about = json.loads(str(arrays.pop("about")))
        checksums: dict[str, str] = about["checksums"]
        data = _dataset(about, path) if about["dataset"] else _built(about, arrays)
        split = _split(about["split"], arrays, int(data.num_nodes or 0)) if "split" in about else None
    except GyroformerError:
        raise
    except (LookupError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise CorruptFileError(f"{path}: is not the graph of a run ({error!r}): {ADVICE}") from None
    return StoredGraph(data, checksums, arrays, split)


def _dataset(about: dict[str, Any], path: Path) -> "Data":
    """Return a data set that is kept by its name."""
    data = load(about["dataset"], directed=about["directed"], features=about["feature_set"])
    changed = changed_parts(about["checksums"], graph_checksums(data))
    if changed:
        raise DataError(
            f"{path}: the data set {about['dataset']} is not the one of this run: its {' and '.join(changed)} changed"
        )
    return data


def _built(about: dict[str, Any], arrays: dict[str, Any]) -> "Data":
    """Return the graph from its arrays, which are taken out of ``arrays``."""
    edges, x, weight, y = (arrays.pop(key, None) for key in ("edge_index", "x", "edge_weight", "y"))
    data = graph_from_edges(
        edges[0],
        edges[1],
        num_nodes=int(arrays.pop("num_nodes")),
        ids=about["ids"],
        x=x,
        weight=weight,
        directed=about["directed"],
    )
    if y is not None:
        if not y.ndim or len(y) != data.num_nodes or y.dtype.kind not in "biuf":
            raise ValueError(f"labels of shape {y.shape} and type {y.dtype}")
        data.y = torch.from_numpy(y)  # may hold −1 for nodes without a label
    for key in ("name", "label_names"):
        if about[key] is not None:
            data[key] = about[key]
    return data


def _split(about: dict[str, Any], arrays: dict[str, Any], nodes: int) -> Split:
    train, val, test = (torch.from_numpy(arrays.pop(part)) for part in PARTS)
    return Split(nodes=nodes, train=train, val=val, test=test, **about)
