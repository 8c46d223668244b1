from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gyroformer.graphs.reading.names import Names, first_appearance

small = st.integers(-5, 5)
wide = st.integers(-(10**18) + 1, 10**18 - 1)


@settings(deadline=None)
@given(st.lists(st.one_of(small, wide), max_size=50))
def test_first_appearance_agrees_with_a_dictionary(values):
    order = list(dict.fromkeys(values))
    codes, distinct = first_appearance(np.array(values, dtype=np.int64))
    assert distinct.tolist() == order
    assert codes.tolist() == [order.index(value) for value in values]


@settings(deadline=None)
@given(st.lists(st.lists(st.one_of(small, wide, st.text("ab0", min_size=1)), min_size=1), min_size=1))
def test_blocks_of_integers_and_text_in_any_order(blocks):
    names = Names(Path("f"), 10**6)
    for block in blocks:
        if all(isinstance(name, int) for name in block):
            names.add_integers(np.array(block, dtype=np.int64))
        else:
            names.add_tokens([str(name).encode() for name in block])
    codes, ids = names.finish()
    flat = [str(name) for block in blocks for name in block]
    assert [str(ids[code]) for code in codes] == flat
    assert [str(name) for name in ids] == list(dict.fromkeys(flat))
