"""Cursors are encoded and decoded without loss."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.core.cursors import LONGEST, BadCursor, Cursor, decode, encode

networks = st.integers(1, 2**53 - 1)
marks = st.dictionaries(networks, st.integers(1, 2**63 - 1), max_size=5)
epochs = st.text("0123456789abcdef", min_size=12, max_size=12)


@given(epochs, marks, marks)
def test_encoding_and_decoding_preserve_a_cursor(epoch, positions, starts) -> None:
    cursor = Cursor(epoch, positions, starts)
    assert decode(encode(cursor)) == cursor


def test_a_cursor_needs_no_url_encoding() -> None:
    text = encode(Cursor("0a1b2c", {31337: 17, 10: 3}, {31337: 5}))
    assert text == "1.0a1b2c.31337:17,10:3.31337:5"


def test_networks_at_zero_are_left_out_of_a_cursor() -> None:
    assert encode(Cursor("e", {1: 0, 2: 5}, {1: 0})) == "1.e.2:5."
    assert encode(Cursor("e", {1: 4, 2: 5}, {2: 1}), {1}) == "1.e.1:4."


@pytest.mark.parametrize("text", ["2.abc.1:2.", "10.whatever-it-is", "0.e.1:1."])
def test_a_cursor_of_another_version_has_no_epoch(text: str) -> None:
    assert decode(text).epoch is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "17",
        "1.",
        "1.e",
        "1.e.1:2",
        "1.E.1:2.",
        "1.e.1:2,.",
        "1.e.1:2,1:3.",
        "1.e.01:2.",
        "1.e.1:-2.",
        "1.e.1:2.\n",
        "1.e.1:٣.",
        "1.e.9999999999999999999:1.",
        "1.e.1:9223372036854775808.",
        "1.e.1:2." + "1" * LONGEST,
        "' OR 1=1 --",
    ],
)
def test_invalid_cursors_are_rejected(text: str) -> None:
    with pytest.raises(BadCursor):
        decode(text)


@given(st.text(max_size=60) | st.from_regex(r"1\.[a-z0-9]{1,4}\.[0-9:,]{0,20}\.[0-9:,]{0,9}"))
def test_any_text_is_decoded_or_rejected(text: str) -> None:
    with suppress(BadCursor):
        decode(text)
