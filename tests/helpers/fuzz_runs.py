"""Damaged and hostile run folders, with every checksum made to fit again: the content alone is wrong."""

import contextlib
import hashlib
import io
import json
import shutil

import numpy as np
import torch
from evil_runs import small_graph, small_run
from safetensors.torch import load_file, save_file

from gyroformer.jobs.restore import restore
from gyroformer.jobs.run import run_job
from gyroformer.models import get_model
from gyroformer.models.pretrained import read_config
from gyroformer.report.page import page
from gyroformer.report.record import read_run
from gyroformer.runs.files import CHECKED, _own_checksum
from gyroformer.runs.read import open_run
from gyroformer.settings import job_from_plain

VALUES = [
    None,
    "x",
    "",
    -1,
    0,
    10**12,
    10**30,
    1e308,
    -0.5,
    True,
    [],
    {},
    [[]],
    ["x"],
    {"a": 1},
    "\u0000",
    [[1e300]],
]
NUMBERS = [np.nan, np.inf, 1e308, -1e30, 1e6]


def reseal(folder):
    """Make all checksums fit the files that are there."""
    weights = folder / "model.safetensors"
    config = json.loads((folder / "config.json").read_text())
    if isinstance(config, dict) and weights.is_file():
        config["sha256"] = hashlib.sha256(weights.read_bytes()).hexdigest()
        (folder / "config.json").write_text(json.dumps(config))
    manifest = json.loads((folder / "manifest.json").read_text())
    if isinstance(manifest, dict):
        there = [name for name in CHECKED if (folder / name).is_file()]
        manifest["files"] = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in there}
        manifest["sha256"] = _own_checksum(manifest)
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def leaves(value, path=()):
    """Yield the paths of all values in a JSON value, inner ones too."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from leaves(one, (*path, key))


def changed(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    if new is DELETED and len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


DELETED = object()


def wrong_json(text, stream):
    """Return a JSON text with one value of it replaced or removed, or nested deeply."""
    value = json.loads(text)
    path = stream.choice(list(leaves(value)))
    if stream.random() < 0.03:
        return "[" * 100_000
    if stream.random() < 0.05:
        deep = []
        for _ in range(200):
            deep = [deep]
        return json.dumps(changed(value, path, deep))
    new = stream.choice([DELETED if path else None, *VALUES])
    return json.dumps(changed(value, path, new))


def wrong_array(array, stream):
    if array.dtype.kind not in "fiu" or not array.size:
        return stream.choice(
            [np.array([], dtype="U1"), np.arange(3), np.array("x"), array[:-1] if array.ndim else array]
        )
    match stream.randrange(6):
        case 0:
            flat = array.astype(np.float64).reshape(-1)
            flat[stream.randrange(flat.size)] = stream.choice(NUMBERS)
            return flat.reshape(array.shape)
        case 1:
            return array[:-1] if array.ndim else array.reshape(1)
        case 2:
            return array[..., None]
        case 3:
            return array.astype(stream.choice(["complex64", "int64", "U5", "bool", "float16"]))
        case 4:
            return np.zeros((0, *array.shape[1:]), array.dtype)
        case _:
            return np.full(array.shape, stream.choice(NUMBERS), np.float64)


def change_file(path, stream):
    """Change one file of a run in a way that its reader must notice."""
    if path.suffix == ".json":
        path.write_text(wrong_json(path.read_text(), stream))
    elif path.suffix == ".jsonl":
        rows = path.read_text().splitlines()
        index = stream.randrange(len(rows))
        rows[index] = wrong_json(rows[index], stream)
        if stream.random() < 0.1:
            rows = rows[: stream.randrange(len(rows))]
        path.write_text("".join(f"{row}\n" for row in rows))
    elif path.suffix == ".npz":
        with np.load(path) as archive:
            arrays = dict(archive)
        name = stream.choice(list(arrays))
        if stream.random() < 0.15:
            del arrays[name]
        else:
            arrays[name] = wrong_array(arrays[name], stream)
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        path.write_bytes(buffer.getvalue())
    else:
        tensors = load_file(path)
        name = stream.choice(list(tensors))
        tensor = tensors.pop(name)
        kind = stream.randrange(6)
        if kind:
            new = [
                None,
                tensor.reshape(-1)[:0],
                tensor.to(torch.int64),
                tensor.to(torch.complex64),
                tensor.double(),
                tensor * float("nan"),
            ]
            tensors[name if kind != 4 else stream.choice([name, "more"])] = new[kind]
        save_file(tensors, path)


def replace_file(path, stream):
    """Put something else in a file's place: nothing, a folder, noise, a part of it."""
    content = path.read_bytes()
    path.unlink()
    match stream.randrange(5):
        case 0:
            path.mkdir()
        case 1:
            path.write_bytes(stream.randbytes(200))
        case 2:
            path.write_bytes(content[: stream.randrange(len(content))])
        case 3:
            path.write_bytes(content + b"\n")


