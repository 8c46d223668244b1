"""Addresses of the data sets' files, at a fixed commit where one is known, and the lists made from them."""

from gyroformer.data.spec import FileSpec

GEOM_GCN = (
    "https://raw.githubusercontent.com/bingzhewei/geom-gcn/master",
    "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/master",
)
PLANETOID = (
    "https://raw.githubusercontent.com/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data",
)
QGCN = ("https://raw.githubusercontent.com/xiongbo010/QGCN/f9a039864f4ca02423b3676dd884b8ea0811ec36/data",)
HGCN = ("https://raw.githubusercontent.com/HazyResearch/hgcn/b9dab7a7b9618cf6e5cf537d610120baf9f3ad47/data",)
HYPERBOLICS = (
    "https://raw.githubusercontent.com/HazyResearch/hyperbolics/5f1bd6a7e0fd54cf07d8a2930b2f7d41e4df9404",
)
ENRON = (
    "https://raw.githubusercontent.com/jongwook/graphdb-benchmarks/07f165a4a0e4936a0c94e483c0c8441cd0822b76",
)
GNN_BENCHMARK = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"

STORED_SPLITS = 10

#: what to do about a file that is damaged or not the one expected
FETCH_AGAIN = "fetch the file again"


def at(bases: tuple[str, ...], path: str) -> tuple[str, ...]:
    """Return the same file under each base address."""
    return tuple(f"{base}/{path}" for base in bases)


def geom_gcn_splits(folder: str, prefix: str) -> tuple[FileSpec, ...]:
    """Return the ten stored masks of a data set."""
    names = [f"{prefix}_split_0.6_0.2_{index}.npz" for index in range(STORED_SPLITS)]
    return tuple(FileSpec(f"{folder}/{name}", at(GEOM_GCN, f"splits/{name}"), needed=False) for name in names)


def webkb(folder: str, source_name: str) -> tuple[FileSpec, ...]:
    """Return the files of a WebKB set or of Actor."""
    names = ("out1_node_feature_label.txt", "out1_graph_edges.txt")
    core = [FileSpec(f"{folder}/{name}", at(GEOM_GCN, f"new_data/{source_name}/{name}")) for name in names]
    return (*core, *geom_gcn_splits(folder, source_name))


def planetoid(folder: str) -> tuple[FileSpec, ...]:
    """Return the files of a citation graph."""
    prefix = folder.lower()
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    names = [f"ind.{prefix}.{part}" for part in parts]
    core = [FileSpec(f"planetoid/{folder}/raw/{name}", at(PLANETOID, name)) for name in names]
    return (*core, *geom_gcn_splits(f"planetoid/{folder}/geom-gcn/raw", prefix))


def qgcn(path: str, remote: str) -> tuple[FileSpec, ...]:
    """Return the one edge list of a reconstruction set."""
    return (FileSpec(path, at(QGCN, remote)),)


def save_as(address: str, path: str) -> str:
    """Return what to do where no download is pinned."""
    return (
        f"download {address} yourself, put it at {path} in the data folder, "
        "then let --check verify what it contains"
    )


def derive_from_wordnet(path: str) -> str:
    """Return what to do to get a closure file."""
    return (
        "derive the transitive closure from WordNet 3.0 (https://wordnet.princeton.edu) as id1,id2,weight "
        f"rows of lemma.n.NN names, put it at {path} in the data folder, then let --check verify it"
    )
