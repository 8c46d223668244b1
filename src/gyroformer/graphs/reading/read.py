"""Any graph file by its suffix."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gyroformer.errors import DataError, UsageError, did_you_mean, in_file
from gyroformer.graphs.listing import Listing
from gyroformer.graphs.reading.attributes import add_features, add_labels
from gyroformer.graphs.reading.columns import NO_WEIGHT, Wanted
from gyroformer.graphs.reading.edge_list import read_edge_list
from gyroformer.graphs.reading.edge_table import read_json_lines, read_parquet_edges
from gyroformer.graphs.reading.gexf import read_gexf
from gyroformer.graphs.reading.gml import read_gml
from gyroformer.graphs.reading.graphml import read_graphml
from gyroformer.graphs.reading.lines import raw_pieces
from gyroformer.graphs.reading.matrix_market import BANNER, read_matrix_market
from gyroformer.graphs.reading.names import MAX_NODES, check_max_nodes
from gyroformer.graphs.reading.npz import read_npz
from gyroformer.untrusted import check_regular

if TYPE_CHECKING:
    from torch_geometric.data import Data

EDGE_LISTS = (".txt", ".csv", ".tsv", ".edges", ".edgelist", ".el")
#: files whose columns have names of their own
TABLES: dict[str, Callable[..., Listing]] = {
    ".parquet": read_parquet_edges,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
}
READERS: dict[str, Callable[..., Listing]] = {
    ".mtx": read_matrix_market,
    ".graphml": read_graphml,
    ".gml": read_gml,
    ".gexf": read_gexf,
    ".npz": read_npz,
}
SUFFIXES = (*EDGE_LISTS, *TABLES, *READERS)


def read_graph(
    path: str | Path,
    *,
    directed: bool = False,
    features: str | Path | None = None,
    labels: str | Path | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    max_nodes: int = MAX_NODES,
) -> "Data":
    """Read a graph file by its suffix.

    An edge list is ``.txt .csv .tsv .edges .jsonl .parquet``; the others are ``.mtx .graphml .gml .gexf .npz``. All
    but parquet and ``.npz`` may be compressed (``.gz``).

    Args:
        path: the file.
        directed: keep the direction of edges; by default both directions of each are stored.
        features: file of node features (``.csv``, ``.tsv``, ``.npz``, ``.parquet``).
        labels: file of node labels, of the same kinds; may be the same file.
        delimiter: character between the columns of an edge list, ``" "`` for whitespace; found by default.
        header: whether an edge list's first line names its columns; found by default.
        source: the column of an edge list that holds the first ends: its name, or its number from 1.
        target: the same for the second ends.
        weight: the same for weights; ``"none"`` for an unweighted graph, whatever the file holds.
        max_nodes: refuse files with more nodes than this, or that claim to have.

    Returns:
        A graph as :func:`gyroformer.graphs.build.graph_from_edges` describes it, nodes in order of first
        appearance, or in the file's own order where it declares nodes; ``label_names`` if labels are words.

    Raises:
        UsageError: if the file does not exist or an argument does not fit it.
        DataError: if the file is not a usable graph; the message names the file, the line and what to do.
        MissingPartError: if a parquet file needs a package that is not installed.
    """
    path = existing_file(path)
    kind = suffix_of(path)
    if kind in EDGE_LISTS and next(raw_pieces(path, len(BANNER)), b"").lower() == BANNER:
        kind = ".mtx"  # networkrepository.com serves Matrix Market files under the suffix .edges
    listing = _read(path, kind, delimiter, Wanted(header, source, target, weight), max_nodes)
    if features is not None:
        add_features(listing, existing_file(features))
    if labels is not None:
        add_labels(listing, existing_file(labels))
    check_max_nodes(path, len(listing.ids), max_nodes)
    with in_file(path):
        return listing.graph(directed=directed)


def _read(path: Path, kind: str, delimiter: str | None, wanted: Wanted, max_nodes: int) -> Listing:
    """Return the edges of a file of a kind; what does not apply to the kind is refused."""
    if kind in EDGE_LISTS:
        return read_edge_list(path, delimiter=delimiter, wanted=wanted, max_nodes=max_nodes)
    foreign = ["delimiter"] if delimiter is not None else []
    if kind in TABLES:
        foreign += ["header"] if wanted.header is not None else []
        if not foreign:
            return TABLES[kind](path, wanted=wanted, max_nodes=max_nodes)
        raise UsageError(
            f"{' and '.join(foreign)}: for text files, and {path} has named columns: leave it out"
        )
    if kind not in READERS:
        raise DataError(
            f"{path}: unknown suffix {kind!r}: use one of {' '.join(SUFFIXES)}, perhaps followed by .gz"
        )
    unweighted = wanted.weight == NO_WEIGHT
    foreign += [name for name in wanted.given if not (name == "weight" and unweighted)]
    if foreign:
        raise UsageError(f"{' and '.join(foreign)}: for edge lists, and {path} is not one: leave it out")
    listing = READERS[kind](path, max_nodes=max_nodes)
    if unweighted:
        listing.weight = None
    return listing


def existing_file(path: str | Path) -> Path:
    """Return the path of a file, or raise with the name nearest to it in its folder."""
    path = Path(path)
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a folder: give a graph file{_of_a_run(path)}")
        if not path.exists():
            folder = path.parent if path.parent.is_dir() else None
            near = did_you_mean(path.name, [item.name for item in folder.iterdir()]) if folder else ""
            raise UsageError(f"no file {str(path)!r}{near}")
    except (OSError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{str(path)!r} cannot be a file ({error}): check the path") from None
    check_regular(path)
    return path


def suffix_of(path: Path) -> str:
    """Return the suffix in lower case, looking below ``.gz``."""
    lower = path.name.lower()
    return Path(lower.removesuffix(".gz")).suffix


def _of_a_run(folder: Path) -> str:
    """Return what to do with the folder of a run that stands where a graph should."""
    if not (folder / "config.json").is_file():
        return ""
    return f"; to go on with this run, its graph and --resume --out {folder}; to ask it, gyroformer predict {folder}"
