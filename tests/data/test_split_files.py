import json

import numpy as np
import pytest
import torch

from gyroformer.data.split import PARTS, Split
from gyroformer.data.split_files import load_split, save_split
from gyroformer.errors import CorruptFileError, DataError, UsageError

SPLIT = Split(
    name="legacy",
    nodes=9,
    dataset="airport",
    seed=1234,
    train=torch.tensor([0, 1, 2, 2]),
    val=torch.tensor([3, 4]),
    test=torch.tensor([1, 8]),
)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_what_is_saved_comes_back(tmp_path, suffix):
    path = tmp_path / "new" / f"split{suffix}"
    save_split(SPLIT, path)
    back = load_split(path)
    assert (back.name, back.nodes, back.dataset, back.seed, back.index) == (
        "legacy",
        9,
        "airport",
        1234,
        None,
    )
    assert all(torch.equal(getattr(back, part), getattr(SPLIT, part)) for part in PARTS)
    assert back.sha256 == SPLIT.sha256
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_the_json_says_what_leaks(tmp_path):
    save_split(SPLIT, tmp_path / "split.json")
    held = json.loads((tmp_path / "split.json").read_text())
    assert (held["leaks"], held["sha256"]) == (1, SPLIT.sha256)


def test_a_changed_node_is_noticed(tmp_path):
    save_split(SPLIT, tmp_path / "split.json")
    held = json.loads((tmp_path / "split.json").read_text())
    (tmp_path / "split.json").write_text(json.dumps(held | {"test": [1, 7]}))
    with pytest.raises(CorruptFileError, match="changed since"):
        load_split(tmp_path / "split.json")


@pytest.mark.parametrize("suffix", [".json", ".npz"])
@pytest.mark.parametrize("keep", [0, 0.5, 0.95])
def test_a_cut_file_is_one_line(tmp_path, suffix, keep):
    path = tmp_path / f"split{suffix}"
    save_split(SPLIT, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole))])
    with pytest.raises(CorruptFileError, match=r"not a (saved split|valid NumPy archive)|cannot be read"):
        load_split(path)


def test_other_files_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", facts=np.array([{}], dtype=object))
    with pytest.raises(CorruptFileError):
        load_split(tmp_path / "a.npz")
    with pytest.raises(UsageError, match="no such file"):
        load_split(tmp_path / "b.npz")
    (tmp_path / "split.json").mkdir()
    with pytest.raises(DataError, match="cannot be written"):
        save_split(SPLIT, tmp_path / "split.json")
    with pytest.raises(UsageError, match=r"saved as \.json or \.npz"):
        save_split(SPLIT, tmp_path / "split.txt")
