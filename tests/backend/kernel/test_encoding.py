"""Texts and JSON that leave the process: all of a text is sent, what can't be is U+FFFD."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.kernel.errors import InvalidJSON
from backend.kernel.texts.encoding import (
    REPLACING,
    clean_text,
    describe,
    encode_json,
    encode_text,
    json_encoder,
    presentable,
)

ANY_TEXT = st.text(st.characters(exclude_categories=()))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
)


@given(ANY_TEXT)
def test_every_text_becomes_utf_8(text: str) -> None:
    cleaned = encode_text(text).decode()
    assert clean_text(text) == cleaned
    whole = [character for character in text if not "\ud800" <= character <= "\udfff"]
    assert [character for character in cleaned if character in whole] == whole


@given(st.text())
def test_a_text_that_utf_8_can_hold_stays_as_it_is(text: str) -> None:
    assert encode_text(text) == text.encode()
    assert clean_text(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a \ud83d b", "a \ufffd b"),
        ("a \ude00\ud83d b", "a \ufffd\ufffd b"),
        ("\ud83d\ude00", "😀"),
        ("é\ud83d", "é\ufffd"),
    ],
)
def test_halves_of_surrogate_pairs_are_replaced(text: str, shown: str) -> None:
    assert encode_text(text).decode() == shown
    assert msgspec.json.decode(encode_json({text: [text]})) == {shown: [shown]}


def test_streams_of_other_encodings_get_question_marks() -> None:
    assert "é\ud83d\ude00".encode("latin-1", REPLACING) == b"\xe9??"
    assert "é\ud83d".encode("ascii", REPLACING) == b"??"


@given(JSON)
def test_every_json_value_is_encoded(value: Any) -> None:
    encoded = encode_json(value)
    json.loads(encoded.decode())
    with suppress(UnicodeEncodeError):
        assert encoded == msgspec.json.encode(value)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"result": [1, {"x": 10**10_000}]}, "result[1].x: "),
        ({"a": {"b": (x for x in ())}}, "a.b: a value of the type generator"),
        ({"a": object()}, "a: a value of the type object"),
        ({"\ud83d": object()}, "\ufffd: "),
        (object(), "The value: "),
        ({"items": [{(1, 2): "\ud83d"}]}, "items[0]: a key of the type tuple"),
    ],
    ids=["integer", "generator", "object", "half of a pair", "outermost", "key"],
)
def test_a_value_that_json_cannot_hold_is_refused_with_its_place(value: Any, place: str) -> None:
    with pytest.raises(InvalidJSON) as caught:
        encode_json(value)
    assert caught.value.message.startswith(place)


def test_values_in_circles_are_refused() -> None:
    circle: list[Any] = []
    circle.append({"again": circle})
    with pytest.raises(InvalidJSON):
        encode_json(circle)


def test_options_of_the_encoder_hold_for_replaced_texts_too() -> None:
    encode = json_encoder(decimal_format="number", order="sorted")
    assert encode({"b": "\ud83d", "a": Decimal("1.50")}).decode() == '{"a":1.50,"b":"\ufffd"}'


class Broken:
    def __str__(self) -> str:
        raise SystemExit(3)


def test_what_has_no_text_is_described_by_its_type() -> None:
    assert describe(Broken()) == "<Broken without a text: SystemExit>"
    assert describe(10**10_000) == "<int without a text: ValueError>"


def test_texts_for_clients_and_tables_are_cut_and_cleaned() -> None:
    assert presentable("a\0b\ud83d") == "a\ufffdb\ufffd"
    assert len(presentable("x" * 50_000_000)) == 10_000