def read_all(folder):
    """Read a folder in every way that a command does; the first that refuses it ends the case."""
    run = open_run(folder)
    page([read_run(folder, "a")])
    _ = run.settings, run.history, run.model
    restore(folder)


def resume(folder):
    job = job_from_plain(json.loads((folder / "config.json").read_text())["job"])
    run_job(job, data=small_graph(), out=folder, resume=True, report=False)


def load_model(folder):
    return get_model(read_config(folder)["model"]).build.from_pretrained(folder)


def run_folders(folder, stream):
    """Change a file of a finished run, and read the run."""
    made = {task: folder / f"whole-{task}" for task in ("embed", "classify", "link")}
    for task, where in made.items():
        small_run(where, task, epochs=3)
    for number in range(10**9):
        whole = made[stream.choice(list(made))]
        case = folder / f"case-{number}"
        shutil.copytree(whole, case)
        names = [p.name for p in whole.iterdir() if p.suffix in (".json", ".jsonl", ".npz", ".safetensors")]
        name = stream.choice(sorted(names))
        way = stream.choice([change_file, change_file, change_file, replace_file])
        state = stream.getstate()
        way(case / name, stream)
        if way is change_file:
            with contextlib.suppress(ValueError, OSError, RecursionError):  # no JSON any more: no checksums
                reseal(case)
        yield f"{whole.name} {name} {way.__name__} {hash(state)}", lambda case=case: read_all(case)
        shutil.rmtree(case)


def checkpoints(folder, stream):
    """Change a checkpoint of a run that is to be resumed, or put something beside it."""
    whole = folder / "whole"
    small_run(whole, epochs=3)
    (whole / "results.json").unlink()
    for number in range(10**9):
        case = folder / f"case-{number}"
        shutil.copytree(whole, case)
        files = sorted((case / "checkpoints").iterdir())
        path = stream.choice(files)
        way = stream.choice([change_file, replace_file])
        way(path, stream)
        if stream.random() < 0.3:
            (case / "checkpoints" / "epoch-xyz").mkdir()
        scalars = path.with_suffix(".json")
        tensors = path.with_suffix(".safetensors")
        if way is change_file and path == tensors:
            about = json.loads(scalars.read_text())
            about["sha256"] = hashlib.sha256(tensors.read_bytes()).hexdigest()
            scalars.write_text(json.dumps(about))
        yield f"{path.name} {way.__name__}", lambda case=case: resume(case)
        shutil.rmtree(case)


def configurations(folder, stream):
    """Change the configuration or the weights of a saved model, and load it."""
    whole = folder / "whole"
    for model in ("fpst", "hgcn", "gil"):
        torch.manual_seed(0)
        get_model(model).make(5, num_nodes=None, classes=3, dim=8).save_pretrained(whole / model)
    for number in range(10**9):
        case = folder / f"case-{number}"
        shutil.copytree(whole / stream.choice(["fpst", "hgcn", "gil"]), case)
        if stream.random() < 0.7:
            about = json.loads((case / "config.json").read_text())
            key = stream.choice(list(about["config"]))
            about["config"][key] = stream.choice([*VALUES, 10**9, 10**7, 10**5, 64, 3])
            if stream.random() < 0.1:
                about["format"] = stream.choice([-1, 0, 99, True, "1", None])
            (case / "config.json").write_text(json.dumps(about))
            what = f"{key}={about['config'][key]!r}"
        else:
            change_file(case / "model.safetensors", stream)
            about = json.loads((case / "config.json").read_text())
            about["sha256"] = hashlib.sha256((case / "model.safetensors").read_bytes()).hexdigest()
            (case / "config.json").write_text(json.dumps(about))
            what = "weights"
        yield f"{about['model']} {what}", lambda case=case: load_model(case)
        shutil.rmtree(case)
