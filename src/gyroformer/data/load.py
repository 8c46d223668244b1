"""One function for every graph: a data set by its name, or a file by its path."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gyroformer.data.airport import read_airport
from gyroformer.data.edge_lists import read_edges
from gyroformer.data.folder import data_folder
from gyroformer.data.npz_graphs import read_npz_graph
from gyroformer.data.planetoid import read_planetoid
from gyroformer.data.registry import DATASETS, get_spec
from gyroformer.data.state import needed_paths
from gyroformer.data.webkb import read_actor, read_webkb
from gyroformer.errors import UsageError
from gyroformer.graphs.listing import Listing
from gyroformer.graphs.reading.read import read_graph

if TYPE_CHECKING:
    from torch_geometric.data import Data


def load(
    name_or_path: str | os.PathLike[str],
    *,
    directed: bool = False,
    features: str | os.PathLike[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    **options: object,
) -> "Data":
    """Return a graph: a data set by its name, or a file by its path.

    A name has no suffix and a graph file has one, so the two are not confused. Nothing is downloaded: a data
    set that is missing is an error that says how to get it.

    Args:
        name_or_path: a name that ``gyroformer datasets`` lists, or a path.
        directed: keep the direction of the edges as listed; by default each edge goes both ways.
        features: for a data set one of its feature sets (Airport has ``raw`` and ``hgcn``); for a file the
            path of a table of features.
        labels: for a file the path of a table of labels; a data set has its own.
        folder: the data folder, if not the usual one; of no meaning for a file.
        options: for a file, further arguments of :func:`~gyroformer.graphs.reading.read.read_graph`.

    Returns:
        A graph with ``edge_index``, ``num_nodes``, ``ids`` and ``summary``; where there are any ``x`` and
        ``y``; for a data set its ``name``; for Planetoid's sets the public ``train_mask``, ``val_mask`` and
        ``test_mask``.
    """
    if isinstance(name_or_path, str) and name_or_path in DATASETS:
        foreign = [*options, *(["labels"] if labels is not None else [])]
        if foreign:
            raise UsageError(f"{name_or_path!r} is a data set and takes no {', '.join(map(repr, foreign))}")
        return load_dataset(
            name_or_path,
            Path(folder) if folder else data_folder(),
            directed=directed,
            features=None if features is None else os.fspath(features),
        )
    path = Path(name_or_path)
    if not path.suffix and len(path.parts) == 1 and not path.exists():
        get_spec(str(name_or_path))  # raises, with the nearest name
    tables = {
        name: table for name, table in (("features", features), ("labels", labels)) if table is not None
    }
    return read_graph(path, directed=directed, **tables, **options)  # type: ignore[arg-type]


def load_dataset(name: str, folder: Path, *, directed: bool = False, features: str | None = None) -> "Data":
    """Return the data set ``name`` from the files in ``folder``."""
    _check_feature_set(name, features)
    paths = needed_paths(name, folder)
    if DATASETS[name].task == "reconstruction":
        data = read_edges(paths[0], directed=directed)
    else:
        data = parse(name, paths, features=features).graph(directed=directed)
    data.name = name
    return data


def parse(name: str, paths: list[Path], *, features: str | None = None) -> Listing:
    """Return the contents of a labelled data set's files, nothing dropped yet."""
    folder = paths[0].parent
    match get_spec(name).family:
        case "planetoid":
            return read_planetoid(folder, name)
        case "webkb":
            return read_webkb(folder, name=name)
        case "actor":
            return read_actor(folder)
        case "airport":
            return read_airport(paths[0], features=features or "raw")
        case "npz":
            return read_npz_graph(paths[0])
        case _:
            raise UsageError(f"{name} is an edge list: it has no labels")


def _check_feature_set(name: str, features: str | None) -> None:
    known = get_spec(name).feature_sets
    if features is not None and features not in known:
        has = f"it has {', '.join(known)}" if known else "leave the option out"
        raise UsageError(f"{name} has no feature set {features!r}; {has}")
