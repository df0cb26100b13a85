"""Counts as bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.packed import pack, unpack


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1))
def test_counts_come_back(counts):
    """What was packed is unpacked, however large its numbers are."""
    assert unpack(pack(counts), len(counts)).tolist() == counts


def test_small_counts_take_a_byte_each():
    """Three counts up to 255 are three bytes; 256 makes it six; the first byte is the low one."""
    assert pack([0, 1, 255]) == b"\x00\x01\xff"
    assert pack([0, 1, 256]) == b"\x00\x00\x01\x00\x00\x01"


def test_torn_bytes_are_refused():
    """Bytes that cannot hold so many counts are an error, not a shorter list."""
    with pytest.raises(ValueError, match="7 bytes do not hold 3 counts"):
        unpack(bytes(7), 3)


def test_no_sentences_are_no_bytes():
    """A file without sentences packs to nothing and comes back as nothing."""
    assert pack([]) == b""
    assert np.array_equal(unpack(b"", 0), [])
