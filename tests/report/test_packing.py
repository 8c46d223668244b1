import numpy as np
import pytest
from unpacked import read_array, unpack

from gyroformer.report.packing import Packer


@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize(
    "values", [[], [0], [5, 3, 250], [70_000, 1, 2**33], [-1, 0, 1, -40_000], np.arange(1000)], ids=str
)
def test_integers_come_back(values, delta):
    packer = Packer()
    packer.integers([9] * 5)  # something before it
    about = packer.integers(np.array(values, dtype=np.int64), delta=delta)
    _, arrays = unpack(packer.pack({"x": about}))
    assert read_array(arrays, about).tolist() == list(values)


def test_real_numbers_come_back_to_a_millionth_of_the_largest():
    values = np.random.default_rng(0).normal(size=500) * 37
    packer = Packer()
    about = packer.reals(values)
    _, arrays = unpack(packer.pack({}))
    assert np.abs(read_array(arrays, about) - values).max() <= np.abs(values).max() * 2.0**-21
    zero = Packer()
    about = zero.reals(np.zeros(3))
    assert read_array(unpack(zero.pack({}))[1], about).tolist() == [0, 0, 0]


def test_the_description_comes_back_whatever_it_holds():
    about = {"ids": ["</script>", "ä", "\u2028", "\n"], "n": 1.5}
    packed = Packer().pack(about)
    assert unpack(packed)[0] == about
    assert not set("<&") & set(packed)
