"""Small made-up files of the data sets' formats."""

import collections
import io
import pickle
import struct

import numpy as np
from scipy import sparse


class Python2Pickler(pickle._Pickler):
    """Writes bytes the way Python 2 wrote its strings, as in the Planetoid files."""

    dispatch = pickle._Pickler.dispatch.copy()

    def save_bytes(self, obj):
        self.write(b"T" + struct.pack("<i", len(obj)) + obj)
        self.memoize(obj)

    dispatch[bytes] = save_bytes


def python2_pickle(thing):
    buffer = io.BytesIO()
    Python2Pickler(buffer, protocol=2).dump(thing)
    renamed = buffer.getvalue().replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")
    return renamed.replace(b"cscipy.sparse._csr\n", b"cscipy.sparse.csr\n")


def planetoid_files(folder, prefix="cora", *, gap=False):
    """Write 510 known nodes and 4 test nodes; return features, labels and test order by node."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    known, test = 510, np.array([512, 510, 514 if gap else 513, 511])
    nodes = int(test.max()) + 1
    x = (rng.random((nodes, 7)) < 0.4).astype(np.float32)
    y = rng.integers(0, 3, nodes)
    unlisted = np.setdiff1d(np.arange(known, nodes), test)
    x[unlisted], y[unlisted] = 0, 0
    one_hot = np.eye(3, dtype=np.int32)[y]
    graph = collections.defaultdict(list, {node: [(node + 1) % known] for node in range(known)})
    graph[0] += [1, 0, 512]  # a duplicate, a loop, and one edge listed in one direction only
    parts = {
        "x": sparse.csr_matrix(x[:5]),
        "allx": sparse.csr_matrix(x[:known]),
        "tx": sparse.csr_matrix(x[test]),
        "y": one_hot[:5],
        "ally": one_hot[:known],
        "ty": one_hot[test],
        "graph": graph,
    }
    for name, thing in parts.items():
        (folder / f"ind.{prefix}.{name}").write_bytes(python2_pickle(thing))
    (folder / f"ind.{prefix}.test.index").write_text("\n".join(map(str, test)) + "\n")
    return x, y, test


def webkb_files(folder, *, edges=((0, 1), (1, 0), (1, 1), (2, 0)), labels=(0, 0, 1), rows=None):
    folder.mkdir(parents=True, exist_ok=True)
    rows = rows or [f"{node}\t{node % 2},1,0\t{label}" for node, label in enumerate(labels)]
    (folder / "out1_node_feature_label.txt").write_text("\n".join(["node_id\tfeature\tlabel", *rows]) + "\n")
    listed = [f"{one}\t{other}" for one, other in edges]
    (folder / "out1_graph_edges.txt").write_text("\n".join(["node_id\tnode_id", *listed]) + "\n")
