import io
import zipfile

import numpy as np
import pytest

from gyroformer.arrays import read_arrays
from gyroformer.errors import CorruptFileError, DataError


@pytest.fixture
def path(tmp_path):
    np.savez(tmp_path / "a.npz", good=np.arange(300), text=np.array(["ä", "b"]))
    return tmp_path / "a.npz"


def refusal(path, *names, **options):
    with pytest.raises(DataError) as caught:
        read_arrays(path, names or None, **options)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    return caught.value


def test_all_arrays_or_the_named_ones(path):
    assert list(read_arrays(path)) == ["good", "text"]
    assert read_arrays(path)["text"].tolist() == ["ä", "b"]
    assert list(read_arrays(path, ["text"])) == ["text"]
    assert "has no array 'absent', only good, text: save it again" in str(refusal(path, "absent"))


def test_a_pickled_array_is_refused_and_others_beside_it_are_read(tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    np.savez(tmp_path / "a.npz", good=np.arange(3), evil=np.array([Evil()], dtype=object))
    assert read_arrays(tmp_path / "a.npz", ["good"])["good"].tolist() == [0, 1, 2]
    assert "evil.npy is pickled" in str(refusal(tmp_path / "a.npz"))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("keep", [0, 10, 200, -1])
def test_a_cut_file(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    assert "not a valid NumPy archive" in str(refusal(path, "good"))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_every_flipped_byte_is_noticed_or_does_not_matter(tmp_path, save):
    path = tmp_path / "a.npz"
    save(path, good=np.arange(20), text=np.array(["ä", "b"]))
    whole = path.read_bytes()
    refused = 0
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        try:
            found = read_arrays(path, ["good", "text"])
        except DataError:
            refused += 1
            refusal(path, "good", "text")
        else:  # a date, say
            assert found["good"].tolist() == list(range(20))
            assert found["text"].tolist() == ["ä", "b"]
    assert refused > len(whole) / 2


def test_a_flipped_bit_in_the_values(path):
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)
    assert "CRC" in str(refusal(path, "good"))


def test_a_header_that_lies_about_its_shape_allocates_nothing(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<i8", "fortran_order": False, "shape": (2, 10**12)}
    )
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("good.npy", header.getvalue() + b"\0" * 64)
    assert "claims the shape (2, 1000000000000)" in str(refusal(tmp_path / "a.npz"))


def test_another_method_of_packing_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("good.npy", b"anything")
    assert "good.npy is compressed by a method" in str(refusal(tmp_path / "a.npz"))


def test_what_is_no_archive(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    assert "a single array" in str(refusal(tmp_path / "a.npy"))
    assert "is missing" in str(refusal(tmp_path / "absent.npz"))
    assert "is a folder, not a regular file" in str(refusal(tmp_path))
    (tmp_path / "a.txt").write_text("1 2\n")
    assert "not a zip file" in str(refusal(tmp_path / "a.txt"))


def test_the_kind_of_error_and_the_advice_are_the_callers(path):
    path.write_bytes(b"")
    error = refusal(path, error=CorruptFileError, advice="train again")
    assert isinstance(error, CorruptFileError)
    assert str(error).endswith(": train again")
