"""Log records as JSON hold nothing that a terminal obeys."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.logs import records

CONTROLS = [*range(0x20), *range(0x7F, 0xA0)]


@pytest.mark.parametrize("code", CONTROLS, ids=hex)
def test_a_control_character_is_written_as_its_escape(code: int) -> None:
    line = records.encode({"event": f"a{chr(code)}b", chr(code): "name"})
    assert not {*line.decode()} & {*map(chr, CONTROLS)}
    assert json.loads(line) == {"event": f"a{chr(code)}b", chr(code): "name"}


@given(st.dictionaries(st.text(), st.text()))
def test_records_are_read_as_they_were(record: dict[str, str]) -> None:
    assert json.loads(records.encode(record)) == record
