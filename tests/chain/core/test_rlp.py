"""The encoding of values for hashes, compared with the library of its name."""

from __future__ import annotations

import rlp as library
from hypothesis import given
from hypothesis import strategies as some

from chain.core.blocks import rlp

VALUES = some.recursive(some.binary(max_size=300), some.lists, max_leaves=40)


@given(VALUES)
def test_values_are_encoded_as_the_library_encodes_them(value: rlp.Value) -> None:
    assert rlp.encode(value) == library.encode(value)


def test_lengths_around_each_limit() -> None:
    for length in (0, 1, 2, 54, 55, 56, 57, 255, 256, 257, 65_535, 65_536):
        for value in (b"\x7f" * length, b"\x80" * length, [b"\x01"] * length):
            assert rlp.encode(value) == library.encode(value)
