"""The graph that an estimator was fitted on, beside the run's own files: ``graph.npz``.

A run that a command wrote names its graph; an estimator's may be an object that no name brings back.
"""

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gyroformer.data.split import PARTS, Split
from gyroformer.durable import write_durably
from gyroformer.errors import CorruptFileError, DataError
from gyroformer.graphs.build import graph_from_edges

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch_geometric.data import Data

GRAPH = "graph.npz"


def write_graph(folder: Path, data: "Data", more: dict[str, "NDArray[Any]"], split: Split | None) -> None:
    """Write the graph, further arrays and the split to ``folder``; nothing is pickled."""
    arrays: dict[str, Any] = {
        "edge_index": data.edge_index.cpu().numpy(),
        "num_nodes": np.array(data.num_nodes),
        "ids": np.array(json.dumps(data.ids)),  # integers and text may be mixed
        **more,
    }
    for key in ("edge_weight", "x", "y"):
        if key in data and data[key] is not None:
            arrays[key] = data[key].cpu().numpy()
    if split is not None:
        arrays |= {part: getattr(split, part).numpy() for part in PARTS}
        about = {"name": split.name, "dataset": split.dataset, "seed": split.seed, "index": split.index}
        arrays["split"] = np.array(json.dumps(about | {"stratified": split.stratified}))
    if any(array.dtype == object for array in arrays.values()):
        raise DataError(
            "classes that are neither numbers nor text cannot be saved: pickle the estimator instead"
        )
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    try:
        write_durably(folder / GRAPH, buffer.getvalue())
    except OSError as error:
        raise DataError(f"{folder / GRAPH}: could not be written ({error.strerror})") from error


def read_graph_file(folder: Path) -> tuple["Data", dict[str, "NDArray[Any]"], Split | None] | None:
    """Return what ``write_graph`` wrote; None if there is no such file."""
    path = folder / GRAPH
    if not path.exists():
        return None
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        edges, ids = arrays.pop("edge_index"), json.loads(str(arrays.pop("ids")))
        num_nodes = int(arrays.pop("num_nodes"))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise CorruptFileError(f"{path}: is not what an estimator saves ({error})") from None
    parts = {key: arrays.pop(key, None) for key in ("x", "edge_weight")}
    y = arrays.pop("y", None)
    data = graph_from_edges(
        edges[0], edges[1], num_nodes=num_nodes, ids=ids, x=parts["x"], weight=parts["edge_weight"]
    )
    if y is not None:
        data.y = torch.from_numpy(y)  # may hold −1 for nodes without a label
    split = None
    if "split" in arrays:
        train, val, test = (torch.from_numpy(arrays.pop(part)) for part in PARTS)
        about = json.loads(str(arrays.pop("split")))
        split = Split(nodes=num_nodes, train=train, val=val, test=test, **about)
    return data, arrays, split
