import numpy as np
import pytest

from gyroformer.data.plain_npz import read_arrays
from gyroformer.errors import DataError


def test_only_the_named_arrays_are_read(tmp_path):
    np.savez(tmp_path / "a.npz", good=np.arange(3), evil=np.array([{}], dtype=object))
    assert read_arrays(tmp_path / "a.npz", ["good"])[0].tolist() == [0, 1, 2]
    with pytest.raises(DataError, match="pickle"):
        read_arrays(tmp_path / "a.npz", ["evil"])
    with pytest.raises(DataError, match="no npz file with absent"):
        read_arrays(tmp_path / "a.npz", ["absent"])


@pytest.mark.parametrize("keep", [0, 10, 200, -1])
def test_a_cut_file_is_one_line(tmp_path, keep):
    np.savez(tmp_path / "a.npz", good=np.arange(300))
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(whole[:keep])
    with pytest.raises(DataError, match=r"a\.npz: no npz file") as error:
        read_arrays(tmp_path / "a.npz", ["good"])
    assert "\n" not in str(error.value)


def test_a_flipped_bit_is_noticed(tmp_path):
    np.savez(tmp_path / "a.npz", good=np.arange(300))
    whole = bytearray((tmp_path / "a.npz").read_bytes())
    whole[len(whole) // 2] ^= 1
    (tmp_path / "a.npz").write_bytes(whole)
    with pytest.raises(DataError, match="CRC"):
        read_arrays(tmp_path / "a.npz", ["good"])


def test_a_lone_array_is_no_npz(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    with pytest.raises(DataError, match="a single array"):
        read_arrays(tmp_path / "a.npy", ["good"])
