"""Damaged bytes of every format that is read: valid files, changed a little in many places or much in one."""

import gzip
import io
import tarfile
import zipfile

import numpy as np
from made_datasets import planetoid_files

from gyroformer.data.archive import unpack
from gyroformer.data.planetoid import read_planetoid
from gyroformer.data.split import Split
from gyroformer.data.split_files import load_split, save_split
from gyroformer.graphs.reading.read import read_graph
from gyroformer.recipes import ROOT
from gyroformer.settings import make_job
from gyroformer.tasks import TASKS

EDGES = [(i, i // 2) for i in range(1, 12)]
#: what parsers stumble over
TOKENS = [
    *(
        b"",
        b"\0",
        b"\n",
        b"\r",
        b"\t",
        b",",
        b'"',
        b"'",
        b"[",
        b"]",
        b"<",
        b">",
        b"&",
        b"%",
        b"#",
        b"\\",
        b"\xff\xfe",
    ),
    *(
        b"nan",
        b"inf",
        b"-1",
        b"1e999",
        b"99999999999999999999",
        b"0x",
        b"true",
        b"null",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
    ),
]


def text_files():
    """Return small valid files by name."""
    listed = "".join(f"n{a},n{b},{a / 2}\n" for a, b in EDGES)
    nodes = "".join(f'node [ id {i} label "n{i}" ]\n' for i in range(12))
    gml = "".join(f"edge [ source {a} target {b} weight 1.5 ]\n" for a, b in EDGES)
    marked = "".join(f'<node id="n{i}"/>' for i in range(12))
    joined = "".join(f'<edge source="n{a}" target="n{b}"><data key="w">2</data></edge>' for a, b in EDGES)
    head = '<graphml><key id="w" for="edge" attr.name="weight" attr.type="double"/><graph edgedefault="undirected">'
    pairs = "".join(f"{a + 1} {b + 1} 0.5\n" for a, b in EDGES)
    return {
        "g.csv": f"source,target,weight\n{listed}".encode(),
        "g.txt": "".join(f"{a} {b}\n" for a, b in EDGES).encode(),
        "g.tsv": "".join(f"n{a}\tn{b}\n" for a, b in EDGES).encode(),
        "g.gml": f"graph [\n{nodes}{gml}]\n".encode(),
        "g.graphml": f"{head}{marked}{joined}</graph></graphml>".encode(),
        "g.mtx": f"%%MatrixMarket matrix coordinate real general\n12 12 {len(EDGES)}\n{pairs}".encode(),
    }


def packed_files():
    """Return small valid archives by name."""
    buffer = io.BytesIO()
    source, target = np.array(EDGES).T
    np.savez(
        buffer, edge_index=np.stack([source, target]), x=np.eye(12, dtype=np.float32), y=np.arange(12) % 3
    )
    squeezed = io.BytesIO()
    np.savez_compressed(squeezed, edge_index=np.stack([source, target]))
    return {
        "g.npz": buffer.getvalue(),
        "h.npz": squeezed.getvalue(),
        "g.csv.gz": gzip.compress(text_files()["g.csv"]),
    }


def tables():
    features = "id,a,b\n" + "".join(f"n{i},{i / 3},{-i}\n" for i in range(12))
    labels = "id,label\n" + "".join(f"n{i},{'red' if i % 2 else 'blue'}\n" for i in range(12))
    found = {"x.csv": features.encode(), "y.csv": labels.encode()}
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        return found
    sink = io.BytesIO()
    parquet.write_table(pa.table({"id": [f"n{i}" for i in range(12)], "a": [i / 3 for i in range(12)]}), sink)
    return found | {"x.parquet": sink.getvalue()}


def archives():
    """Return a zip and tar files of several compressions."""
    content = b"words " * 200
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/b.txt", content)
    found = {"a.zip": zipped.getvalue()}
    for kind in ("", "gz", "bz2", "xz"):
        tarred = io.BytesIO()
        with tarfile.open(fileobj=tarred, mode=f"w:{kind}") as archive:
            entry = tarfile.TarInfo("a/b.txt")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        found[f"a.tar.{kind}"] = tarred.getvalue()
    return found


def mutated(content, stream):
    """Return the bytes with one to four changes."""
    changed = bytearray(content)
    for _ in range(stream.choice([1, 1, 1, 2, 4])):
        where = stream.randrange(len(changed) + 1)
        until = min(len(changed), where + stream.choice([1, 1, 2, 8, 64]))
        match stream.randrange(7):
            case 0 if until > where:
                changed[where] ^= 1 << stream.randrange(8)
            case 1:
                changed[where:until] = stream.randbytes(until - where)
            case 2:
                del changed[where:until]
            case 3:
                changed[where:where] = changed[where:until] * stream.choice([1, 50, 5000])
            case 4:
                changed[where:until] = stream.choice(TOKENS)
            case 5:
                changed[where:where] = stream.choice(TOKENS)
            case 6 if stream.random() < 0.3:
                del changed[where:]
    return bytes(changed)


def _mutations(folder, stream, files, read):
    for number in range(10**9):
        name = stream.choice(sorted(files))
        path = folder / f"{number}-{name}"
        path.write_bytes(mutated(files[name], stream))
        yield f"{name} {number}", lambda path=path: read(path)
        path.unlink(missing_ok=True)


def graphs(folder, stream):
    """Read damaged graph files."""
    yield from _mutations(folder, stream, text_files() | packed_files(), read_graph)


def node_tables(folder, stream):
    """Read damaged tables of features and labels."""
    graph = folder / "graph.csv"
    graph.write_bytes(text_files()["g.csv"])

    def read(path):
        return read_graph(graph, **{"labels" if "-y" in path.name else "features": path})

    yield from _mutations(folder, stream, tables(), read)


def splits(folder, stream):
    """Read damaged splits."""
    import torch

    parts = {name: torch.arange(start, start + 3) for name, start in (("train", 0), ("val", 3), ("test", 6))}
    split = Split(nodes=12, name="random", dataset=None, seed=0, index=None, stratified=False, **parts)
    files = {}
    for name in ("s.json", "s.npz"):
        save_split(split, folder / name)
        files[name] = (folder / name).read_bytes()
    yield from _mutations(folder, stream, files, load_split)


def pickles(folder, stream):
    """Read Planetoid's files, one of them damaged."""
    planetoid_files(folder)
    names = sorted(path.name for path in folder.glob("ind.*"))
    for number in range(10**9):
        path = folder / stream.choice(names)
        content = path.read_bytes()
        path.write_bytes(mutated(content, stream))
        yield f"{path.name} {number}", lambda: read_planetoid(folder, "cora")
        path.write_bytes(content)


def packed_data(folder, stream):
    """Unpack damaged archives."""
    target = folder / "out"

    def read(path):
        where = target / path.stem
        where.mkdir(parents=True)
        unpack(path, where)

    yield from _mutations(folder, stream, archives(), read)


def recipes(folder, stream):
    """Read damaged recipes."""
    files = {f"{task}.toml": (ROOT / task / "default.toml").read_bytes() for task in TASKS}

    def read(path):
        return make_job(path.stem.partition("-")[2], recipe=str(path), graph={"source": "g.csv"})

    yield from _mutations(folder, stream, files, read)
